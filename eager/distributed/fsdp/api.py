"""What `FullyShardedDataParallel` can be told. As `torch.distributed.fsdp.api`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

from eager.core.dtypes import dtype
from eager.nn import Module
from eager.nn.modules.batchnorm import _BatchNorm

__all__ = [
    "BackwardPrefetch", "CPUOffload", "FullOptimStateDictConfig", "FullStateDictConfig", "LocalOptimStateDictConfig",
    "LocalStateDictConfig", "MixedPrecision", "OptimStateDictConfig", "OptimStateKeyType",
    "ShardedOptimStateDictConfig", "ShardedStateDictConfig", "ShardingStrategy", "StateDictConfig",
    "StateDictSettings", "StateDictType",
]  # fmt: skip


class ShardingStrategy(Enum):
    """What lies in parts: parameters, gradients and an optimizer's state over all processes, or (HYBRID) over those of
    a machine. SHARD_GRAD_OP is FULL_SHARD here: what backward needs of gathered parameters is kept in both."""

    FULL_SHARD = auto()
    SHARD_GRAD_OP = auto()
    NO_SHARD = auto()
    HYBRID_SHARD = auto()
    _HYBRID_SHARD_ZERO2 = auto()


class BackwardPrefetch(Enum):
    """When parameters are gathered for the backward pass: no effect."""

    BACKWARD_PRE = auto()
    BACKWARD_POST = auto()


@dataclass
class MixedPrecision:
    """The dtypes in which modules compute, gradients are summed, and buffers are held; None: those that they have."""

    param_dtype: dtype | None = None
    reduce_dtype: dtype | None = None
    buffer_dtype: dtype | None = None
    keep_low_precision_grads: bool = False
    cast_forward_inputs: bool = False
    cast_root_forward_inputs: bool = True
    _module_classes_to_ignore: Sequence[type[Module]] = (_BatchNorm,)


@dataclass
class CPUOffload:
    """Parameters lie in the host's memory, where all tensors of these processes are."""

    offload_params: bool = False


class StateDictType(Enum):
    """How a state dict has parameters: whole, as this process's part, or as DTensors."""

    FULL_STATE_DICT = auto()
    LOCAL_STATE_DICT = auto()
    SHARDED_STATE_DICT = auto()


@dataclass
class StateDictConfig:
    """Whether tensors are on the CPU."""

    offload_to_cpu: bool = False


@dataclass
class FullStateDictConfig(StateDictConfig):
    """rank0_only: the others get {}."""

    rank0_only: bool = False


@dataclass
class LocalStateDictConfig(StateDictConfig):
    """Of `LOCAL_STATE_DICT`."""


@dataclass
class ShardedStateDictConfig(StateDictConfig):
    """Of `SHARDED_STATE_DICT`, whose tensors are DTensors."""

    _use_dtensor: bool = True


@dataclass
class OptimStateDictConfig:
    """Whether tensors are on the CPU."""

    offload_to_cpu: bool = True


@dataclass
class FullOptimStateDictConfig(OptimStateDictConfig):
    """rank0_only: the others get {}."""

    rank0_only: bool = False


@dataclass
class LocalOptimStateDictConfig(OptimStateDictConfig):
    """Of `LOCAL_STATE_DICT`."""

    offload_to_cpu: bool = False


@dataclass
class ShardedOptimStateDictConfig(OptimStateDictConfig):
    """Of `SHARDED_STATE_DICT`, whose tensors are DTensors."""

    _use_dtensor: bool = True


@dataclass
class StateDictSettings:
    """What `state_dict_type` has said."""

    state_dict_type: StateDictType
    state_dict_config: StateDictConfig
    optim_state_dict_config: OptimStateDictConfig


class OptimStateKeyType(Enum):
    """What an optimizer's state is filed under."""

    PARAM_NAME = auto()
    PARAM_ID = auto()
