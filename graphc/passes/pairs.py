"""What is computed of the pairs that `triu_indices` picks from a matrix, and added up: of all, and a triangle of that.

    sum(f(S[i, j])) over i < j = sum(triu(f(S), 1))

A gather of half of the elements takes several times as long as a function of all. Gradients are put at such places:
they are a triangle, too, which other passes know.
"""

from __future__ import annotations

from typing import Any, NamedTuple, final

import numpy as np

from graphc.facts.held import Held
from graphc.ir import Builder, Graph, Node, Symbol
from graphc.ops import OPS
from graphc.ops.dtypes import is_floating
from graphc.passes.replacing import replaced

_INDEX, _PUT, _SUM, _MEAN, _SPREAD = (OPS[name] for name in ("index", "index_put", "sum", "mean", "broadcast_to"))
MOST = 64  # operations between a matrix and a sum


class _Triangle(NamedTuple):
    """Of a square matrix with so many rows; `first` is the diagonal that is nearest to the main one."""

    rows: int
    upper: bool
    first: int

    @property
    def elements(self) -> int:
        """How many elements it has."""
        n = self.rows - abs(self.first)
        return n * (n + 1) // 2


def triangles_of_pairs(graph: Graph) -> Graph:
    """`graph` with sums over pairs as sums of triangles. Rounds differently."""
    if _INDEX not in graph.ops:
        return graph
    builder = Builder.beside(graph.nodes)
    pairs = _Pairs(graph, builder)
    found = replaced(graph, builder, pairs.instead)
    # what is gathered all the same is not computed of all besides
    return graph if any(id in pairs.picks for id in found.nodes) else found


@final
class _Pairs:
    def __init__(self, graph: Graph, builder: Builder):
        self._graph = graph
        self._builder = builder
        self._held = Held(graph.nodes)
        self._known: dict[tuple[int, ...], _Triangle | None] = {}
        self.picks: set[int] = set()  # the nodes that pick such pairs
        self._of: dict[int, _Triangle] = {}  # the nodes that have an element for each pair
        self._whole: dict[int, Symbol] = {}  # such a node, computed of the whole matrix

    def instead(self, node: Node) -> Symbol | None:
        """The same as a node, if it adds up what is computed of pairs, or puts it in their places."""
        F, old = self._builder.language, self._graph.nodes[node.id]
        self._note(old)
        if node.op is _PUT and node.params["accumulate"] and len(old.inputs) == 4:
            into, values, *places = old.inputs
            zeros, triangle = self._held.value(into), self._triangle(tuple(places), old)
            if triangle is None or zeros is None or zeros.any():
                return None
            # what reads a gradient computes it on the way, perhaps several times
            value = self._value(values, triangle, cheap=True)
            return None if value is None else self._left(value, triangle)
        if (node.op is _SUM or node.op is _MEAN) and old.inputs[0] in self._of and old.params["axis"] == (0,):
            triangle = self._of[old.inputs[0]]
            value = self._value(old.inputs[0], triangle)
            if value is None or not is_floating(node.dtype):
                return None
            total = F.sum(self._left(value, triangle), axis=(0, 1), keepdims=False)
            total = total * (1 / triangle.elements) if node.op is _MEAN else total
            return total if total.shape == node.shape else F.reshape(total, shape=node.shape)
        return None

    def _note(self, node: Node) -> None:
        if node.op.several or node.aval.ndim != 1:
            return
        if node.op is _INDEX and len(node.inputs) == 3 and self._graph.nodes[node.inputs[0]].aval.ndim == 2:
            triangle = self._triangle(node.inputs[1:], self._graph.nodes[node.inputs[0]])
            if triangle is not None:
                self._of[node.id] = triangle
                self.picks.add(node.id)
        elif node.op.pointwise and node.check is None and not node.op.impure:
            found = {self._of.get(i) for i in node.inputs if self._graph.nodes[i].size != 1}
            triangle = found.pop() if len(found) == 1 else None
            if triangle is not None:
                self._of[node.id] = triangle

    def _triangle(self, places: tuple[int, ...], of: Node) -> _Triangle | None:
        """The triangle whose places two arrays have, each once."""
        if of.aval.ndim != 2 or of.shape[0] != of.shape[1] or type(of.shape[0]) is not int:
            return None
        key = (*places, of.shape[0])
        if key not in self._known:
            rows, columns = map(self._held.value, places)
            if rows is None or columns is None or rows.shape != columns.shape:
                self._known[key] = None
            else:
                self._known[key] = _found(rows, columns, of.shape[0])
        return self._known[key]

    def _value(self, id: int, triangle: _Triangle, cheap: bool = False) -> Symbol | None:
        """What has an element for each pair, of the whole matrix."""
        builder, order, stack = self._builder, list[int](), [id]
        nodes = self._graph.nodes
        while stack:
            k = stack.pop()
            if len(order) > MOST:
                return None
            spread = nodes[k].op is _SPREAD and nodes[nodes[k].inputs[0]].size == 1
            if (k not in self._of and not spread) or (cheap and nodes[k].op.pointwise and nodes[k].op.lifting is None):
                return None
            if k not in self._whole:
                order.append(k)
                pointwise = nodes[k].op.pointwise and not spread
                stack += [i for i in nodes[k].inputs if pointwise and nodes[i].size != 1]
        for k in reversed(order):
            if k not in self._whole:
                self._whole[k] = self._computed(nodes[k], builder.nodes[k].inputs, triangle.rows)
        return self._whole[id]

    def _computed(self, node: Node, now: tuple[int, ...], n: int) -> Symbol:
        builder = self._builder
        F: Any = builder.language
        if node.op is _INDEX:
            return builder.symbol(now[0])
        numbers = [F.reshape(x, shape=()) if x.aval.size == 1 else x for x in map(builder.symbol, now)]
        if node.op is _SPREAD:
            return F.broadcast_to(numbers[0], shape=(n, n))
        given = [self._whole.get(i, x) for i, x in zip(node.inputs, numbers, strict=True)]
        return builder.emit(node.op, given, node.params)

    def _left(self, value: Symbol, triangle: _Triangle) -> Symbol:
        F = self._builder.language
        return (F.triu if triangle.upper else F.tril)(value, diagonal=triangle.first)


def _found(rows: np.ndarray, columns: np.ndarray, n: int) -> _Triangle | None:
    """The triangle of a matrix of n rows that has these places, each once."""
    if rows.ndim != 1 or not rows.size or any(x.dtype.kind not in "iu" for x in (rows, columns)):
        return None
    if min(rows.min(), columns.min()) < 0 or max(rows.max(), columns.max()) >= n:
        return None
    offsets = columns.astype(np.int64) - rows
    upper = bool(offsets.max() > 0)
    first = int(offsets.min() if upper else offsets.max())
    triangle = _Triangle(n, upper, first)
    if abs(first) > 1 or (first < 0 if upper else first > 0) or rows.size != triangle.elements:
        return None
    met = np.zeros((n, n), bool)
    met[rows, columns] = True
    return triangle if np.count_nonzero(met) == rows.size else None
