"""Fully sharded data parallelism. As `torch.distributed.fsdp.fully_shard`; and ZeRO's stages, by name.

Parameters, their gradients and what an optimizer keeps for them lie in parts, and are gathered for the forward of their
module: by its hooks, or by the program that a step is compiled to. The stages 1 and 2 of ZeRO are of compiled programs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from eager.core.dtypes import dtype
from eager.core.tensor import Tensor
from eager.distributed.device_mesh import DeviceMesh, init_device_mesh, meet
from eager.distributed.fsdp.gathering import Gathering
from eager.distributed.tensor import marks
from eager.distributed.tensor.dtensor import available
from eager.distributed.tensor.modules import distribute_parameter
from eager.distributed.tensor.placements import Placement, Replicate, Shard
from eager.nn import Module
from graphc.lazy import lazy

# module -> the public names that it has: those of the older wrapper
_NAMES = {
    "eager.distributed.fsdp.fully_sharded_data_parallel": "FullyShardedDataParallel",
    "eager.distributed.fsdp.api": "BackwardPrefetch CPUOffload FullOptimStateDictConfig FullStateDictConfig "
    "LocalOptimStateDictConfig LocalStateDictConfig MixedPrecision OptimStateDictConfig OptimStateKeyType "
    "ShardedOptimStateDictConfig ShardedStateDictConfig ShardingStrategy StateDictConfig StateDictSettings "
    "StateDictType",
}
_WHERE = {name: module for module, names in _NAMES.items() for name in names.split()}
_MODULES = ("api", "fully_sharded_data_parallel", "sharded_grad_scaler", "wrap")

__all__ = [  # pyright: ignore[reportUnsupportedDunderAll]
    "CPUOffloadPolicy", "FSDPModule", "MixedPrecisionPolicy", "OffloadPolicy", "UnshardHandle", "fully_shard",
    "register_fsdp_forward_method", "zero", *_WHERE,
]  # fmt: skip
__getattr__, __dir__ = lazy(__name__, _WHERE, _MODULES)


@dataclass(frozen=True)
class MixedPrecisionPolicy:
    """The dtypes in which modules compute and gradients are summed; None: those of the parameters."""

    param_dtype: dtype | None = None
    reduce_dtype: dtype | None = None
    output_dtype: dtype | None = None
    cast_forward_inputs: bool = True


@dataclass
class OffloadPolicy:
    """Nothing is moved to the host."""


@dataclass
class CPUOffloadPolicy(OffloadPolicy):
    """Parameters lie in the host's memory when nothing computes with them."""

    pin_memory: bool = True


class UnshardHandle:
    """What `unshard(async_op=True)` returns."""

    def wait(self) -> None:
        """No effect."""


class FSDPModule:
    """What a module is an instance of once `fully_shard` has been called on it. As `torch.distributed.fsdp`'s.

    Its methods say when parameters are gathered and gradients exchanged, not what they are: parameters are gathered
    for each forward, and gradients are averaged in each backward pass, so these have no effect.
    """

    def set_requires_gradient_sync(self, requires_gradient_sync: bool, *, recurse: bool = True) -> None:
        """No effect: gradients add up in parts, to the same sum."""

    def set_requires_all_reduce(self, requires_all_reduce: bool, *, recurse: bool = True) -> None:
        """No effect, as `set_requires_gradient_sync`."""

    def set_is_last_backward(self, is_last_backward: bool) -> None:
        """No effect: nothing waits for a last backward pass."""

    def set_reshard_after_forward(self, reshard_after_forward: bool, recurse: bool = True) -> None:
        """No effect, as the argument of `fully_shard`."""

    def set_reshard_after_backward(self, reshard_after_backward: bool, *, recurse: bool = True) -> None:
        """No effect: what was gathered is gone after the backward pass."""

    def set_modules_to_forward_prefetch(self, modules: Iterable[Module]) -> None:
        """No effect: nothing is gathered early."""

    def set_modules_to_backward_prefetch(self, modules: Iterable[Module]) -> None:
        """No effect: nothing is gathered early."""

    def unshard(self, async_op: bool = False) -> UnshardHandle | None:
        """No effect: the next forward gathers. async_op: returns what can be waited for."""
        return UnshardHandle() if async_op else None

    def reshard(self) -> None:
        """No effect: parameters are in parts but for their module's forward."""


