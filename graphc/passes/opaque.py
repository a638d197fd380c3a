"""Gradient rules that were traced are no part of an optimized program, which has its gradients already."""

from __future__ import annotations

from graphc.ir import Graph, Node
from graphc.ir.structure import CUSTOM
from graphc.passes.dce import eliminate_dead_code


def without_rules(graph: Graph) -> Graph:
    """`graph` with the values of its `custom_vjp` nodes, and an error in place of their rules: differentiating it again
    is refused."""
    if CUSTOM not in graph.ops:
        return graph
    rules = [node for node in graph.nodes.values() if node.op is CUSTOM and node.params["pullback"] is not None]
    if not rules:
        return graph
    nodes = dict(graph.nodes)
    for node in rules:
        results = node.params["results"]
        inputs = (*node.inputs[:results], *(node.inputs[k] for k in node.params["wrt"]))
        params = {"results": results, "pullback": None, "wrt": tuple(range(results, len(inputs))), "message": ""}
        nodes[node.id] = Node(node.id, CUSTOM, inputs, params, node.results, node.where, node.scope)
    return eliminate_dead_code(graph.replace(nodes, graph.result))
