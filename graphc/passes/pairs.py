"""What is computed of the pairs that `triu_indices` picks from a matrix, and added up: of all, and a triangle of that.

    sum(f(S[i, j])) over i < j = sum(triu(f(S), 1))

A gather of half of the elements takes several times as long as a function of all. Gradients are put at such places:
they are a triangle, too, which other passes know.
"""

from __future__ import annotations

from typing import NamedTuple, final

import numpy as np

from graphc.facts.bands import solid
from graphc.facts.held import Held
from graphc.ir import Builder, Graph, Node, Symbol
from graphc.ops import OPS
from graphc.ops.dtypes import is_floating
from graphc.passes.picks import pick_of
from graphc.passes.replacing import replaced
from graphc.rewrite.rule import held_number

_INDEX, _PUT, _SUM, _MEAN, _SPREAD = (OPS[name] for name in ("index", "index_put", "sum", "mean", "broadcast_to"))


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


class _Taken(NamedTuple):
    """What has an element for each pair, computed of the whole matrix, or the number that all elements are."""

    of: Symbol
    triangle: _Triangle | None
    is_cheap: bool = True


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
        self._known: dict[tuple[tuple[int | range, ...], int], _Triangle | None] = {}
        self._taken: dict[int, _Taken] = {}
        self.picks: set[int] = set()  # the nodes that pick such pairs

    def instead(self, node: Node) -> Symbol | None:
        """The same as a node, if it adds up what is computed of pairs, or puts it in their places."""
        F, old = self._builder.language, self._graph.nodes[node.id]
        if node.op is _PUT and node.params["accumulate"]:
            taken, triangle = self._taken.get(old.inputs[1]), self._picked(old)
            zeros = held_number(old.inputs[0], self._graph.nodes) == 0
            # what reads a gradient computes it on the way, perhaps several times
            if taken is None or not taken.is_cheap or triangle is None or not zeros:
                return None
            return self._left(taken.of, triangle) if taken.triangle in (None, triangle) else None
        if node.op is _SUM or node.op is _MEAN:
            taken = self._taken.get(old.inputs[0])
            if taken is None or taken.triangle is None or old.params["axis"] != (0,) or not is_floating(node.dtype):
                return None
            total = F.sum(self._left(taken.of, taken.triangle), axis=(0, 1), keepdims=False)
            total = total * (1 / taken.triangle.elements) if node.op is _MEAN else total
            return total if total.shape == node.shape else F.reshape(total, shape=node.shape)
        if not old.op.several and old.aval.ndim == 1 and (found := self._computed(old, node.inputs)) is not None:
            self._taken[node.id] = found
        return None

    def _computed(self, node: Node, now: tuple[int, ...]) -> _Taken | None:
        """What a node is that picks pairs, or computes something of each; it reads `now`."""
        builder, op = self._builder, node.op
        F = builder.language
        if op is _INDEX:
            triangle = self._picked(node)
            self.picks.update(() if triangle is None else (node.id,))
            return None if triangle is None else _Taken(builder.symbol(now[0]), triangle)
        if not (op.pointwise or op is _SPREAD) or node.check is not None or op.impure:
            return None
        given: list[_Taken] = []
        for i, x in zip(node.inputs, map(builder.symbol, now), strict=True):
            number = _Taken(F.reshape(x, shape=()), None) if self._graph.nodes[i].size == 1 else None
            if (taken := number or self._taken.get(i)) is None:
                return None
            given.append(taken)
        triangles = {taken.triangle for taken in given} - {None}
        if len(triangles) > 1:
            return None
        of = given[0].of if op is _SPREAD else builder.emit(op, [taken.of for taken in given], node.params)
        is_cheap = op is _SPREAD or (op.lifting is not None and all(taken.is_cheap for taken in given))
        return _Taken(of, triangles.pop() if triangles else None, is_cheap)

    def _picked(self, node: Node) -> _Triangle | None:
        """The triangle whose places a node picks from a matrix, or puts into one, each once."""
        of, pick = self._graph.nodes[node.inputs[0]], pick_of(node, self._graph.nodes)
        if pick is None or len(pick.places) != 2 or of.aval.ndim != 2 or of.shape[0] != of.shape[1]:
            return None
        key = pick.places, of.shape[0]
        if key not in self._known:
            rows, columns = [self._held.value(p) for p in pick.places if not isinstance(p, range)]
            found = None if rows is None or columns is None else _found(rows, columns, of.shape[0])
            self._known[key] = found
        return self._known[key]

    def _left(self, value: Symbol, triangle: _Triangle) -> Symbol:
        F, shape = self._builder.language, (triangle.rows,) * 2
        value = value if value.shape == shape else F.broadcast_to(value, shape=shape)
        return (F.triu if triangle.upper else F.tril)(value, diagonal=triangle.first)


def _found(rows: np.ndarray, columns: np.ndarray, n: int) -> _Triangle | None:
    """The triangle of a matrix of n rows that has these places, each once."""
    if not rows.size or min(rows.min(), columns.min()) < 0 or max(rows.max(), columns.max()) >= n:
        return None
    met = np.zeros((n, n), bool)
    met[rows, columns] = True
    band = solid(met) if np.count_nonzero(met) == rows.size else None
    if band is None or max(band) != n - 1 or not -1 <= min(band) <= 0:
        return None
    upper = band.above == n - 1
    return _Triangle(n, upper, -band.below if upper else band.above)
