"""Extremes whose places nobody asks for, as `x.max(1).values`, or of which nobody asks for more than the place."""

from __future__ import annotations

from graphc.ir import Builder, Graph, Node, Symbol
from graphc.ir.structure import ITEM
from graphc.ops import OPS
from graphc.passes.replacing import replaced

ALONE = {  # what an extreme and its place are, if only one of the two is read
    OPS["max_dim"]: (OPS["amax"], OPS["argmax"]),
    OPS["min_dim"]: (OPS["amin"], OPS["argmin"]),
}


def single_extremes(graph: Graph) -> Graph:
    """`graph` with one of the two in place of both."""
    if ALONE.keys().isdisjoint(graph.ops):
        return graph
    users, builder = graph.users(), Builder.beside(graph.nodes)

    def instead(node: Node) -> Symbol | None:
        maker = builder.nodes[node.inputs[0]] if node.op is ITEM else None
        if maker is None or maker.op not in ALONE or not builder.nodes[maker.inputs[0]].aval.ndim:
            return None
        k, reads = node.params["index"], [graph.nodes[i] for i in users[graph.nodes[node.id].inputs[0]]]
        if any(n.params["index"] != k for n in reads):
            return None
        op, axis = ALONE[maker.op][k], maker.params["axis"]
        params = {"axis": axis if k else (axis,), "keepdims": maker.params["keepdims"]}
        return builder.emit(op, [builder.symbol(maker.inputs[0])], params)

    return replaced(graph, builder, instead)
