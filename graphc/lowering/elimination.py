"""Elimination loses nan: LAPACK passes over it as a pivot, and on an H100 no factor may have one.

Of a matrix with nan all that is made of it is nan, as eager's kernels have it.
"""

from __future__ import annotations

from graphc.ir import Builder, Graph, Node, Symbol
from graphc.ir.structure import ITEM, map_bodies
from graphc.lowering.factors import FACTORED
from graphc.ops import OPS
from graphc.ops.dtypes import is_inexact

_ELIMINATE = frozenset((*FACTORED, OPS["lu"]))


def nan_kept(graph: Graph) -> Graph:
    """`graph` with nan in all numbers that elimination makes of a matrix with nan."""
    graph = map_bodies(graph, nan_kept)
    if _ELIMINATE.isdisjoint(graph.ops):
        return graph
    builder = Builder.beside(graph.nodes)
    new: dict[int, int] = {}
    for id, node in graph.nodes.items():
        builder.nodes[id] = moved = node.on(tuple([new.get(i, i) for i in node.inputs]))
        maker = builder.nodes[moved.inputs[0]] if node.op is ITEM else moved
        if maker.op in _ELIMINATE and not node.op.several and is_inexact(node.dtype):
            builder.where, builder.scope = node.where, node.scope
            new[id] = _kept(builder, builder.symbol(maker.inputs[0]), moved).id
    return graph.rewired(builder.nodes, new)


def _kept(builder: Builder, matrix: Symbol, node: Node) -> Symbol:
    F, result = builder.language, builder.symbol(node.id)
    lost = F.any(F.isnan(matrix), axis=(len(matrix.shape) - 2, len(matrix.shape) - 1), keepdims=False)
    behind = len(result.shape) - len(lost.shape)
    return F.where(F.reshape(lost, shape=(*lost.shape, *(1,) * behind)), float("nan"), result)
