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
    instead: dict[int, int] = {}
    in_update: dict[int, int] = {}
    added: list[int] = []
    for id, node in graph.nodes.items():
        keeps = is_elementwise(node)
        inputs = [
            (in_update if keeps and graph.nodes[i].shape == node.shape else instead).get(i, i) for i in node.inputs
        ]
        nodes[id] = node.on(tuple(inputs))
        for wishes, becomes in ((used, instead), (updated, in_update)):
            if id in wishes:
                nodes[new] = Node(new, _SHARD, (id,), {"spec": wishes[id].dims}, node.results, node.where)
                becomes[id] = new
                added.append(new)
                new += 1
    return graph.replace(nodes, graph.result), added
