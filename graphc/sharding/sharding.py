"""Sharding: which axes of a mesh each dim of a value is split over. PyTorch's placements, and JAX's specs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, final

from eager.distributed.tensor.placements import Partial, Placement, Replicate, Shard, checked
from graphc.sharding.mesh import Mesh

Axes = tuple[str, ...]


@final
class P(tuple[Any, ...]):
    """A spec as JAX writes it: for each dim, an axis of the mesh, a tuple of some, or None. Further dims are whole.

    >>> P("data", None)
    P('data', None)
    """

    __slots__ = ()

    def __new__(cls, *dims: Any) -> P:
        return super().__new__(cls, dims)

    def __repr__(self) -> str:
        return f"P({', '.join(map(repr, self))})"


@final
class Sharding(NamedTuple):
    """How a value lies on a mesh.

    dims     the mesh axes that each dim is split over, the major one first
    partial  the axes along which devices have terms of a sum
    """

    dims: tuple[Axes, ...]
    partial: Axes = ()

    @classmethod
    def whole(cls, ndim: int) -> Sharding:
        """Every device has all of it."""
        return cls(((),) * ndim)

    @property
    def axes(self) -> Axes:
        """All axes that a dim is split over."""
        return tuple(axis for axes in self.dims for axis in axes)

    def has_parts_of(self, other: Sharding) -> bool:
        """Whether each dim is split over the same axes, in any order."""
        return [*map(frozenset, self.dims)] == [*map(frozenset, other.dims)]

    @property
    def is_whole(self) -> bool:
        """Whether every device has all of it."""
        return not self.axes and not self.partial

    @property
    def spec(self) -> P:
        """As JAX writes it. Raises ValueError for terms of a sum, which it has no word for."""
        if self.partial:
            raise ValueError(f"a PartitionSpec cannot say that a value is a sum over {', '.join(self.partial)}")
        return P(*[None if not axes else axes[0] if len(axes) == 1 else axes for axes in self.dims])

    def placements(self, mesh: Mesh) -> tuple[Placement, ...]:
        """As PyTorch writes it, one for each axis of the mesh.

        Raises ValueError where a dim is split over axes in another order than the mesh has them: PyTorch's placements
        split from the first axis to the last.
        """
        found: list[Placement] = []
        for axis in mesh.names:
            dims = [d for d, axes in enumerate(self.dims) if axis in axes]
            found.append(Shard(dims[0]) if dims else Partial() if axis in self.partial else Replicate())
        if any([*axes] != sorted(axes, key=mesh.names.index) for axes in self.dims):
            raise ValueError(f"placements cannot say {self} on {mesh}: axes in another order than the mesh's")
        return tuple(found)

    def local(self, shape: Sequence[int], mesh: Mesh) -> tuple[int, ...]:
        """The shape of the part of one device, the largest."""
        return tuple(-(-n // mesh.count(axes)) for n, axes in zip(shape, self.dims, strict=True))

    def __str__(self) -> str:
        dims = ", ".join("+".join(axes) or "-" for axes in self.dims)
        return f"{{{dims}}}" + (f" sum over {'+'.join(self.partial)}" if self.partial else "")


def sharding_of(given: Any, ndim: int, mesh: Mesh) -> Sharding:
    """The sharding of a value with `ndim` dims that a user means by placements, a spec, a Sharding, or None (whole).

    Raises TypeError for anything else, ValueError for one that such a value cannot have.
    """
    if given is None:
        return Sharding.whole(ndim)
    if isinstance(given, Sharding):
        found = given
    elif isinstance(given, Placement) or (given and not isinstance(given, P) and _are_placements(given)):
        found = _of_placements(checked(given, len(mesh.names)), ndim, mesh)
    else:
        try:
            found = _of_spec(tuple(given), ndim)  # jax.sharding.PartitionSpec can be read like one
        except TypeError:
            raise TypeError(
                f"a sharding is written as placements, one for each axis of the mesh, or as P(...), got {given!r}"
            ) from None
    return _checked(found, ndim, mesh, given)


def _are_placements(given: Any) -> bool:
    return isinstance(given, (tuple, list)) and all(isinstance(p, Placement) for p in given)


def _of_placements(given: tuple[Placement, ...], ndim: int, mesh: Mesh) -> Sharding:
    dims: list[Axes] = [()] * ndim
    partial: list[str] = []
    for axis, placement in zip(mesh.names, given, strict=True):
        if isinstance(placement, Shard):
            if not -ndim <= placement.dim < ndim:
                raise ValueError(f"{placement!r} of a value with {ndim} dims")
            dims[placement.dim] = (*dims[placement.dim], axis)
        elif isinstance(placement, Partial):
            if placement.reduce_op != "sum":
                raise ValueError(f"terms are combined by sums here, not by {placement.reduce_op!r}")
            partial.append(axis)
    return Sharding(tuple(dims), tuple(partial))


def _of_spec(given: tuple[Any, ...], ndim: int) -> Sharding:
    if len(given) > ndim:
        raise ValueError(f"P{given} has {len(given)} dims, the value {ndim}")
    dims = [() if e is None else (e,) if isinstance(e, str) else tuple(e) for e in given]
    return Sharding((*dims, *((),) * (ndim - len(dims))))


def _checked(found: Sharding, ndim: int, mesh: Mesh, given: Any) -> Sharding:
    used = [*found.axes, *found.partial]
    if len(found.dims) != ndim:
        raise ValueError(f"{given!r} has {len(found.dims)} dims, the value {ndim}")
    for axis in used:
        if axis not in mesh.names:
            raise ValueError(f"{given!r}: the mesh has no axis {axis!r}; it has {', '.join(map(repr, mesh.names))}")
    if len(set(used)) != len(used):
        raise ValueError(f"{given!r} uses an axis of the mesh twice")
    return found


def check_divides(sharding: Sharding, shape: Sequence[int], mesh: Mesh, what: str) -> None:
    """Raise ValueError unless each dim of `shape` can be split evenly."""
    for d, (n, axes) in enumerate(zip(shape, sharding.dims, strict=True)):
        if n % (count := mesh.count(axes)):
            raise ValueError(
                f"{what}: dim {d} of shape {tuple(shape)} is split over {'+'.join(axes)}, {count} devices, "
                f"which does not divide {n}. Remedy: another batch or mesh size, or padding"
            )
