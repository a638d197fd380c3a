"""How DistributedDataParallel sends gradients. As `torch.distributed.algorithms.ddp_comm_hooks`."""

from enum import Enum
from functools import partial
from typing import Any

from eager.distributed.algorithms.ddp_comm_hooks import default_hooks

__all__ = ["DDPCommHookType", "default_hooks", "register_ddp_comm_hook"]


def _registered(model: Any, state: Any, comm_hook: Any) -> None:
    model.register_comm_hook(state, comm_hook)


class DDPCommHookType(Enum):
    """The hooks by name. As PyTorch's, without those that make gradients smaller by their rank or to 8 bits."""

    ALLREDUCE = partial(_registered, comm_hook=default_hooks.allreduce_hook)
    FP16_COMPRESS = partial(_registered, comm_hook=default_hooks.fp16_compress_hook)
    BF16_COMPRESS = partial(_registered, comm_hook=default_hooks.bf16_compress_hook)


def register_ddp_comm_hook(comm_hook_type: DDPCommHookType, model: Any, state: Any = None) -> None:
    """Let `model`, a DistributedDataParallel, send its gradients by one of the hooks."""
    comm_hook_type.value(model=model, state=state)
