"""Segments of a program that its user has checkpointed: backward computes their values again.

`torch.utils.checkpoint` marks what a segment is given and returns, and its gradient rule marks where the gradient of
the latter arrives. What lies between the first two is copied for what follows from the third, and `held` until then.
What has side effects, or a run-time check, and random numbers are not computed twice: they are kept.
"""

from __future__ import annotations

from collections.abc import Iterable

from graphc.execution.prices import movable
from graphc.execution.recompute import Copies
from graphc.ir import Graph
from graphc.ops import OPS
from graphc.ops.segments import ARRIVED, BEGIN, END

_SEGMENT, _HELD = OPS["segment"], OPS["held"]


def recomputing(graph: Graph) -> Graph:
    """`graph` with the values in its segments computed again where gradients read them. Outer segments come first: in
    their copies are those of inner ones, whose values are then computed a third time."""
    numbers = {n.params["number"] for n in graph.nodes.values() if n.op is _SEGMENT and n.params["place"] == ARRIVED}
    for number in sorted(numbers):
        graph = _recomputing(graph, number)
    return graph


def _recomputing(graph: Graph, number: int) -> Graph:
    nodes = graph.nodes
    places: dict[str, list[int]] = {BEGIN: [], END: [], ARRIVED: []}
    for id, node in nodes.items():
        if node.op is _SEGMENT and node.params["number"] == number:
            places[node.params["place"]].append(id)
    late = _descendants(graph, places[ARRIVED], waiting=True)
    # what the segment computes, and what gradient rules make of that alone
    inside = _descendants(graph, places[BEGIN]) - _descendants(graph, places[END]) - late - {*places[BEGIN]}
    copied = {id for id in inside if movable(nodes[id])}
    if not any(i in copied for id in late for i in nodes[id].inputs):
        return graph
    return Copies(graph, [id for id in nodes if id in late], copied).graph()


def _descendants(graph: Graph, roots: Iterable[int], waiting: bool = False) -> set[int]:
    """`roots` and what is computed from their values; if `waiting`, also what only waits for them."""
    found = set(roots)
    for id, node in graph.nodes.items():
        if not found.isdisjoint(node.inputs if waiting or node.op is not _HELD else node.inputs[:1]):
            found.add(id)
    return found
