"""Where a graph repeats itself: runs of consecutive segments that are the same operations, read alike.

Operations are compared in their order, in linear time: numbers stand for (op, parameters, types), and a run of period p
is where each number equals the one p places later. Views are left out, for the same value is read through many; where
they lie is asked when the run is rolled. Then the operands of each operation are compared with those of its like, one
period earlier. Both must be one node, move along by one period, or come from before the run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, final

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


def views(node: Node) -> bool:
    """Whether `node` is a view of its one operand, whose values it has."""
    return node.op.view and len(node.inputs) == 1


def find_repeats(graph: Graph) -> list[Repeat]:
    """The runs of `graph`, those that save most first chosen, in order; no two share a node."""
    ids = [id for id, node in graph.nodes.items() if node.inputs and not views(node)]
    tokens = _tokens(graph, ids)
    regions = _candidates(tokens)
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
    numbers: dict[Any, int] = {}
    types = {id: numbers.setdefault(node.results, len(numbers)) for id, node in graph.nodes.items()}
    symbolic = {number for results, number in numbers.items() if any(has_dim(aval.shape) for aval in results)}
    found = np.empty(len(ids), np.int64)
    for k, id in enumerate(ids):
        node = graph.nodes[id]
        op = node.op
        alone = op.several or op.structured or op.impure
        if alone or (symbolic and not symbolic.isdisjoint([types[i] for i in (id, *node.inputs)])):
            key: Any = id  # never part of a run
        else:
            line = node.where if op.check is not None else ""  # which an error names
            key = (op, types[id], *[types[i] for i in node.inputs], line, node.key(()) if node.params else None)
        found[k] = numbers.setdefault(key, len(numbers))
    return found


def _candidates(tokens: np.ndarray) -> list[tuple[int, int, int]]:
    """(start, end, period) of runs of numbers."""
    if len(tokens) < FEWEST * GRAM:
        return []
    return [region for p in _periods(tokens) for region in _regions(tokens, p)]


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
    for start, end in _stretches(tokens[p:] == tokens[:-p]):
        if end - start >= (FEWEST - 1) * p:
            yield start, end + p, p


def _stretches(flags: np.ndarray) -> Iterator[tuple[int, int]]:
    """The longest (start, end) that are all True."""
    same = np.concatenate([[False], flags, [False]])
    edges = np.flatnonzero(same[1:] != same[:-1]).tolist()
    yield from zip(edges[::2], edges[1::2], strict=True)


@final
class _Reader:
    """Compares what operations read. Of the operands of all operations, one after the other, it has

    nodes   the node
    places  the place of the operation that it is a view of
    views   a number for the view
    ends    where the operands of each operation end
    """

    def __init__(self, graph: Graph, ids: Sequence[int], tokens: np.ndarray):
        self._tokens = tokens
        self._operations = [graph.nodes[id] for id in ids]
        numbers = {id: k for k, id in enumerate(ids)}
        kinds: dict[object, int] = {}
        found: dict[int, tuple[int, int]] = {}
        for id, node in graph.nodes.items():
            if views(node):
                place, view = found[node.inputs[0]]
                found[id] = place, kinds.setdefault((view, node.key(()), node.results), len(kinds) + 1)
            else:
                found[id] = numbers.get(id, BEFORE), 0
        read = [graph.nodes[id].inputs for id in ids]
        self._ends = np.cumsum([0, *map(len, read)])
        self._nodes = np.array([i for inputs in read for i in inputs])
        self._places, self._views = np.array([found[i] for inputs in read for i in inputs]).reshape(-1, 2).T

    def runs(self, start: int, end: int, p: int) -> Iterator[tuple[int, int]]:
        """(first place, number of steps) of the runs in a region of period `p`."""
        for first, last in _stretches(self._moved(start, end - p, p, start)):
            if last - first >= (FEWEST - 2) * p:
                yield from self._cut(start, start + first, start + last + p, p)

    def _moved(self, start: int, end: int, p: int, outside: int, first: bool = False) -> np.ndarray:
        """For each operation from `start` to `end`, whether the one a period later reads what is to it the same: the
        same node, the one a period later, or another from before `outside`.

        first: these are the first step, which reads something else in place of what a step before has computed
        """
        ends, places = self._ends, self._places
        a, b = slice(ends[start], ends[end]), slice(ends[start + p], ends[end + p])
        same = self._nodes[a] == self._nodes[b]
        same |= (places[b] - places[a] == p) & (self._views[a] == self._views[b])
        same |= (places[a] < outside) & (places[b] < (end if first else outside))
        good = np.ones(end - start, bool)
        good[np.searchsorted(ends, ends[start] + np.flatnonzero(~same), "right") - 1 - start] = False
        return good

    def _cut(self, lowest: int, start: int, end: int, p: int) -> Iterator[tuple[int, int]]:
        """The steps between `start` and `end`, begun where the least is passed on; and the one before, if it only
        begins with other values."""
        first, last = start + p, min(start + 2 * p, end)
        readers = np.repeat(np.arange(first, last), np.diff(self._ends[first : last + 1]))
        read = self._places[self._ends[first] : self._ends[last]]
        change = np.zeros(end - start + 1)
        widest: dict[int, int] = {}  # the last reader of each
        for reader, place in zip(readers.tolist(), read.tolist(), strict=True):
            if place >= start:
                widest[place] = reader
        for place, reader in widest.items():
            change[place - start + 1] += self._operations[place].size
            change[reader - start + 1] -= self._operations[place].size
        live = np.cumsum(change)[: 2 * p]
        costs = np.bincount(np.arange(len(live)) % p, live, p)
        first = min(self._first(lowest, start + k, p) for k in np.flatnonzero(costs == costs.min())[:CUTS].tolist())
        count = (end - first) // p
        if count >= FEWEST:
            yield first, count

    def _first(self, lowest: int, first: int, p: int) -> int:
        while first - p >= lowest and self._begins(first - p, p):
            first -= p
        return first

    def _begins(self, first: int, p: int) -> bool:
        """Whether the operations from `first` on are those of a step, with what the first one starts from."""
        steps = self._tokens[first : first + p], self._tokens[first + p : first + 2 * p]
        if not np.array_equal(*steps):
            return False
        return bool(self._moved(first, first + p, p, first, True).all())
