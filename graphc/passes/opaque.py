"""Gradient rules that were traced are no part of an optimized program, which has its gradients already."""

from __future__ import annotations

from graphc.ir import Graph, Node
from graphc.ir.structure import CUSTOM, ITEM
from graphc.ops import OPS
from graphc.passes.dce import eliminate_dead_code

_USER = OPS["user_function"]


def without_rules(graph: Graph) -> Graph:
    """`graph` with the values of its `custom_vjp` nodes, and a mark in place of their rules: differentiating it again
    is an error, not another gradient."""
    rules = {id: node for id, node in graph.nodes.items() if node.op is CUSTOM}
    if not rules:
        return graph
    nodes: dict[int, Node] = {}
    for id, node in graph.nodes.items():
        if node.op is ITEM and node.inputs[0] in rules:
            rule = rules[node.inputs[0]]
            of = (rule.inputs[node.params["index"]], *(rule.inputs[k] for k in rule.params["wrt"]))
            nodes[id] = Node(id, _USER, of, {}, node.results, node.where, node.scope)
        elif id not in rules:
            nodes[id] = node
    return eliminate_dead_code(graph.replace(nodes, graph.result))