def fully_shard(
    module: Module, *, mesh: DeviceMesh | None = None, reshard_after_forward: bool | int | None = None,
    shard_placement_fn: Callable[[Tensor], Shard | None] | None = None, mp_policy: MixedPrecisionPolicy | None = None,
    offload_policy: OffloadPolicy | None = None, ignored_params: set[Tensor] | None = None,
) -> Module:  # fmt: skip
    """Hold the parameters of `module` in parts over the mesh, along dim 0 or as `shard_placement_fn` says.

    A parameter of which no dim divides by the mesh stays whole (PyTorch pads it). Of a mesh with two dims the first
    replicates (HSDP). Plain tensors given to `module` are a batch of all devices: they are split along dim 0, and what
    is then returned is whole again; DTensors stay as they are. What a gradient needs of gathered parameters is kept
    until then (in compiled programs that is XLA's choice), so `reshard_after_forward` changes nothing.

    Between processes each has its own batch, as in PyTorch: the module computes with plain tensors, op by op, and
    gradients are averaged. Without a mesh all processes are one. `mp_policy` is the dtype that parameters are gathered
    in; gradients are averaged in that of the parameter, or more. Raises ValueError without a mesh in one process,
    NotImplementedError to offload from an accelerator.
    """
    if mesh is None:
        if (size := meet()) == 1:
            raise ValueError("fully_shard: pass mesh=; there is no default process group to make one of")
        mesh = init_device_mesh("cpu", (size,))
    if offload_policy not in (None, OffloadPolicy()) and mesh.device_type != "cpu":
        raise NotImplementedError("fully_shard: offload_policy")
    if mesh.ndim not in (1, 2):
        raise ValueError(f"fully_shard expects a 1D or 2D DeviceMesh but got {mesh}")
    policy = mp_policy or MixedPrecisionPolicy()
    module.__dict__["_gathering"] = held_in_parts(module, mesh, policy, shard_placement_fn, ignored_params)
    kind: type = type(module)
    if not isinstance(module, FSDPModule):
        module.__class__ = _KINDS.setdefault(kind, type(f"FSDP{kind.__name__}", (FSDPModule, kind), {}))
    return module


def held_in_parts(
    module: Module, mesh: DeviceMesh, policy: MixedPrecisionPolicy,
    choose: Callable[[Tensor], Shard | None] | None = None, ignored: set[Tensor] | None = None,
) -> Gathering:  # fmt: skip
    """Lay the parameters of `module` in parts over the mesh, but for those that a module inside has laid. Returns what
    gathers them, for each forward of `module` by itself."""
    owned = [p for p in _parameters([module], ignored) if not any(m.gathered for m in marks.of(p))]
    split = {id(parameter): _split(parameter, mesh, stage=3, choose=choose) for parameter in owned}
    gathering = Gathering(module, split, mesh, policy)
    if available(mesh):
        gathering.install()
    return gathering


_KINDS: dict[type, type] = {}  # as PyTorch does it, a module becomes one of a class that also is FSDPModule


def register_fsdp_forward_method(module: Module, method_name: str) -> None:
    """Let a method of `module` gather its parameters, as its forward does. No effect if `fully_shard` has not been
    called on it, AttributeError for no method. As PyTorch's."""
    method = getattr(module, method_name)
    gathering = module.__dict__.get("_gathering")
    if gathering is not None:
        setattr(module, method_name, gathering.around(method))


def zero(module: Module, mesh: DeviceMesh, stage: int) -> Module:
    """Stages 1 and 2 of ZeRO, which are one here: gradients, and what an optimizer keeps for each parameter, are held
    in parts. Stage 3: parameters, too, as `fully_shard` does.

    Not in PyTorch, whose `ZeroRedundancyOptimizer` is stage 1.
    """
    if stage not in (1, 2, 3):
        raise ValueError(f"zero: stages are 1, 2 and 3, got {stage!r}")
    for parameter in _parameters([module], None):
        _split(parameter, mesh, stage, None)
    return module


def _parameters(modules: Iterable[Module], ignored: set[Tensor] | None) -> list[Tensor]:
    left = {id(p) for p in ignored or ()}
    return [p for m in modules for p in m.parameters() if id(p) not in left]


def _split(
    parameter: Tensor, mesh: DeviceMesh, stage: int, choose: Callable[[Tensor], Shard | None] | None
) -> list[Placement]:  # fmt: skip
    """Mark one parameter: split along the chosen dim, or the first that divides. Returns how it is."""
    count = mesh.shape[-1]
    taken = [1] * parameter.ndim  # parts that other marks make of each dim
    for mark in marks.of(parameter):
        for placement, n in zip(mark.placements, mark.mesh.shape, strict=True):
            if isinstance(placement, Shard) and not mark.gathered and mark.mesh != mesh:
                taken[placement.dim] *= n
    wish = None if choose is None else choose(parameter)
    dims = range(parameter.ndim) if wish is None else [wish.dim % parameter.ndim]
    dim = next((d for d in dims if parameter.shape[d] % (count * taken[d]) == 0), None)
    whole: list[Placement] = [Replicate()] * mesh.ndim
    split = whole if dim is None else [*whole[:-1], Shard(dim)]
    if stage == 3:
        distribute_parameter(parameter, mesh, split, None, gathered=True)
    else:
        marks.add(parameter, marks.Mark(mesh, tuple(whole)), marks.Mark(mesh, tuple(split), state=True))
    return split
