"""Arrays laid in their places in a larger one: sums of those in the same place, and concatenations, before pads."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from graphc.ir import Symbol
from graphc.ops import OPS
from graphc.ops.dtypes import is_inexact

_BROADCAST_TO, _PAD, _MUL = OPS["broadcast_to"], OPS["pad_zeros"], OPS["mul"]
ENOUGH = 4  # products that are worth a copy of their operands


class Piece(NamedTuple):
    """Part of a result.

    groups  the axes of the result that each axis of the array stands for, in row-major order
    low     where it begins, along each
    is_sum  whether no element is -0: the sum of several numbers begins with +0
    """

    groups: tuple[tuple[int, ...], ...]
    array: Symbol
    low: tuple[int, ...]
    is_sum: bool

    def end(self, axis: int) -> int:
        """Where it ends."""
        return self.low[axis] + self.array.shape[axis]


def laid(F: Any, pieces: Sequence[Piece], shape: Sequence[int], dtype: Any) -> Symbol:
    """The sum of `pieces`, each with zeros around it."""
    if not pieces:
        return F.full(shape=tuple(shape), value=0, dtype=dtype)
    groups: dict[tuple[tuple[int, ...], ...], list[Piece]] = {}
    for piece in pieces:
        groups.setdefault(piece.groups, []).append(piece)
    parts: list[Symbol] = []
    for axes, own in groups.items():
        whole = [math.prod([shape[k] for k in group]) for group in axes]
        array = _joined(F, own, [0] * len(whole), whole)
        order = [k for group in axes for k in group]
        array = _reshaped(F, array, [shape[k] for k in order])
        back = tuple([order.index(k) for k in range(len(order))])
        parts.append(array if back == tuple(range(len(back))) else F.permute(array, dims=back))
    return _added(parts)


def padded(F: Any, array: Symbol, low: Sequence[int], whole: Sequence[int], step: Sequence[int]) -> Symbol:
    """With zeros before, after and between, to the sizes `whole`."""
    if tuple(whole) == array.shape:
        return array
    ends = [a + (n - 1) * s + 1 for a, n, s in zip(low, array.shape, step, strict=True)]
    high = tuple([n - end for n, end in zip(whole, ends, strict=True)])
    node = array.builder.nodes[array.id]
    if node.op is _PAD and set(step) == {1}:  # zeros around zeros between
        inner, steps = array.builder.symbol(node.inputs[0]), [n + 1 for n in node.params["interior"]]
        return padded(F, inner, [a + b for a, b in zip(low, node.params["low"], strict=True)], whole, steps)
    return F.pad_zeros(array, low=tuple(low), high=high, interior=tuple([s - 1 for s in step]))


def _joined(F: Any, pieces: Sequence[Piece], low: Sequence[int], high: Sequence[int]) -> Symbol:
    """The box of the result from `low` to `high`, in which all pieces lie."""
    same: dict[tuple[tuple[int, ...], tuple[int, ...]], list[Piece]] = {}
    for piece in pieces:
        same.setdefault((piece.low, piece.array.shape), []).append(piece)
    sums = [p[0]._replace(array=_added([q.array for q in p]), is_sum=any(q.is_sum for q in p)) for p in same.values()]
    room = [b - a for a, b in zip(low, high, strict=True)]
    full = [p.array for p in sums if p.array.shape == tuple(room)]
    rest = [p for p in sums if p.array.shape != tuple(room)]
    if not rest:
        return _added(full)
    cuts = _cuts(rest, low, high)
    if cuts is None:
        for p in rest:
            full.append(padded(F, p.array, [a - b for a, b in zip(p.low, low, strict=True)], room, [1] * len(room)))
        return _added(full)
    axis, runs = cuts
    parts: list[Symbol] = []
    at = low[axis]
    for run in runs:
        first, last = min(p.low[axis] for p in run), max(p.end(axis) for p in run)
        if first > at:
            parts.append(_zeros(F, room, axis, first - at, rest[0].array.dtype))
        parts.append(_joined(F, [_with_zero(p) for p in run], _put(low, axis, first), _put(high, axis, last)))
        at = last
    if at < high[axis]:
        parts.append(_zeros(F, room, axis, high[axis] - at, rest[0].array.dtype))
    return _added([*full, F.cat(*parts, axis=axis)])


def _with_zero(piece: Piece) -> Piece:
    """With +0 for -0, as in a sum with zeros."""
    if piece.is_sum or not is_inexact(piece.array.dtype):
        return piece
    return piece._replace(array=piece.array + 0.0, is_sum=True)


def _cuts(pieces: Sequence[Piece], low: Sequence[int], high: Sequence[int]) -> tuple[int, list[list[Piece]]] | None:
    """An axis along which pieces lie one after the other, in runs of those that overlap."""
    for axis in range(len(low)):
        runs: list[list[Piece]] = []
        end = -1
        for piece in sorted(pieces, key=lambda p: p.low[axis]):
            if piece.low[axis] >= end:
                runs.append([])
            runs[-1].append(piece)
            end = max(end, piece.end(axis))
        if len(runs) > 1:
            return axis, runs
    return None


def _zeros(F: Any, room: Sequence[int], axis: int, count: int, dtype: Any) -> Symbol:
    return F.full(shape=tuple(_put(room, axis, count)), value=0, dtype=dtype)


def _put(values: Sequence[int], k: int, one: int) -> list[int]:
    return [*values[:k], one, *values[k + 1 :]]


def _added(arrays: Sequence[Symbol]) -> Symbol:
    arrays = _multiplied_at_once(arrays)
    if len(arrays) == 1:
        return arrays[0]
    shape = arrays[0].shape
    total, *rest = sorted([_before_spread(a) for a in arrays], key=lambda a: a.aval.size)
    for array in rest:
        total = total + array
    return total if total.shape == shape else total.builder.language.broadcast_to(total, shape=shape)


def _multiplied_at_once(arrays: Sequence[Symbol]) -> Sequence[Symbol]:
    """The arrays, with many outer products as one product of matrices: it adds them up as it makes them."""
    outer = [array for array in arrays if _is_outer(array)]
    if len(outer) < ENOUGH:
        return arrays
    builder = outer[0].builder
    pairs = [[builder.symbol(i) for i in builder.nodes[array.id].inputs] for array in outer]
    sides = [[x if x.shape[k] != 1 else y for x, y in pairs] for k in range(2)]
    F = builder.language
    columns, rows = (F.cat(*[F.reshape(x, shape=(1, x.aval.size)) for x in side], axis=0) for side in sides)
    return [*[a for a in arrays if not _is_outer(a)], F.einsum(columns, rows, equation="ab,ac->bc")]


def _is_outer(array: Symbol) -> bool:
    """Whether an array is a column times a row."""
    node = array.builder.nodes[array.id]
    if node.op is not _MUL or len(array.shape) != 2 or 1 in array.shape or not is_inexact(array.dtype):
        return False
    shapes = {array.builder.nodes[i].shape for i in node.inputs}
    return shapes == {(array.shape[0], 1), (1, array.shape[1])}


def _before_spread(x: Symbol) -> Symbol:
    """What a sum needs of a term: it spreads its operands by itself."""
    node = x.builder.nodes[x.id]
    return x.builder.symbol(node.inputs[0]) if node.op is _BROADCAST_TO else x


def _reshaped(F: Any, array: Symbol, shape: Sequence[int]) -> Symbol:
    return array if array.shape == tuple(shape) else F.reshape(array, shape=tuple(shape))
