"""Graphs written anew, node by node."""

from __future__ import annotations

from collections.abc import Callable

from graphc.ir import Builder, Graph, Node, Symbol
from graphc.passes.dce import eliminate_dead_code


def replaced(graph: Graph, builder: Builder, instead: Callable[[Node], Symbol | None]) -> Graph:
    """`graph` with what `instead` gives for a node in its place; the node stays where that is None.

    instead is asked in order, about nodes on what is there now, which `builder` has; it appends there what it needs.
    """
    new: dict[int, int] = {}
    for id, node in graph.nodes.items():
        builder.where, builder.scope = node.where, node.scope
        if new and not new.keys().isdisjoint(node.inputs):
            node = node.on(tuple([new.get(i, i) for i in node.inputs]))
        builder.nodes[id] = node
        found = instead(node)
        if found is not None:
            new[id] = found.id
    if not new:
        return graph
    return eliminate_dead_code(graph.rewired(builder.nodes, new))
