"""Computing values of a whole step again, where they are read a long time after they were made.

The step is cut in two at the time at which it takes most memory. What was computed before and is read after is kept, or
computed again from what is kept: the same minimum cut as between a forward and a backward program (`partition`). A
value that others are computed from again is `held` until just before the first of them is read, so that XLA neither
merges the two computations nor begins with the second at once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from graphc.execution.prices import Recomputation, prices, size_of
from graphc.footprint.liveness import Liveness
from graphc.ir import INPUT, Graph, Node
from graphc.ir.cut import cheapest_cut
from graphc.ir.structure import ancestors
from graphc.ops import OPS
from graphc.passes.dce import eliminate_dead_code
from graphc.rewrite.cost import work

_HELD = OPS["held"]


class Recomputed(NamedTuple):
    """A program that computes values again.

    values  ids of those, in the program that it was made from
    work    scalar operations that this costs
    """

    graph: Graph
    values: tuple[int, ...]
    work: float


def recomputed(graph: Graph, alive: Liveness, again: Recomputation) -> Recomputed | None:
    """`graph` with values computed again after its peak, which `alive` has found. None if that is of no use."""
    nodes = graph.nodes
    first = ancestors(nodes, [unit.id for unit in alive.order[: alive.step + 1] if unit.id in nodes])
    early = {id: node.inputs for id, node in nodes.items() if id in first}
    late = [id for id in nodes if id not in first]
    needed = {i for id in late for i in nodes[id].inputs if i in first}
    there = {id for id in first if nodes[id].op is INPUT}
    costs = prices(nodes, early, first, set(graph.outputs), there, again)
    costs |= {id: costs[id]._replace(hand_over=0) for id in graph.outputs if id in costs and not nodes[id].op.several}
    kept = cheapest_cut(early, costs, needed)
    free = {id for id, price in costs.items() if price.hand_over == 0}
    again_from = ancestors(nodes, needed, kept | free) - kept - free
    copied = [id for id in nodes if id in again_from]
    if not copied:
        return None
    made = Copies(graph, late, set(copied)).graph()
    heavy = [id for id in copied if nodes[id].inputs]
    return Recomputed(made, tuple(heavy), sum(work(nodes[id], nodes) for id in heavy))


def lazily(backward: Graph, given: int) -> Graph:
    """A backward program that computes again what it was not given just before it reads that.

    given  the number of its inputs, the first ones, that do not depend on cotangents
    """
    nodes = backward.nodes
    late: dict[int, None] = dict.fromkeys(backward.inputs[given:])
    for id, node in nodes.items():
        if any(i in late for i in node.inputs):
            late[id] = None
    again = {id for id, node in nodes.items() if id not in late and node.inputs and not node.op.impure}
    if not again:
        return backward
    made = Copies(backward, [id for id in nodes if id in late], again).graph()
    return eliminate_dead_code(made)


class Copies:
    """The graph with copies of the nodes `copied`, each just before the first node that reads it."""

    def __init__(self, graph: Graph, late: Sequence[int], copied: Collection[int]):
        self._graph, self._copied = graph, copied
        self._next = max(graph.nodes) + 1
        later = set(late)
        self._nodes = {id: node for id, node in graph.nodes.items() if id not in later}
        self._new: dict[int, int] = {}  # what stands for an early value from here on
        self._until = self._anchors(late)
        self._held_until: dict[int, int] = {}
        for id in late:
            node = graph.nodes[id]
            inputs = tuple([self._value(i) for i in node.inputs])
            self._nodes[id] = node.on(inputs)

    def _anchors(self, late: Sequence[int]) -> dict[int, int]:
        """For each copy, and each value that copies are made of, a late value that is known before it is read."""
        nodes, later = self._graph.nodes, set(late)
        found: dict[int, int] = {}
        known: int | None = None  # the latest
        first: set[int] = set()  # what is read before any late value is known: no copy could wait for one
        for id in late:
            node = nodes[id]
            reached = self._reached(node.inputs, found)
            if known is None:
                first.update(reached)
            else:
                own = [i for i in node.inputs if i in later and not nodes[i].op.several]
                found |= dict.fromkeys([i for i in reached if i not in first], own[-1] if own else known)
            if not node.op.several and node.aval.size:
                known = id
        return found

    def _reached(self, ids: Sequence[int], found: Mapping[int, int]) -> list[int]:
        """The copies among `ids` and what they are made of, not yet `found`."""
        reached: dict[int, None] = {}
        stack = [i for i in ids if i in self._copied and i not in found]
        while stack:
            i = stack.pop()
            if i in reached or i in found:
                continue
            reached[i] = None
            if i in self._copied:
                stack.extend(self._graph.nodes[i].inputs)
        return list(reached)

    def _value(self, id: int) -> int:
        """What a late node reads in place of `id`."""
        if id in self._new:
            return self._new[id]
        return self._copy(id) if id in self._copied and id in self._until else id

    def _copy(self, id: int) -> int:
        """Append the copy of a node, and of what it is made of."""
        stack = [id]
        while stack:
            node = self._graph.nodes[stack[-1]]
            missing = [i for i in node.inputs if i in self._copied and i in self._until and i not in self._new]
            if missing:
                stack.extend(missing)
                continue
            stack.pop()
            if node.id not in self._new:
                self._hold(node)
                inputs = tuple([self._new.get(i, i) for i in node.inputs])
                self._new[node.id] = self._append(node, inputs)
                self._held_until[self._new[node.id]] = self._until[node.id]
        return self._new[id]

    def _hold(self, node: Node) -> None:
        """Let something that the copy of `node` reads be held until then, unless something is already."""
        nodes, until = self._graph.nodes, self._until[node.id]
        if not node.inputs or any(self._held_until.get(self._new.get(i, i)) == until for i in node.inputs):
            return
        fixed = [i for i in dict.fromkeys(node.inputs) if not nodes[i].op.several and nodes[i].size]
        varying = [i for i in fixed if nodes[i].inputs or nodes[i].op is INPUT]
        for i in sorted(varying, key=lambda i: (i in self._copied, nodes[i].op is INPUT, size_of(nodes[i].aval)))[:1]:
            whole = nodes[i]
            inputs = self._new.get(i, i), until
            self._new[i] = self._append(Node(0, _HELD, (), {}, whole.results, whole.where, whole.scope), inputs)
            self._held_until[self._new[i]] = until

    def _append(self, node: Node, inputs: tuple[int, ...]) -> int:
        id = self._next
        self._next += 1
        self._nodes[id] = Node(id, node.op, inputs, node.params, node.results, node.where, node.scope)
        return id

    def graph(self) -> Graph:
        """The program."""
        return self._graph.replace(self._nodes, self._graph.result)
