"""Dead code elimination: keep what the result needs, and the inputs."""

from __future__ import annotations

from graphc.ir import INPUT, Graph
from graphc.ir.structure import ancestors


def eliminate_dead_code(graph: Graph) -> Graph:
    """`graph` without the nodes that neither the result nor an impure op depends on."""
    kept = [id for id, node in graph.nodes.items() if node.op.impure or node.op is INPUT]
    live = ancestors(graph.nodes, [*graph.outputs, *kept])
    if len(live) == len(graph.nodes):
        return graph
    return graph.replace({id: node for id, node in graph.nodes.items() if id in live}, graph.result)
