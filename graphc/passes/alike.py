"""What a graph does to slices of arrays in the same way: as an unrolled loop over rows does, and its gradient."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, final

from graphc.ir import Graph, Node
from graphc.normal.gate import adds_up
from graphc.ops import OPS
from graphc.passes.maps import MOST, can_be_one
from graphc.passes.sums import trees_of_sums

FEW = 4  # slices
_SLICE, _PAD, _CAT = OPS["slice"], OPS["pad_zeros"], OPS["cat"]


class Slice(NamedTuple):
    """A node as one of several: the number of the whole that they are slices of, and which of them it is."""

    whole: int
    at: int


class Operand(NamedTuple):
    """What the slices of a whole read: those of another, `ahead` of their own place; or, None, all the same node."""

    of: int
    ahead: int | None


class Part(NamedTuple):
    """How a sum has the slices of a whole: added up, or along an axis from `low` on, so far from each other."""

    whole: int
    axis: int | None = None
    low: int = 0
    apart: int = 0


@final
class Alike:
    """The slices of a graph, and what is computed from them in the same way: wholes, which have numbers.

    slices    by node; those of a whole have places 0, 1, ...
    operands  of each whole that is computed, what its slices are computed from
    runs      the places of the slices of a whole: in the array, in parts as long as they are; or among those of its
              first operand
    sums      the terms of sums that have all slices of a whole, by root
    joins     the wholes of which nodes have all slices, one after the other
    """

    def __init__(self, graph: Graph):
        self._nodes = graph.nodes
        self._numbers: dict[Any, int] = {}
        self._members: list[dict[int, list[int]]] = []  # of each whole, by place: several nodes may be equal
        self.slices: dict[int, Slice] = {}
        self.operands: dict[int, tuple[Operand, ...]] = {}
        self.runs: list[range] = []
        for level in _levels(graph):
            for node in level:
                self._note(node)
            for whole in range(len(self.runs), len(self._members)):  # whose slices are all in this level
                self._settle(whole)
        sums = [(root, terms) for root, terms in trees_of_sums(graph) if len(terms) >= FEW]
        self.sums = {root: terms for root, terms in sums if self.summands(terms)[0]}
        self.joins = {id: whole for id, node in graph.nodes.items() if (whole := self._joined(node)) is not None}

    def is_worth_it(self) -> bool:
        """Whether products or sums are one instead of many, and what is computed of slices is read of all in the same
        way, but for a few readers: not by one step of a recurrence after the other. Those are for loops."""
        computed = {id: own.whole for id, own in self.slices.items() if own.whole in self.operands}
        if not (self.sums or self.joins or any(adds_up(self._nodes[id]) for id in computed)):
            return False
        added: set[int] = set()
        for terms in self.sums.values():
            added.update(terms)
            added.difference_update(self.summands(terms)[1])
        lone: Counter[int] = Counter()
        for id, node in self._nodes.items():
            if id not in self.slices and id not in added:
                read = Counter([computed[i] for i in node.inputs if i in computed and i not in added])
                lone.update([whole for whole, count in read.items() if count < FEW])
        return max(lone.values(), default=0) < FEW

    def summands(self, terms: Sequence[int]) -> tuple[list[Part], list[int]]:
        """The wholes of which a sum has all slices, and how; and the other terms."""
        places: dict[tuple[int, int | None], dict[int, tuple[int, int]]] = {}  # by whole and axis: low, term
        for id in terms:
            found = self._place(id)
            if found is not None:
                own, axis, low = found
                places.setdefault((own.whole, axis), {}).setdefault(own.at, (low, id))
        parts: list[Part] = []
        left = Counter(terms)
        for (whole, axis), found in places.items():
            if len(found) == len(self.runs[whole]):
                low, apart = found[0][0], found[1][0] - found[0][0]
                length = 0 if axis is None else self._nodes[self._nodes[found[0][1]].inputs[0]].shape[axis]
                if apart >= length and all(own == low + at * apart for at, (own, _) in found.items()):
                    parts.append(Part(whole, axis, low, apart))
                    left.subtract([id for _, id in found.values()])
        return parts, list(left.elements())

    def _place(self, id: int) -> tuple[Slice, int | None, int] | None:
        """The slice that a term of a sum is; or has zeros around, with the axis and where it begins."""
        if id in self.slices:
            return self.slices[id], None, 0
        node = self._nodes[id]
        if node.op is not _PAD or node.inputs[0] not in self.slices or any(node.params["interior"]):
            return None
        inner = self._nodes[node.inputs[0]].shape
        axes = [k for k, (n, m) in enumerate(zip(node.shape, inner, strict=True)) if n != m]
        low, high = node.params["low"], node.params["high"]
        if len(axes) != 1 or min((*low, *high)) < 0:
            return None
        return self.slices[node.inputs[0]], axes[0], low[axes[0]]

    def _joined(self, node: Node) -> int | None:
        """The whole of which a node has all slices, one after the other."""
        if node.op is not _CAT or len(node.inputs) < FEW or not all(i in self.slices for i in node.inputs):
            return None
        own = [self.slices[i] for i in node.inputs]
        whole = own[0].whole
        return whole if own == [Slice(whole, at) for at in range(len(self.runs[whole]))] else None

    def _note(self, node: Node) -> None:
        own = [self.slices.get(i) for i in node.inputs]
        first = next((s for s in own if s is not None), None)
        cut = cut_of(node, self._nodes) if first is None else None
        if cut is not None:
            axis, at = cut
            self._add(node, (node.inputs[0], axis, node.shape[axis]), at)
        if first is None or node.op.several or node.op.impure or not can_be_one(node):
            return
        operands = tuple(
            [
                Operand(i, None) if s is None else Operand(s.whole, s.at - first.at)
                for i, s in zip(node.inputs, own, strict=True)
            ]
        )
        self.operands[self._add(node, (node.key(()), node.aval, operands), first.at)] = operands

    def _add(self, node: Node, key: Any, at: int) -> int:
        whole = self._numbers.setdefault(key, len(self._numbers))
        if whole == len(self._members):
            self._members.append({})
        self._members[whole].setdefault(at, []).append(node.id)
        return whole

    def _settle(self, whole: int) -> None:
        members = self._members[whole]
        run = _longest_run(sorted(members))
        node = self._nodes[next(iter(members.values()))[0]]
        if whole in self.operands and node.op.lifting is None and len(run) * node.size > MOST:
            run = range(0)  # of others, sums may need no array of all
        self.runs.append(run)
        for at, place in enumerate(run):
            self.slices.update(dict.fromkeys(members[place], Slice(whole, at)))


def _longest_run(places: Sequence[int]) -> range:
    """The longest run of places in equal steps; none if it is short."""
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
