"""Collectives as XLA has them, inside a program that runs on one device of each process (`graphc.lowering.processes`).

Bools travel as bytes, and what is broadcast as integers of the same bits: a sum with zeros would lose the sign of -0.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from graphc.errors import GraphError
from graphc.scoped import variable

AXIS = "processes"
UNEVEN = (
    "a program over {mesh} processes cannot hold a collective over {group} of them, of which {mesh} is no multiple: "
    "call it outside of the compiled function"
)
SEVERAL = (
    "a program on the mesh axes {axes} cannot hold a collective over {group} of its {mesh} processes: call it outside "
    "of the compiled function"
)
_mesh: ContextVar[tuple[tuple[int, ...], tuple[str, ...]]] = ContextVar("mesh", default=((0,), (AXIS,)))


def over(ranks: tuple[int, ...], axes: tuple[str, ...] = (AXIS,)) -> AbstractContextManager[None]:
    """Context: programs that are traced run on the processes `ranks`, in that order, along these axes of their mesh."""
    return variable(_mesh, (ranks, axes))


class _Group:
    """The processes `ranks` as a part of the mesh.

    groups: None for all; else a division of the mesh into parts of one size, of which only that of `ranks` counts in
    this process: others run programs of their own.
    """

    def __init__(self, ranks: tuple[int, ...]):
        mesh, self.axes = _mesh.get()
        self.size = len(ranks)
        self.groups: list[list[int]] | None = None
        places = list(range(len(mesh)))
        if mesh != ranks:
            if len(self.axes) > 1:
                raise GraphError(SEVERAL.format(axes=", ".join(self.axes), mesh=len(mesh), group=self.size))
            if len(mesh) % self.size:
                raise GraphError(UNEVEN.format(mesh=len(mesh), group=self.size))
            ours = [mesh.index(rank) for rank in ranks]
            others = [place for place in places if place not in ours]
            rest = [others[k : k + self.size] for k in range(0, len(others), self.size)]
            self.groups = [ours, *rest]
            places = [0] * len(mesh)
            for group in self.groups:
                for position, place in enumerate(group):
                    places[place] = position
        self._positions = np.array(places, np.int32)

    def position(self) -> Any:
        """That of this process in the group."""
        return jnp.asarray(self._positions)[lax.axis_index(self.axes)]

    def sum(self, x: Any) -> Any:
        return lax.psum(x, self.axes, axis_index_groups=self.groups)

    def gather(self, x: Any) -> Any:
        return lax.all_gather(x, self.axes, axis_index_groups=self.groups)


def _as_bytes(kernel: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(kernel)
    def function(x: Any, ranks: Sequence[int], **params: Any) -> Any:
        if len(ranks) == 1:
            return kernel(x, None, **params)
        of = x.astype(np.uint8) if x.dtype == np.bool_ else x
        return kernel(of, _Group(tuple(ranks)), **params).astype(x.dtype)

    return function


def _extreme(reduce: Callable[..., Any]) -> Callable[[Any, _Group], Any]:
    return lambda x, group: reduce(x, group.axes, axis_index_groups=group.groups)


def _folded(combine: Callable[[Any, Any], Any]) -> Callable[[Any, _Group], Any]:
    return lambda x, group: functools.reduce(combine, group.gather(x))


_REDUCTIONS: Mapping[str, Callable[[Any, _Group], Any]] = {
    "sum": lambda x, group: group.sum(x), "avg": lambda x, group: group.sum(x) / np.array(group.size, x.dtype),
    "product": _folded(lax.mul), "min": _extreme(lax.pmin), "max": _extreme(lax.pmax), "band": _folded(lax.bitwise_and),
    "bor": _folded(lax.bitwise_or), "bxor": _folded(lax.bitwise_xor),
}  # fmt: skip


@_as_bytes
def all_reduce(x: Any, group: _Group | None, reduction: str) -> Any:
    return x if group is None else _REDUCTIONS[reduction](x, group)


@_as_bytes
def all_gather(x: Any, group: _Group | None) -> Any:
    return x[None] if group is None else group.gather(x)


@_as_bytes
def reduce_scatter(x: Any, group: _Group | None, reduction: str) -> Any:
    if group is None:
        return x[0]
    if reduction == "sum":
        return lax.psum_scatter(x, group.axes, axis_index_groups=group.groups)
    return _REDUCTIONS[reduction](x, group)[group.position()]


@_as_bytes
def all_to_all(x: Any, group: _Group | None) -> Any:
    return x if group is None else lax.all_to_all(x, group.axes, 0, 0, axis_index_groups=group.groups)


@_as_bytes
def broadcast(x: Any, group: _Group | None, source: int) -> Any:
    if group is None:
        return x
    if x.dtype.kind == "c":
        parts = [_sent(part, group, source) for part in (x.real, x.imag)]
        return lax.complex(*parts)
    return _sent(x, group, source)


def _sent(x: Any, group: _Group, source: int) -> Any:
    bits = lax.bitcast_convert_type(x, np.dtype(f"u{x.dtype.itemsize}"))
    ours = lax.select(jnp.full(x.shape, group.position() == source), bits, lax.full_like(bits, 0))
    return lax.bitcast_convert_type(group.sum(ours), x.dtype)


@_as_bytes
def reduce_to(x: Any, group: _Group | None, target: int) -> Any:
    if group is None:
        return x
    return jnp.where(group.position() == target, group.sum(x), lax.full_like(x, 0))


_KERNELS = (all_reduce, all_gather, reduce_scatter, all_to_all, broadcast, reduce_to)
OVERRIDES = {kernel.__name__: kernel for kernel in _KERNELS}
