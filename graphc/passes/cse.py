"""Common subexpression elimination: of equal computations, keep the first."""

from __future__ import annotations

from typing import Any

from graphc.ir import INPUT, Graph, Node, rename


def eliminate_common_subexpressions(graph: Graph) -> Graph:
    """`graph` with every pure operation computed once. Operands of commutative ops are compared in either order."""
    first: dict[tuple[Any, ...], int] = {}
    new: dict[int, int] = {}
    kept: dict[int, Node] = {}
    for id, node in graph.nodes.items():
        inputs = tuple([new[i] for i in node.inputs])
        if node.op is INPUT or node.op.impure:
            new[id] = id
            kept[id] = node.on(inputs)
            continue
        ordered = tuple(sorted(inputs)) if node.op.commutative else inputs
        same = first.setdefault(node.key(ordered), id)
        new[id] = same
        if same == id:
            kept[id] = node.on(inputs)
    return graph if len(kept) == len(graph.nodes) else graph.replace(kept, rename(graph.result, new))
