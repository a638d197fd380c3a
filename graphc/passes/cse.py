"""Common subexpression elimination: of equal computations, keep the first."""

from __future__ import annotations

from typing import Any

from graphc.ir import INPUT, Graph, Node
from graphc.passes.settled import settling


@settling
def eliminate_common_subexpressions(graph: Graph) -> Graph:
    """`graph` with every pure operation computed once. Operands of commutative ops are compared in either order."""
    alone: dict[tuple[Any, ...], int] = {}  # by op and operands, which are seldom those of another node
    first: dict[tuple[Any, ...], int] = {}
    new: dict[int, int] = {}  # of nodes that are computed before
    kept: dict[int, Node] = {}
    for id, node in graph.nodes.items():
        if new and not new.keys().isdisjoint(node.inputs):
            node = node.on(tuple([new.get(i, i) for i in node.inputs]))
        op = node.op
        if op is not INPUT and not op.impure:
            ordered = node.inputs
            if op.commutative and ordered[0] > ordered[1]:
                ordered = ordered[::-1]
            like = alone.setdefault((op, ordered), id)
            if like != id:
                first.setdefault(kept[like].key(ordered), like)
                same = first.setdefault(node.key(ordered), id)
                if same != id:
                    new[id] = same
                    continue
        kept[id] = node
    if not new:
        return graph
    return graph.rewired(kept, new)
