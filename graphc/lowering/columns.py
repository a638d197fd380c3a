"""Sums over rows of few elements, column by column.

XLA adds up each such row by itself, one element after the other, and computes all that is added up element by element
with indices. As sums of columns the same is a loop over many rows at once. Measured on CPUs, squared distances of all
pairs of 600 points in 3 dimensions take a twentieth of the time, in 8 dimensions a quarter; so do forces between them.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Mapping
from typing import NamedTuple, final

from graphc.ir import Builder, Graph, Node, Symbol
from graphc.ops import OPS
from graphc.ops.dtypes import is_half, is_inexact
from graphc.ops.linalg import split_equation
from graphc.passes.replacing import replaced

FEWEST, MOST, MOST_SPREAD = 2, 8, 16  # columns; of what is not read, but computed of smaller arrays
ROWS = 2**9  # at least
DEEPEST = 32  # nodes that are computed by columns for one sum

_SUM, _EINSUM, _RESHAPE, _SPREAD = (OPS[name] for name in ("sum", "einsum", "reshape", "broadcast_to"))


class _Sum(NamedTuple):
    """A sum over these axes of an array of few columns, or of it times another, without columns and of this shape."""

    of: int
    axes: tuple[int, ...]
    times: int | None = None
    shape: tuple[int, ...] = ()


def by_columns(graph: Graph) -> Graph:
    """`graph` with its sums of arrays of few columns by columns. Rounds differently."""
    nodes = graph.nodes
    if not any(_sum(node, nodes) for node in nodes.values() if node.op is _SUM or node.op is _EINSUM):
        return graph
    builder = Builder.beside(nodes)
    return replaced(graph, builder, _Columns(builder, graph.users()).instead)


def _sum(node: Node, nodes: Mapping[int, Node]) -> _Sum | None:
    """What a node is as a sum that is worth it."""
    found = None
    if node.op is _SUM and node.params["axis"]:
        found = _Sum(node.inputs[0], node.params["axis"])
    elif node.op is _EINSUM and len(node.inputs) == 2:
        found = _weighted(node, nodes)
    if found is None or not is_inexact(node.dtype) or is_half(node.dtype):
        return None
    x = nodes[found.of]
    if not all(type(n) is int for n in x.shape) or not FEWEST <= x.shape[-1] <= MOST_SPREAD:
        return None
    last = found.axes == (x.aval.ndim - 1,)
    if math.prod(x.shape[:-1]) < ROWS or (x.shape[-1] > MOST and not last):
        return None
    return found if (last and x.shape[-1] <= MOST) or _is_spread(x, nodes) else None


def _weighted(node: Node, nodes: Mapping[int, Node]) -> _Sum | None:
    """sum(x * w[..., None], axes), if a product of arrays is that."""
    given, out = split_equation(node.params["equation"])
    for k, (x, w) in enumerate((given, given[::-1])):
        in_order = all([*of] == [c for c in x if c in of] for of in (w, out))
        if in_order and len({*x}) == len(x) and out[-1:] == x[-1:] and x[-1] not in w and len(out) < len(x):
            shape = tuple([n if c in w else 1 for c, n in zip(x, nodes[node.inputs[k]].shape, strict=True)])
            axes = tuple([axis for axis, c in enumerate(x) if c not in out])
            return _Sum(node.inputs[k], axes, node.inputs[1 - k], shape[:-1])
    return None


def _is_spread(x: Node, nodes: Mapping[int, Node]) -> bool:
    """Whether an array of three axes or more is computed of smaller ones: then none is read that lies row by row."""
    stack, seen = [x.id], set[int]()
    while stack and len(seen) < DEEPEST:
        node = nodes[stack.pop()]
        if node.id not in seen and node.size == x.size:
            seen.add(node.id)
            if not node.inputs or not _by_elements(node, nodes):
                return False
            stack += node.inputs
    return not stack and x.aval.ndim > 2


def _by_elements(node: Node, nodes: Mapping[int, Node]) -> bool:
    """Whether each column of a result is computed of the same columns, or all, of its operands."""
    if len(node.results) > 1 or node.check is not None or node.op.impure or node.op.several:
        return False
    if node.op.pointwise or node.op is _SPREAD:
        return True
    return node.op is _RESHAPE and nodes[node.inputs[0]].shape[-1:] == node.shape[-1:]


@final
class _Columns:
    """Writes sums by columns, each column of each node once."""

    def __init__(self, builder: Builder, users: Mapping[int, list[int]]):
        self._builder = builder
        self._users = users
        self._known: dict[tuple[int, int], Symbol] = {}

    def instead(self, node: Node) -> Symbol | None:
        """The same as a sum."""
        sought = _sum(node, self._builder.nodes)
        if sought is None:
            return None
        F, x, axes = self._builder.language, self._builder.nodes[sought.of], sought.axes
        parted = self._parted(node, x)
        columns = [self._column(x.id, k, parted) for k in range(x.shape[-1])]
        if sought.times is not None:
            weights = F.reshape(self._builder.symbol(sought.times), shape=sought.shape)
            columns = [column * weights for column in columns]
        if x.aval.ndim - 1 in axes:
            total = functools.reduce(operator.add, columns)
            found = F.sum(total, axis=axes[:-1], keepdims=False) if len(axes) > 1 else total
        else:
            sums = [F.sum(column, axis=axes, keepdims=False) for column in columns]
            found = F.cat(*[F.reshape(s, shape=(*s.shape, 1)) for s in sums], axis=len(sums[0].shape))
        return found if found.shape == node.shape else F.reshape(found, shape=node.shape)

    def _parted(self, node: Node, x: Node) -> set[int]:
        """What a sum is of that is computed by columns: all that nobody else reads, or that is soon computed again."""
        nodes, size = self._builder.nodes, x.size
        inside, stack, found = {node.id}, [x.id], set[int]()
        while stack and len(found) < DEEPEST:
            below = nodes[stack.pop()]
            if below.id in inside or below.size < size or not below.inputs or not _by_elements(below, nodes):
                continue
            inside.add(below.id)
            if below.op.rule.promote != "float" or inside.issuperset(self._users.get(below.id, ())):
                found.add(below.id)
                stack += below.inputs
        return found

    def _column(self, id: int, k: int, parted: set[int]) -> Symbol:
        """A column of a node, without its last axis."""
        if (id, k) not in self._known:
            self._known[id, k] = self._computed(self._builder.nodes[id], k, parted)
        return self._known[id, k]

    def _computed(self, node: Node, k: int, parted: set[int]) -> Symbol:
        builder, F = self._builder, self._builder.language
        shape = node.shape[:-1]
        if not node.shape:
            return builder.symbol(node.id)
        if node.id in parted:
            if node.op.pointwise:
                given = [self._column(i, k, parted) for i in node.inputs]
                found = builder.emit(node.op, given, node.params)
                return found if found.shape == shape else F.broadcast_to(found, shape=shape)
            below = self._column(node.inputs[0], k, parted)
            return F.reshape(below, shape=shape) if node.op is _RESHAPE else F.broadcast_to(below, shape=shape)
        x = builder.symbol(node.id)
        if node.shape[-1] > 1:
            ends = [(0, n) for n in shape] + [(k, k + 1)]
            start, stop = zip(*ends, strict=True)
            x = F.slice(x, start=start, stop=stop, step=(1,) * len(ends))
        return F.reshape(x, shape=shape)
