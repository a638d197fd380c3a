"""Elimination loses nan: LAPACK passes over it as a pivot, and on an H100 no factor may have one.

Of a matrix with nan all that is made of it is nan, as eager's kernels have it.
"""

from __future__ import annotations

from graphc.ir import Builder, Graph, Symbol
from graphc.ir.structure import ITEM, map_bodies
from graphc.lowering.factors import FACTORED, base_of
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
    lost: dict[int, Symbol] = {}  # which matrices have nan
    for id, node in graph.nodes.items():
        builder.nodes[id] = moved = node.on(tuple([new.get(i, i) for i in node.inputs]))
        maker = builder.nodes[moved.inputs[0]] if node.op is ITEM else moved
        if maker.op in _ELIMINATE and not node.op.several and is_inexact(node.dtype):
            builder.where, builder.scope = node.where, node.scope
            matrix, _ = base_of(maker.inputs[0], builder.nodes)
            if matrix not in lost:
                lost[matrix] = _has_nan(builder.symbol(matrix))
            new[id] = _kept(lost[matrix], builder.symbol(id)).id
    return graph.rewired(builder.nodes, new)


def _has_nan(matrix: Symbol) -> Symbol:
    F, axes = matrix.builder.language, (len(matrix.shape) - 2, len(matrix.shape) - 1)
    if matrix.dtype.kind == "f" and all(type(n) is int and n for n in matrix.shape[-2:]):
        # a maximum is nan if any number is, and takes a quarter of the time of asking each
        return F.isnan(F.amax(matrix, axis=axes, keepdims=False))
    return F.any(F.isnan(matrix), axis=axes, keepdims=False)


def _kept(lost: Symbol, result: Symbol) -> Symbol:
    F, behind = lost.builder.language, len(result.shape) - len(lost.shape)
    return F.where(F.reshape(lost, shape=(*lost.shape, *(1,) * behind)), float("nan"), result)
