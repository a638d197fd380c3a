"""Assumptions that need no check, because they follow from how their arrays are made."""

from __future__ import annotations

from graphc.facts.known import Facts
from graphc.ir import Graph
from graphc.ops import OPS
from graphc.ops.assumptions import Fact
from graphc.passes.dce import eliminate_dead_code

_ASSUME = OPS["assume"]


def drop_proven(graph: Graph) -> Graph:
    """`graph` without the assumptions that are facts by themselves, and those that are made twice."""
    if _ASSUME not in graph.ops:
        return graph
    nodes = dict(graph.nodes)
    facts = Facts(nodes)
    new: dict[int, int] = {}
    made: dict[tuple[int, Fact], int] = {}
    for id, node in graph.nodes.items():
        if new:
            node = nodes[id] = node.on(tuple([new.get(i, i) for i in node.inputs]))
        if node.op is not _ASSUME:
            continue
        fact = node.params["fact"]
        if facts.holds(node.inputs[0], fact):
            new[id] = node.inputs[0]
        else:
            first = made.setdefault((node.inputs[0], fact), id)
            if first != id:
                new[id] = first
    if not new:
        return graph
    for id in new:
        del nodes[id]
    return eliminate_dead_code(graph.rewired(nodes, new))
