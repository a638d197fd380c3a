"""Where a graph repeats itself: runs of consecutive segments that are the same operations, read alike.

Operations are compared in their order, in linear time: numbers stand for (op, parameters, types), and a run of period p
is where each number equals the one p places later. Views are left out, for the same value is read through many; where
they lie is asked when the run is rolled. Then the operands of each operation are compared with those of its like, one
period earlier. Both must be one node, move along by one period, or come from before the run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, final

import numpy as np

from graphc.ir import Graph, Node
from graphc.ops.dims import has_dim

GRAM = 4  # operations that are looked up together
PERIODS = 12  # that are tried, those that occur most often
FEWEST = 4  # steps of a run
CUTS = 8  # between steps that are tried, of those where equally much is passed on
BEFORE = -1  # the place of inputs and of what has no operands


class Repeat(NamedTuple):
    """Steps that compute alike: the ids of their operations, in order, views left out."""

    steps: tuple[tuple[int, ...], ...]

    def part(self, first: int, end: int) -> Repeat:
        return Repeat(self.steps[first:end])


def find_repeats(graph: Graph) -> list[Repeat]:
    """The runs of `graph`, those that save most first chosen, in order; no two share a node."""
    ids = [id for id, node in graph.nodes.items() if node.inputs and not node.op.view]
    if len(ids) < FEWEST * GRAM:
        return []
    tokens = _tokens(graph, ids)
    regions = [region for p in _periods(tokens) for region in _regions(tokens, p)]
    if not regions:
        return []
    reader = _Reader(graph, ids, tokens)
    found: list[tuple[int, int, int]] = []  # start, steps, period
    taken = np.zeros(len(ids), bool)
    for start, end, p in sorted(regions, key=lambda region: (region[2] - (region[1] - region[0]), region[2])):
        for first, count in reader.runs(start, end, p):
            whole = slice(first, first + count * p)
            if not taken[whole].any():
                taken[whole] = True
                found.append((first, count, p))
    return [
        Repeat(tuple(tuple(ids[first + k * p : first + (k + 1) * p]) for k in range(count)))
        for first, count, p in sorted(found)
    ]


def _tokens(graph: Graph, ids: Sequence[int]) -> np.ndarray:
    """A number for each operation, equal for those that may be the same computation."""
    numbers: dict[object, int] = {}
    nodes = graph.nodes
    found = np.empty(len(ids), np.int64)
    for k, id in enumerate(ids):
        node = nodes[id]
        key: object = id
        if not _alone(node):
            key = (node.key(()), node.results, *[nodes[i].results for i in node.inputs])
            if node.op.check is not None:
                key = key, node.where  # an error names the line
        found[k] = numbers.setdefault(key, len(numbers))
    return found


def _alone(node: Node) -> bool:
    """Whether a node is never part of a run."""
    return node.op.several or node.op.structured or node.op.impure or any(has_dim(a.shape) for a in node.results)


def _periods(tokens: np.ndarray) -> list[int]:
    """How far the next sequence of operations like this one is away, most often."""
    mixed = np.zeros(len(tokens) - GRAM + 1, np.uint64)
    for k in range(GRAM):
        part = tokens[k : len(tokens) - GRAM + 1 + k].astype(np.uint64)
        mixed = (mixed ^ part) * np.uint64(0x9E3779B97F4A7C15)
        mixed ^= mixed >> np.uint64(29)
    order = np.argsort(mixed, kind="stable")
    same = mixed[order][1:] == mixed[order][:-1]
    distances, votes = np.unique(np.diff(order)[same], return_counts=True)
    most = np.argsort(-votes, kind="stable")[:PERIODS]
    return [int(distances[k]) for k in most if votes[k] >= FEWEST]


def _regions(tokens: np.ndarray, p: int) -> Iterator[tuple[int, int, int]]:
    """(start, end, p) of the runs of numbers of period `p`."""
    same = np.concatenate([[False], tokens[p:] == tokens[:-p], [False]])
    edges = np.flatnonzero(same[1:] != same[:-1])
    for start, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        if end - start >= (FEWEST - 1) * p:
            yield start, end + p, p


class _Read(NamedTuple):
    """An operand: its node, the place of the operation that it is a view of, and which view."""

    id: int
    place: int
    view: int


@final
class _Reader:
    """Compares what operations read."""

    def __init__(self, graph: Graph, ids: Sequence[int], tokens: np.ndarray):
        self._graph = graph
        self._ids = ids
        self._tokens = tokens
        self._places = {id: k for k, id in enumerate(ids)}
        self._operands = self._all_operands()

    def runs(self, start: int, end: int, p: int) -> Iterator[tuple[int, int]]:
        """(first place, number of steps) of the runs in a region of period `p`."""
        alike = [self._alike(i - p, i, start, p) for i in range(start + p, end)]
        begin = 0
        for k, good in enumerate([*alike, False]):
            if not good:
                if k - begin >= (FEWEST - 2) * p:
                    yield from self._cut(start, start + begin, start + k + p, p)
                begin = k + 1

    def _cut(self, lowest: int, start: int, end: int, p: int) -> Iterator[tuple[int, int]]:
        """The steps between `start` and `end`, begun where the least is passed on; and the one before, if it only
        begins with other values."""
        widest: dict[int, int] = {}  # how far away an operation is last read
        for i in range(start + p, min(start + 2 * p, end)):
            for read in self._reads(i):
                if start <= read.place and i - read.place <= 2 * p:
                    widest[read.place] = max(widest.get(read.place, 0), i - read.place)
        change = np.zeros(end - start + 1)
        for place, distance in widest.items():
            size = self._graph.nodes[self._ids[place]].size
            change[place - start + 1] += size
            change[min(place + distance, end - 1) - start + 1] -= size
        live = np.cumsum(change)[: 3 * p]
        costs = np.bincount(np.arange(len(live)) % p, live, p)
        firsts = [self._first(lowest, start + int(k), p) for k in np.flatnonzero(costs == costs.min())[:CUTS]]
        first = min(firsts)
        count = (end - first) // p
        if count >= FEWEST:
            yield first, count

    def _first(self, lowest: int, first: int, p: int) -> int:
        while first - p >= lowest and self._begins(first - p, p):
            first -= p
        return first

    def _alike(self, i: int, j: int, start: int, p: int) -> bool:
        return all(self._moved(a, b, start, p) for a, b in zip(self._reads(i), self._reads(j), strict=True))

    @staticmethod
    def _moved(a: _Read, b: _Read, start: int, p: int) -> bool:
        """Whether `b` is to an operation what `a` is to the one before: the same, one period later, or from outside."""
        if a.id == b.id or (b.place - a.place == p and a.view == b.view):
            return True
        return a.place < start and b.place < start

    def _begins(self, first: int, p: int) -> bool:
        """Whether the operations from `first` on are those of a step, with what the first one starts from."""
        for i in range(first, first + p):
            if self._tokens[i] != self._tokens[i + p]:
                return False
            for a, b in zip(self._reads(i), self._reads(i + p), strict=True):
                initial = first <= b.place < first + p and a.place < first
                if not (initial or self._moved(a, b, first, p)):
                    return False
        return True

    def _reads(self, i: int) -> tuple[_Read, ...]:
        return tuple([self._operands[id] for id in self._graph.nodes[self._ids[i]].inputs])

    def _all_operands(self) -> dict[int, _Read]:
        """Each node as an operand."""
        found: dict[int, _Read] = {}
        views: dict[object, int] = {}
        for id, node in self._graph.nodes.items():
            if node.op.view:
                _, place, view = found[node.inputs[0]]
                found[id] = _Read(id, place, views.setdefault((view, node.key(()), node.results), len(views) + 1))
            else:
                found[id] = _Read(id, self._places.get(id, BEFORE), 0)
        return found
