"""Stages that are alike, on devices: their parameters are stacked, and a buffer of activations is shifted through them.

A buffer has a row for each stage, and a device for each row. In each step of a loop it is rotated by one row, the next
microbatch is put into the first row, and all stages compute their rows at once. `S` stages are done with `M`
microbatches after `M + S - 1` steps. The rotation is a collective-permute; gradients flow through the loop and are
rotated back. The formulation is that of GSPMD (Xu et al., 2021, section 3.3).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, final

from eager.core.grad_mode import no_grad
from eager.core.interpreter import current_interpreter
from eager.core.parameter import Parameter
from eager.core.tensor import Tensor
from eager.distributed.device_mesh import DeviceMesh
from eager.distributed.tensor import Shard, marks
from eager.engine.language import E
from eager.func import functional_call, vmap
from eager.functional.joining import cat, roll, stack
from eager.functional.lines import arange
from eager.nn import Module
from eager.nn.modules.batchnorm import _BatchNorm

NOT_ALIKE = (
    "pipeline: on a mesh the stages must be alike, but for layers at the beginning of the first stage and at the end "
    "of the last. Stage {k} has {ours}, another {theirs}"
)
STATISTICS = "pipeline: {name} computes statistics of a microbatch, which a pipeline on a mesh does not"
OTHER_SHAPE = "pipeline: on a mesh a stage must return what it takes: it takes {taken}, and returns {made}"


def alike(parts: Sequence[Sequence[Module]]) -> tuple[int, int]:
    """How many layers at the beginning of the first stage, and at the end of the last, the others do not have.

    Raises ValueError if there are no such numbers with which all stages are alike.
    """
    found = [[_structure(layer) for layer in part] for part in parts]
    least = min(map(len, found))
    sizes = [len(found[1])] if len(found) > 2 else range(least, 0, -1)
    for size in sizes:
        first, last = found[0][-size:], found[-1][:size]
        if all(part == first for part in (*found[1:-1], last)) and len(first) == size:
            return len(found[0]) - size, len(found[-1]) - size
    k, other = (1, 0) if len(found) < 3 else (0, 1)
    raise ValueError(NOT_ALIKE.format(k=k, ours=_text(found[k]), theirs=_text(found[other])))


def _structure(layer: Module) -> Any:
    """What layers that are alike have alike: classes, settings as they print, names, shapes and dtypes."""
    tensors = [(name, tuple(t.shape), t.dtype, t.requires_grad) for name, t in _tensors(layer).items()]
    return type(layer), repr(layer), tuple(tensors)


def _text(structure: Sequence[Any]) -> str:
    return ", ".join(repr_ for _, repr_, _ in structure) or "no layers"


def _tensors(layer: Module) -> dict[str, Tensor]:
    return {**dict(layer.named_parameters()), **dict(layer.named_buffers())}


def check(module: Module) -> None:
    """Raise ValueError for layers whose results for a sample depend on the others."""
    for name, layer in module.named_modules():
        if isinstance(layer, _BatchNorm):
            raise ValueError(STATISTICS.format(name=f"{type(layer).__name__} {name!r}"))


@final
class Stacked(Module):
    """Stages that are alike. `template` has the layers of one, and as parameters and buffers those of all, stacked
    along a first dim which is split over `mesh`."""

    def __init__(self, stages: Sequence[Module], mesh: DeviceMesh):
        super().__init__()
        self.count, self.axis = len(stages), (mesh.mesh_dim_names or ("dim0",))[0]
        self.template = copy.deepcopy(stages[0])
        own = [_tensors(stage) for stage in stages]
        for name, tensor in own[0].items():
            with no_grad():
                rows = stack([tensors[name].detach() for tensors in own])
            made = Parameter(rows, tensor.requires_grad) if isinstance(tensor, Parameter) else rows
            where, _, last = name.rpartition(".")
            setattr(self.template.get_submodule(where), last, made)
            marks.add(made, marks.Mark(mesh, (Shard(0),)))

    def run(self, row: dict[str, Tensor], x: Any) -> Any:
        """What a stage makes of `x` with these parameters and buffers."""
        return functional_call(self.template, row, (x,))

    def stage(self, k: int) -> Module:
        """One stage, with its rows of the parameters."""
        return _Stage(self, k)

    def forward(self, microbatches: Tensor) -> Tensor:
        """Of microbatches, stacked, what the last stage makes of each."""
        rows = _tensors(self.template)
        run: Callable[..., Any] = vmap(self.run)
        start = self._held(E.clone(microbatches[:1].expand(self.count, *microbatches.shape[1:])))
        # when there are no more microbatches, the stages go on with the last one, and nobody reads what they make
        idle = microbatches[-1:].expand(self.count - 1, *microbatches.shape[1:])
        is_first, is_last = (self._row(k, microbatches.dim()) for k in (0, self.count - 1))

        def step(buffer: Tensor, new: Tensor) -> tuple[Tensor, Tensor]:
            made = run(rows, self._held(E.where(is_first, new, roll(buffer, 1, 0))))
            if tuple(made.shape) != tuple(buffer.shape):
                raise ValueError(OTHER_SHAPE.format(taken=tuple(buffer.shape[1:]), made=tuple(made.shape[1:])))
            made = self._held(made)
            return made, made

        _, found = current_interpreter().scan(step, start, cat([microbatches, idle]), False)
        # the others' rows are zeros here, so a sum over the stages is what the last has made
        return E.where(is_last, found[self.count - 1 :], found.new_zeros(())).sum(1)

    def _row(self, k: int, ndim: int) -> Tensor:
        return (arange(self.count) == k).reshape(-1, *(1,) * (ndim - 1))

    def _held(self, x: Tensor) -> Tensor:
        """`x`, a row on each device. Its other dims lie where XLA likes."""
        return E.shard(x, spec=((self.axis,), *(None,) * (x.dim() - 1)))


class _Stage(Module):
    def __init__(self, stacked: Stacked, k: int):
        super().__init__()
        self._of = (stacked, k)  # in a tuple: its parameters are not this module's

    def forward(self, x: Any) -> Any:
        stacked, k = self._of
        return stacked.run({name: t[k] for name, t in _tensors(stacked.template).items()}, x)
