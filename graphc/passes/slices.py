"""Operations on slices that are treated alike, done for all of them at once: A x_t for rows x_t of X is X A^T.

An unrolled loop over rows, and its gradient, are products of a matrix and a vector each, and sums of them. What is
computed in the same way from slices in equal steps of the same arrays is one operation by the rules of `vmap`, and its
results are slices again.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, final

from graphc.ir import Builder, Graph, Node, Symbol
from graphc.normal.write import costs_of
from graphc.ops import OPS
from graphc.ops.dtypes import is_inexact
from graphc.passes.alike import Alike, Part, Slice, cut_of
from graphc.passes.dce import eliminate_dead_code
from graphc.passes.maps import mapped

DEARER = 1.1  # times the cost as written: sums of outer products are products only afterwards


def batch_slices(graph: Graph) -> Graph:
    """`graph` with what it does to slices in the same way done at once. Rounds differently."""
    if OPS["slice"] not in graph.ops:
        return graph
    found = Alike(graph)
    if not found.is_worth_it():
        return graph
    batched = eliminate_dead_code(_Writer(graph, found).written())
    before, after = (sum(costs_of(g.nodes, g.nodes, g.users()).values()) for g in (graph, batched))
    return batched if after <= DEARER * before else graph


@final
class _Writer:
    def __init__(self, graph: Graph, found: Alike):
        self._graph = graph
        self._found = found
        self._builder = Builder.beside(graph.nodes)
        self._wholes: dict[int, Symbol] = {}  # with the slices in front
        self._new: dict[int, int] = {}

    def written(self) -> Graph:
        graph, builder, found, new, wholes = self._graph, self._builder, self._found, self._new, self._wholes
        for id, node in graph.nodes.items():
            builder.where, builder.scope = node.where, node.scope
            own = found.slices.get(id)
            if id in found.sums:
                new[id] = self._sum(found.sums[id]).id
            elif id in found.joins:
                axis = node.params["axis"]
                width = self._wholes[found.joins[id]].shape[1 + axis]
                new[id] = self._laid(Part(found.joins[id], axis, 0, width), node.shape).id
            elif own is not None and own.whole in found.operands:
                if own.whole not in wholes:
                    wholes[own.whole] = self._computed(own.whole, node)
                new[id] = self._slice(own, node.shape).id
            else:
                builder.copy(node, tuple([new.get(i, i) for i in node.inputs]))
                if own is not None and own.whole not in wholes:
                    wholes[own.whole] = self._cut(own.whole, node)
        return graph.rewired(builder.nodes, new)

    def _sum(self, terms: Sequence[int]) -> Symbol:
        """A sum of a whole's slices, or of several wholes': see `Alike.sums`."""
        builder, F = self._builder, self._builder.language
        shape = max([self._graph.nodes[id].shape for id in terms], key=len)  # beside numbers
        parts, rest = self._found.summands(terms)
        total = [builder.symbol(self._new.get(id, id)) for id in rest]
        for part in parts:
            if part.axis is None:
                rows = F.sum(self._wholes[part.whole], axis=(0,), keepdims=False)
                total.append(F.reshape(rows, shape=shape))
            else:
                laid = self._laid(part, shape)
                total.append(laid + 0.0 if is_inexact(laid.dtype) else laid)  # as zeros beside it do: -0 becomes +0
        return functools.reduce(lambda a, b: a + b, total)

    def _laid(self, part: Part, shape: Sequence[int]) -> Symbol:
        """Slices along an axis, with zeros before, between and after them."""
        F, rows, axis = self._builder.language, self._wholes[part.whole], part.axis
        assert axis is not None
        count, *inner = rows.shape
        width, rank = inner[axis], len(shape)
        gap = part.apart - width
        if gap:  # after each, and then too many after the last
            after = [gap if k == axis + 1 else 0 for k in range(rank + 1)]
            rows = F.pad_zeros(rows, low=(0,) * (rank + 1), high=tuple(after), interior=(0,) * (rank + 1))
        dims = (*range(1, axis + 1), 0, *range(axis + 1, rank + 1))
        inner[axis] = count * part.apart
        laid = F.reshape(F.permute(rows, dims=dims), shape=tuple(inner))
        if tuple(inner) == tuple(shape) and not part.low:
            return laid
        low = [part.low if k == axis else 0 for k in range(rank)]
        high = [n - m - a for n, m, a in zip(shape, inner, low, strict=True)]
        if high[axis] < 0:
            stop = tuple([n + min(b, 0) for n, b in zip(inner, high, strict=True)])
            laid = F.slice(laid, start=(0,) * rank, stop=stop, step=(1,) * rank)
        return F.pad_zeros(laid, low=tuple(low), high=tuple([max(b, 0) for b in high]), interior=(0,) * rank)

    def _cut(self, whole: int, node: Node) -> Symbol:
        """The slices of an array, of which a node is one, in front."""
        F, run = self._builder.language, self._found.runs[whole]
        cut = cut_of(node, self._graph.nodes)
        assert cut is not None
        axis, width = cut[0], node.shape[cut[0]]
        x = self._builder.symbol(self._new.get(node.inputs[0], node.inputs[0]))
        x = F.reshape(x, shape=(*x.shape[:axis], x.shape[axis] // width, width, *x.shape[axis + 1 :]))
        x = F.permute(x, dims=(axis, *[k for k in range(len(x.shape)) if k != axis]))
        return self._some(x, run)

    def _computed(self, whole: int, node: Node) -> Symbol:
        """What several nodes compute, of which one is given, with a dim more in front."""
        run = self._found.runs[whole]
        operands: list[Symbol] = []
        for of, ahead in self._found.operands[whole]:
            if ahead is None:
                operands.append(self._builder.symbol(self._new.get(of, of)))
            else:
                operands.append(self._some(self._wholes[of], range(run.start + ahead, run.stop + ahead, run.step)))
        dims = [None if operand.ahead is None else 0 for operand in self._found.operands[whole]]
        return mapped(self._builder, node, operands, dims)

    def _some(self, x: Symbol, places: range) -> Symbol:
        """Those of the slices at these places."""
        if places == range(x.shape[0]):
            return x
        inner = x.shape[1:]
        ones, zeros = (1,) * len(inner), (0,) * len(inner)
        start, stop, step = (places[0], *zeros), (places[-1] + 1, *inner), (places.step, *ones)
        return self._builder.language.slice(x, start=start, stop=stop, step=step)

    def _slice(self, own: Slice, shape: Sequence[Any]) -> Symbol:
        one = self._some(self._wholes[own.whole], range(own.at, own.at + 1))
        return self._builder.language.reshape(one, shape=tuple(shape))
