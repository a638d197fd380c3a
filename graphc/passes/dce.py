"""Dead code elimination: keep what the result needs, and the inputs."""

from __future__ import annotations

from graphc.ir import INPUT, Graph
from graphc.passes.settled import settling


@settling
def eliminate_dead_code(graph: Graph) -> Graph:
    """`graph` without the nodes that neither the result nor an impure op depends on."""
    live = set(graph.outputs)
    for id, node in reversed(list(graph.nodes.items())):
        if id in live or node.op.impure or node.op is INPUT:
            live.add(id)
            live.update(node.inputs)
    if len(live) == len(graph.nodes):
        return graph
    return graph.replace({id: node for id, node in graph.nodes.items() if id in live}, graph.result)
