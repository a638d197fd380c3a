"""Dead code elimination: keep what the result needs, and the inputs."""

from __future__ import annotations

from graphc.ir import INPUT, Graph


def eliminate_dead_code(graph: Graph) -> Graph:
    """`graph` without the nodes that neither the result nor an impure op depends on."""
    nodes = graph.nodes
    live: set[int] = set()
    stack = list(graph.outputs)
    stack += [node.id for node in graph.operations() if node.op.impure]
    while stack:
        id = stack.pop()
        if id not in live:
            live.add(id)
            stack.extend(nodes[id].inputs)
    kept = {id: node for id, node in nodes.items() if id in live or node.op is INPUT}
    return graph if len(kept) == len(nodes) else graph.replace(kept, graph.result)
