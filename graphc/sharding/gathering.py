"""Inputs that are held in parts and computed with whole: where a graph gathers them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, final

from graphc.ir import Graph, Node
from graphc.ops import OPS
from graphc.sharding.correspondence import is_elementwise
from graphc.sharding.sharding import Sharding

_SHARD = OPS["shard"]


@final
class Held(NamedTuple):
    """How an input lies between calls, how it is computed with, and how what an optimizer keeps for it lies."""

    held: Sharding
    used: Sharding
    state: Sharding

    @classmethod
    def alike(cls, sharding: Sharding) -> Held:
        return cls(sharding, sharding, sharding)


def gathering(graph: Graph, known: Mapping[int, Held]) -> tuple[Graph, list[int]]:
    """The graph with inputs gathered where they are computed with, and split as an optimizer's state where that is done
    element by element, as an update is: so each device makes its part of it. Returns also the ids of the new nodes."""
    used = {i: h.used for i, h in known.items() if h.used != h.held}
    updated = {i: h.state for i, h in known.items() if h.state != h.held}
    if not used and not updated:
        return graph, []
    new = max(graph.nodes) + 1
    nodes: dict[int, Node] = {}
    made: dict[tuple[int, bool], int] = {}
    of: dict[int, int] = {i: i for i in {*used, *updated}}  # what is made of one input alone, as a cast of it: which
    for id, node in graph.nodes.items():
        inputs: list[int] = []
        plain = [i for i in node.inputs if not graph.nodes[i].op.several]
        alike = [i for i in plain if graph.nodes[i].shape == node.results[0].shape]
        sources = {of.get(i, -1) for i in node.inputs if graph.nodes[i].size > 1}
        if is_elementwise(node) and len(sources) == 1 and -1 not in sources and alike:
            of[id] = sources.pop()
            nodes[id] = node
            continue
        for i in node.inputs:
            source, updates = of.get(i, -1), is_elementwise(node) and i in alike
            wishes = updated if updates else used
            if source in wishes and (i, updates) not in made:
                operand = graph.nodes[i]
                nodes[new] = Node(new, _SHARD, (i,), {"spec": wishes[source].dims}, operand.results, operand.where)
                made[i, updates] = new
                new += 1
            inputs.append(made[i, updates] if source in wishes else i)
        nodes[id] = node.on(tuple(inputs))
    return graph.replace(nodes, graph.result), [*made.values()]
