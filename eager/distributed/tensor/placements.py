"""How a tensor lies on one dim of a mesh: split, whole, or as terms of a sum. As `torch.distributed.tensor`'s."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, final

from graphc.ops.rules import normalize_axis

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


class Placement:
    """How a tensor lies on one dim of a mesh."""

    __slots__ = ()

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether it is split, along tensor dim `dim` if one is given."""
        return False

    def is_replicate(self) -> bool:
        """Whether each device has all of it."""
        return False

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Whether the devices have terms of it, which `reduce_op` combines if one is given."""
        return False


@final
@dataclass(frozen=True, slots=True)
class Shard(Placement):
    """Tensor dim `dim` is split over the mesh dim: evenly, the first devices with the larger parts."""

    dim: int

    def __post_init__(self) -> None:
        try:
            operator.index(self.dim)
        except TypeError:
            raise TypeError(f"Shard(): expected an int for dim, got {type(self.dim).__name__}") from None

    def is_shard(self, dim: int | None = None) -> bool:
        return dim is None or self.dim == dim

    def __str__(self) -> str:
        return f"S({self.dim})"


@final
@dataclass(frozen=True, slots=True)
class _StridedShard(Placement):
    """Tensor dim `dim`, of which each of `split_factor` parts is split. Libraries ask for it; no mesh takes it here."""

    dim: int
    split_factor: int = 1


@final
@dataclass(frozen=True, slots=True)
class Replicate(Placement):
    """Each device of the mesh dim has all of it."""

    def is_replicate(self) -> bool:
        return True

    def __str__(self) -> str:
        return "R"


@final
@dataclass(frozen=True, slots=True, repr=False)
class Partial(Placement):
    """The devices of the mesh dim have terms, which `reduce_op` ("sum", "avg", "max", ...) combines."""

    reduce_op: str = "sum"

    def is_partial(self, reduce_op: str | None = None) -> bool:
        return reduce_op is None or self.reduce_op == reduce_op

    def __repr__(self) -> str:
        return f"Partial({self.reduce_op})"

    def __str__(self) -> str:
        return f"P({self.reduce_op})"


def checked(placements: Any, ndim: int, of_tensor: int | None = None) -> tuple[Placement, ...]:
    """`placements` as a tuple of one for each of `ndim` mesh dims; None replicates. Raises PyTorch's errors.

    of_tensor: the number of dims of the tensor, which negative dims of shards count from.
    """
    if placements is None:
        return (Replicate(),) * ndim
    given = (placements,) if isinstance(placements, Placement) else tuple(placements)
    for placement in given:
        if not isinstance(placement, Placement):
            raise TypeError(f"expected a Placement for each mesh dim, got {type(placement).__name__}")
    if len(given) != ndim:
        raise ValueError(
            f"`placements` must have the same length as `device_mesh.ndim`! Found placements length: {len(given)}, "
            f"and device_mesh.ndim: {ndim}."
        )
    if of_tensor is None:
        return given
    if not of_tensor and any(isinstance(p, Shard) for p in given):
        raise AssertionError(f"Expected tensor.dim() > 0, got {of_tensor}")
    return tuple(Shard(normalize_axis(p.dim, of_tensor)) if isinstance(p, Shard) else p for p in given)


def dims_of(placements: Iterable[Placement], axes: Iterable[str], ndim: int) -> tuple[tuple[str, ...], ...]:
    """For each of `ndim` dims of a tensor, the mesh axes that it is split over, given a placement for each axis."""
    found: list[tuple[str, ...]] = [()] * ndim
    for placement, axis in zip(placements, axes, strict=True):
        if isinstance(placement, Shard):
            found[placement.dim] = (*found[placement.dim], axis)
    return tuple(found)


def placements_of(dims: Iterable[Iterable[str]], axes: Iterable[str]) -> tuple[Placement, ...]:
    """The placement on each axis of a mesh, given the axes that each dim of a tensor is split over."""
    by_axis = {axis: d for d, over in enumerate(dims) for axis in over}
    return tuple(Shard(by_axis[axis]) if axis in by_axis else Replicate() for axis in axes)
