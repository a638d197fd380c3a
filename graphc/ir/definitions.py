"""Ops that are defined by others stand whole in a graph until its gradients are made: their own rules give those.

The gradient of a definition is another at special places: 0 * nan where the rule has 0.
"""

from __future__ import annotations

from graphc.ir.builder import Builder
from graphc.ir.graph import Graph, Node
from graphc.ir.structure import map_bodies
from graphc.ops.dtypes import is_inexact


def without_composites(graph: Graph, exact: bool = False) -> Graph:
    """`graph` with definitions in place of the ops that have one; not in the graphs that its nodes run.

    What is computed keeps its id.
    exact: ops stay that NumPy computes by a kernel of their own, which may round otherwise
    """
    if all(op.definition is None for op in graph.ops):
        return graph
    builder = Builder()
    builder.next_id = max(graph.nodes) + 1
    for id, node in graph.nodes.items():
        definition = node.op.definition
        if definition is None or (exact and _may_round_otherwise(node)):
            builder.nodes[id] = node
            continue
        builder.where, builder.scope = node.where, node.scope
        made = definition(builder.language, *[builder.symbol(i) for i in node.inputs], **node.params)
        last = builder.nodes.pop(made.id)
        builder.nodes[id] = Node(id, last.op, last.inputs, last.params, node.results, node.where, node.scope)
    return graph.replace(builder.nodes, graph.result)


def _may_round_otherwise(node: Node) -> bool:
    return node.op.numpy is not None and not node.op.moves and is_inexact(node.dtype)


def without_composites_anywhere(graph: Graph) -> Graph:
    """As `without_composites`, also in the graphs that nodes run."""
    return without_composites(map_bodies(graph, without_composites_anywhere))
