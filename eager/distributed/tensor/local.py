"""A tensor on a mesh of processes, and the part of it that this process has. Gradients flow both ways."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from eager.core import tape
from eager.core.devices import device_of_mesh
from eager.core.interpreter import current_interpreter
from eager.core.placed import Placed, over
from eager.core.runtime import runtime
from eager.core.state import grad_enabled
from eager.core.tensor import Tensor
from eager.distributed.device_mesh import DeviceMesh
from eager.distributed.tensor.placements import Partial, Placement, Shard, dims_of
from eager.engine.crossing import crossings
from eager.engine.language import E

__all__ = ["joined", "part_of", "reduced"]

UNEVEN = (
    "from_local: a dim of {length} elements that several mesh dims divide, of which it is no multiple: parts of {part}"
)
IN_A_PROGRAM = "from_local in a compiled program: the parts make up {found}, not {shape}"
SUMS = ("sum", "avg")  # what terms are reduced by where they are put together
# what combines terms that lie along a dim
_REDUCE = {
    "sum": lambda x: E.sum(x, axis=(0,), keepdims=False), "avg": lambda x: E.mean(x, axis=(0,), keepdims=False),
    "max": lambda x: E.amax(x, axis=(0,), keepdims=False), "min": lambda x: E.amin(x, axis=(0,), keepdims=False),
    "product": lambda x: E.prod(x, axis=(0,), keepdims=False),
}  # fmt: skip


def reduced(op: str, terms: Tensor) -> Tensor:
    """What the terms along the first dim come to. ValueError for an unknown reduction."""
    if op not in _REDUCE:
        raise ValueError(f"Partial: known reductions are {', '.join(_REDUCE)}, got {op!r}")
    return _REDUCE[op](terms)


def joined(
    part: Tensor, mesh: DeviceMesh, placements: Sequence[Placement], shape: Sequence[int] | None = None
) -> Tensor:
    """The tensor on the mesh of which each process has a `part` as `placements` say. Terms (Partial) are reduced.

    shape: that of the whole, where the parts are not of one size. ValueError if they cannot make it up.
    """
    traced = not current_interpreter().immediate
    partial = [
        k for k, p in enumerate(placements)
        if isinstance(p, Partial) and not (traced and p.reduce_op in SUMS)
    ]  # fmt: skip
    for _ in partial:  # the processes' terms lie along a dim of their own
        part = part.unsqueeze(0)
    lead = len(partial)
    laid = [
        Shard(partial.index(k)) if k in partial else Shard(p.dim + lead) if isinstance(p, Shard) else p
        for k, p in enumerate(placements)
    ]
    found = _joined(part, mesh, laid, None if shape is None else (*(1,) * lead, *shape), lead)
    for k in partial:
        found = reduced(placements[k].reduce_op, found)  # type: ignore[attr-defined]
    return found


def _joined(
    part: Tensor, mesh: DeviceMesh, placements: Sequence[Placement], shape: Sequence[int] | None, lead: int
) -> Tensor:
    if not current_interpreter().immediate:
        found = E.from_local(part, mesh=mesh._description, dims=_numbered(placements))
        if shape is not None and tuple(shape) != tuple(found.shape):
            raise NotImplementedError(IN_A_PROGRAM.format(found=tuple(found.shape), shape=tuple(shape)))
        return found
    dims = dims_of(placements, mesh._own_axes, part.ndim)
    sizes = dict(zip(mesh._own_axes, mesh.shape, strict=True))
    wanted: dict[int, int] = {}  # lengths that parts of one size cannot make up
    for d, axes in enumerate(dims):
        if not axes or shape is None or d < lead:
            continue
        length, count = shape[d], _count(axes, sizes)
        if part.shape[d] != (own := mesh._chunk(length, axes)).stop - own.start:
            raise ValueError(f"from_local: a part of {tuple(part.shape)} is not this process's of {tuple(shape)}")
        if length % count:
            if len(axes) > 1:
                raise NotImplementedError(UNEVEN.format(length=length, part=tuple(part.shape)))
            wanted[d] = length
            part = _padded(part, d, -(-length // count))
    whole = tuple(n * _count(axes, sizes) for n, axes in zip(part.shape, dims, strict=True))
    where = device_of_mesh(mesh)
    found = Tensor._wrap(Placed(runtime().joined(part._array(), whole, over(where, dims)), where))
    if part._n is not None and grad_enabled():
        crossings[:] = [True]
        found._n = tape.new_node(_FROM_LOCAL, [mesh, tuple(placements)], part._n)
    for d, length in wanted.items():
        found = found.narrow(d, 0, length).clone()
        found._d.memory.dims = dims
    return found


def _numbered(placements: Sequence[Any]) -> tuple[Any, ...]:
    """Placements as the ops `to_local` and `from_local` take them."""
    return tuple(
        (p.reduce_op, -1) if isinstance(p, Partial) else p.dim if isinstance(p, Shard) else -1 for p in placements
    )


def averaged(tensor: Any, over: Sequence[bool]) -> Tensor:
    """`part_of` in a program, of a tensor that is gathered along the axes of its mesh that are `over`, and whose
    gradients are averaged along these: each process gets its part of the mean."""
    mesh, lie = tensor.device.mesh, _numbered(tensor.placements)
    rest = [how for how, own in zip(lie, over, strict=True) if not own]
    gathered = tuple(-1 if own else how for how, own in zip(lie, over, strict=True))
    # of a dim that others split, too, the parts would come in another order
    back = tuple(("avg", -1 if how in rest else how) if own else how for how, own in zip(lie, over, strict=True))
    return E.to_local(tensor, mesh=mesh._description, dims=gathered, gradients=back)


def _count(axes: Sequence[str], sizes: dict[str, int]) -> int:
    return math.prod(sizes[axis] for axis in axes)


def _padded(part: Tensor, dim: int, length: int) -> Tensor:
    missing = [*part.shape]
    missing[dim] = length - part.shape[dim]
    return E.cat(part, part.new_zeros(missing), axis=dim) if missing[dim] else part


def part_of(tensor: Any, gradients: Sequence[Placement] | None = None) -> Tensor:
    """What this process has of a tensor on a mesh, as a plain tensor.

    gradients: how the gradients that the processes find of their parts make up that of the whole; None: as the tensor
    lies.
    """
    mesh, placements = tensor.device.mesh, tensor.placements
    if not current_interpreter().immediate:
        back = () if gradients is None else _numbered(gradients)
        return E.to_local(tensor, mesh=mesh._description, dims=_numbered(placements), gradients=back)
    found = Tensor._wrap(tensor._d.local())
    if tensor._n is not None and grad_enabled():
        crossings[:] = [True]
        saved = [mesh, tuple(placements if gradients is None else gradients), tuple(tensor.shape)]
        found._n = tape.new_node(_TO_LOCAL, saved, tensor._n)
    return found


def _back_to_part(node: tape.Node, g: Any) -> list[Any]:
    mesh, placements = node[tape.SAVED]
    return [part_of(g.redistribute(mesh, placements))]


def _back_to_whole(node: tape.Node, g: Any) -> list[Any]:
    mesh, placements, shape = node[tape.SAVED]
    return [joined(g, mesh, placements, shape)]


def _crossing(name: str, back: Any) -> tape.Backward:
    def on_arrays(node: tape.Node, g: Any, heap: list[tape.Node]) -> None:
        (moved,) = back(node, Tensor._wrap(g))
        tape.give(node[tape.PARENTS], moved._array(), heap)

    return tape.Backward(on_arrays, name, on_tensors=back, crosses=True)


_FROM_LOCAL = _crossing("_FromTorchTensorBackward", _back_to_part)
_TO_LOCAL = _crossing("_ToTorchTensorBackward", _back_to_whole)
