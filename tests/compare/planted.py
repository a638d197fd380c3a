"""Faults that more than one test plants."""

from __future__ import annotations

from typing import Any

from graphc.ir import Graph, Node
from graphc.ops import OPS
from graphc.rewrite import RewriteRule as R


def sum_for_difference(licence: Any) -> R:
    """A rule that makes sums of differences."""
    return R("planted_rule", licence, lambda F, x, y: x - y, lambda F, x, y: x + y)


def drops_scaling(graph: Graph) -> Graph:
    """A pass that takes every product for its first factor."""
    nodes: dict[int, Node] = {}
    for id, node in graph.nodes.items():
        if node.op is OPS["mul"]:
            node = Node(id, OPS["positive"], node.inputs[:1], {}, node.results, node.where)
        nodes[id] = node
    return graph.replace(nodes, graph.result)
