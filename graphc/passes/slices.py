"""Operations on slices that are treated alike, done for all of them at once: A x_t for rows x_t of X is X A^T.

An unrolled loop over rows, and its gradient, are products of a matrix and a vector each, and sums of them. What is
computed in the same way from slices in equal steps of the same arrays is one operation by the rules of `vmap`, and its
results are slices again.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, final

from graphc.ir import Builder, Graph, Node, Symbol, rename
from graphc.normal.gate import adds_up
from graphc.normal.write import costs_of
from graphc.ops import OPS
from graphc.ops.dtypes import is_inexact
from graphc.passes.dce import eliminate_dead_code
from graphc.passes.maps import can_be_one, mapped
from graphc.passes.sums import trees_of_sums

FEW = 4  # slices
MOST = 1.1  # times the cost as written: sums of outer products are products only afterwards
_SLICE, _PAD, _CAT = OPS["slice"], OPS["pad_zeros"], OPS["cat"]


class _Slice(NamedTuple):
    """A node as one of several: the number of what they are slices of, and which of them it is."""

    whole: int
    at: int


class _Operand(NamedTuple):
    """What several nodes read: slices of a whole, `ahead` of their own place; or all of them the same node."""

    of: int
    ahead: int | None


class _Place(NamedTuple):
    """How a sum has the slices of a whole: added up, or one after the other along an axis, from `low` on."""

    whole: int
    axis: int | None
    low: int


def batch_slices(graph: Graph) -> Graph:
    """`graph` with what it does to slices in the same way done at once. Rounds differently."""
    if _SLICE not in graph.ops:
        return graph
    found = _Found(graph)
    if not (found.sums or found.joins or found.adds_up()) or not found.all_read_alike():
        return graph
    batched = eliminate_dead_code(_Writer(graph, found).written())
    before, after = (sum(costs_of(g.nodes, g.nodes, g.users()).values()) for g in (graph, batched))
    return batched if after <= MOST * before else graph


@final
class _Found:
    """The slices of a graph, and what is computed from them alike: wholes, which have numbers.

    slices    by node
    members   of each whole, the nodes that are its slices, by place
    operands  of each whole that is computed, what its slices are computed from
    sums      the terms of sums that have all slices of a whole, by root
    joins     the wholes of which nodes have all slices, one after the other
    """

    def __init__(self, graph: Graph):
        self._nodes = graph.nodes
        self._numbers: dict[Any, int] = {}
        self.slices: dict[int, _Slice] = {}
        self.members: dict[int, dict[int, list[int]]] = {}
        self.operands: dict[int, tuple[_Operand, ...]] = {}
        self._runs: dict[int, range] = {}
        for level in _levels(graph):
            first = len(self._numbers)
            for node in level:
                self._note(node)
            for whole in range(first, len(self._numbers)):  # whose slices are all in this level
                run = self._runs[whole] = self._run(whole)
                for id in [id for at, ids in self.members[whole].items() if at not in run for id in ids]:
                    del self.slices[id]
        self.sums = {
            root: terms for root, terms in trees_of_sums(graph) if len(terms) >= FEW and len(self.summands(terms)[0])
        }

        self.joins = {id: whole for id, node in graph.nodes.items() if (whole := self._joined(node)) is not None}

    def adds_up(self) -> bool:
        """Whether something is to be computed at once that adds up."""
        first = [next(iter(self.members[whole].values()))[0] for whole in self.operands if self._runs[whole]]
        return any(adds_up(self._nodes[id]) for id in first)

    def _joined(self, node: Node) -> int | None:
        """The whole of which a node has all slices, one after the other."""
        if node.op is not _CAT or len(node.inputs) < FEW or not all(i in self.slices for i in node.inputs):
            return None
        own = [self.slices[i] for i in node.inputs]
        run = self._runs[own[0].whole]
        return own[0].whole if own == [_Slice(own[0].whole, at) for at in run] else None

    def summands(self, terms: Sequence[int]) -> tuple[list[_Place], list[int]]:
        """The wholes of which all slices are terms of a sum, and how; and the other terms."""
        own: dict[_Place, dict[int, int]] = {}
        for id in terms:
            place, at = self._place(id)
            if place is not None:
                own.setdefault(place, {}).setdefault(at, id)
        own = {place: ids for place, ids in own.items() if ids.keys() == set(self._runs[place.whole])}
        left = Counter(terms)
        for ids in own.values():
            left.subtract(ids.values())
        return list(own), list(left.elements())

    def _place(self, id: int) -> tuple[_Place | None, int]:
        """What a term of a sum is a slice of, or a slice with zeros around it; and which slice."""
        if id in self.slices:
            return _Place(self.slices[id].whole, None, 0), self.slices[id].at
        node = self._nodes[id]
        if node.op is not _PAD or node.inputs[0] not in self.slices or any(node.params["interior"]):
            return None, 0
        own, inner = self.slices[node.inputs[0]], self._nodes[node.inputs[0]].shape
        run = self._runs[own.whole]
        axes = [k for k, (n, m) in enumerate(zip(node.shape, inner, strict=True)) if n != m]
        if len(axes) != 1 or (run.step != 1 and inner[axes[0]] != 1):
            return None, 0
        (axis,) = axes
        low = node.params["low"][axis] - (own.at - run.start) * inner[axis]
        fits = low >= 0 and low + len(run) * inner[axis] <= node.shape[axis]
        return (_Place(own.whole, axis, low), own.at) if fits else (None, 0)

    def all_read_alike(self) -> bool:
        """Whether what is computed of slices is read in the same way of all: not by one step of a recurrence after the
        other, which are for loops."""
        added: set[int] = set()
        for terms in self.sums.values():
            added.update(terms)
            added.difference_update(self.summands(terms)[1])
        computed = {id: own.whole for id, own in self.slices.items() if own.whole in self.operands}
        for id, node in self._nodes.items():
            if id in self.slices or id in added:
                continue
            read = Counter([computed[i] for i in node.inputs if i in computed and i not in added])
            if read and min(read.values()) < FEW:
                return False
        return True

    def is_one(self, whole: int) -> bool:
        """Whether a whole is to be computed at once."""
        return whole in self.operands and bool(self._runs[whole])

    def run(self, whole: int) -> range:
        """The places of the slices that are one array, in order."""
        return self._runs[whole]

    def _note(self, node: Node) -> None:
        cut = cut_of(node, self._nodes)
        if cut is not None:
            axis, at = cut
            key = node.inputs[0], axis, node.shape[axis]
            self._add(node, key, at, None)
            return
        own = [self.slices.get(i) for i in node.inputs]
        first = next((s for s in own if s is not None), None)
        if first is None or node.op.several or node.op.impure or node.check is not None or not can_be_one(node):
            return
        operands = tuple(
            [
                _Operand(i, None) if s is None else _Operand(s.whole, s.at - first.at)
                for i, s in zip(node.inputs, own, strict=True)
            ]
        )
        self._add(node, (node.key(()), node.aval, operands), first.at, operands)

    def _add(self, node: Node, key: Any, at: int, operands: tuple[_Operand, ...] | None) -> None:
        whole = self._numbers.setdefault(key, len(self._numbers))
        self.members.setdefault(whole, {}).setdefault(at, []).append(node.id)  # several that are equal
        self.slices[node.id] = _Slice(whole, at)
        if operands is not None:
            self.operands[whole] = operands

    def _run(self, whole: int) -> range:
        """The longest run of places in equal steps; none if it is short."""
        places = sorted(self.members[whole])
        best, first = range(0), 0
        for last in range(1, len(places) + 1):
            step = places[first + 1] - places[first] if first + 1 < len(places) else 1
            if last == len(places) or places[last] - places[last - 1] != step:
                if last - first > len(best):
                    best = range(places[first], places[last - 1] + 1, step)
                first = last - 1 if last < len(places) and last - first > 1 else last
        return best if len(best) >= FEW else range(0)


def _levels(graph: Graph) -> list[list[Node]]:
    """The nodes by the length of the longest way to them: those that are computed alike are in one level."""
    depth: dict[int, int] = {}
    levels: list[list[Node]] = []
    for id, node in graph.nodes.items():
        own = depth[id] = 1 + max([depth[i] for i in node.inputs], default=-1)
        if own == len(levels):
            levels.append([])
        levels[own].append(node)
    return levels


def cut_of(node: Node, nodes: Mapping[int, Node]) -> tuple[int, int] | None:
    """The axis along which a node is one of the equal parts of an array, and which of them."""
    if node.op is not _SLICE:
        return None
    whole = nodes[node.inputs[0]].shape
    axes = [k for k, (n, m) in enumerate(zip(node.shape, whole, strict=True)) if n != m]
    if len(axes) != 1 or not all(type(n) is int for n in whole):
        return None
    (axis,) = axes
    start, width = node.params["start"][axis], node.shape[axis]
    fits = node.params["step"][axis] == 1 and width and not (start % width or whole[axis] % width)
    return (axis, start // width) if fits else None


@final
class _Writer:
    def __init__(self, graph: Graph, found: _Found):
        self._graph = graph
        self._found = found
        self._builder = Builder()
        self._builder.next_id = max(graph.nodes) + 1
        self._wholes: dict[int, tuple[Symbol, range]] = {}  # with the slices in front, and their places
        self._new: dict[int, int] = {}

    def written(self) -> Graph:
        graph, builder, found, new = self._graph, self._builder, self._found, self._new
        for id, node in graph.nodes.items():
            builder.where, builder.scope = node.where, node.scope
            if id in found.sums:
                new[id] = self._sum(found.sums[id]).id
                continue
            if id in found.joins:
                whole = found.joins[id]
                new[id] = self._laid(self._part(whole, found.run(whole)), node.params["axis"], 0, node.shape).id
                continue
            own = found.slices.get(id)
            if own is not None and found.is_one(own.whole):
                if own.whole not in self._wholes:
                    self._wholes[own.whole] = self._computed(own.whole, node), found.run(own.whole)
                new[id] = self._slice(own, node.shape).id
                continue
            builder.copy(node, tuple([new.get(i, i) for i in node.inputs]))
            if own is not None and own.whole not in self._wholes:
                self._wholes[own.whole] = self._rows(node)
        return graph.replace(builder.nodes, rename(graph.result, {id: new.get(id, id) for id in graph.outputs}))

    def _sum(self, terms: Sequence[int]) -> Symbol:
        """A sum of a whole's slices, or of several wholes': see `_Found.sums`."""
        builder, F = self._builder, self._builder.language
        shape = max([self._graph.nodes[id].shape for id in terms], key=len)  # beside numbers
        wholes, rest = self._found.summands(terms)
        parts = [builder.symbol(self._new.get(id, id)) for id in rest]
        for place in wholes:
            rows = self._part(place.whole, self._found.run(place.whole))
            if place.axis is None:
                rows = F.reshape(F.sum(rows, axis=(0,), keepdims=False), shape=shape)
            else:
                rows = self._laid(rows, place.axis, place.low, shape, self._found.run(place.whole).step)
                rows = rows + 0.0 if is_inexact(rows.dtype) else rows  # as zeros beside it do: -0 becomes +0
            parts.append(rows)
        return functools.reduce(lambda a, b: a + b, parts)

    def _laid(self, rows: Symbol, axis: int, low: int, shape: Sequence[int], step: int = 1) -> Symbol:
        """Slices one after the other along an axis, from `low` on, with zeros before and after them; between them as
        well, if they have one element there and lie in steps."""
        F = self._builder.language
        count, *inner = rows.shape
        dims = (*range(1, axis + 1), 0, *range(axis + 1, len(shape) + 1))
        inner[axis] *= count
        laid = F.reshape(F.permute(rows, dims=dims), shape=tuple(inner))
        if tuple(inner) == tuple(shape):
            return laid
        after = shape[axis] - low - (inner[axis] - 1) * step - 1
        before, behind, between = ([n if k == axis else 0 for k in range(len(shape))] for n in (low, after, step - 1))
        return F.pad_zeros(laid, low=tuple(before), high=tuple(behind), interior=tuple(between))

    def _rows(self, node: Node) -> tuple[Symbol, range]:
        """What a node is cut out of, with the parts along an axis in front."""
        F = self._builder.language
        cut = cut_of(node, self._graph.nodes)
        assert cut is not None
        axis, width = cut[0], node.shape[cut[0]]
        x = self._builder.symbol(self._new.get(node.inputs[0], node.inputs[0]))
        count, dims = x.shape[axis] // width, range(len(x.shape))
        x = F.reshape(x, shape=(*x.shape[:axis], count, width, *x.shape[axis + 1 :]))
        front = (axis, *[k for k in range(len(dims) + 1) if k != axis])
        return F.permute(x, dims=front), range(count)

    def _computed(self, whole: int, node: Node) -> Symbol:
        """What several nodes compute, of which one is given, with a dim more in front."""
        run = self._found.run(whole)
        operands: list[Symbol] = []
        dims: list[int | None] = []
        for operand in self._found.operands[whole]:
            if operand.ahead is None:
                operands.append(self._builder.symbol(self._new.get(operand.of, operand.of)))
            else:
                operands.append(
                    self._part(operand.of, range(run.start + operand.ahead, run.stop + operand.ahead, run.step))
                )
            dims.append(None if operand.ahead is None else 0)
        return mapped(self._builder, node, operands, dims)

    def _part(self, whole: int, places: range) -> Symbol:
        """The slices at these places."""
        x, there = self._wholes[whole]
        if places == there:
            return x
        ends = there.index(places[0]), there.index(places[-1]) + 1
        inner = x.shape[1:]
        step = places.step // there.step
        return self._builder.language.slice(
            x, start=(ends[0], *[0 for _ in inner]), stop=(ends[1], *inner), step=(step, *[1 for _ in inner])
        )

    def _slice(self, own: _Slice, shape: Sequence[Any]) -> Symbol:
        one = self._part(own.whole, range(own.at, own.at + 1, self._wholes[own.whole][1].step))
        return self._builder.language.reshape(one, shape=tuple(shape))
