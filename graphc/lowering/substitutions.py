"""Triangular equations that read their operands, or give their result, transposed.

LAPACK takes a transposed triangle, and unknowns on the left of it, at no cost. XLA would copy each matrix instead.
"""

from __future__ import annotations

from collections.abc import Mapping

from graphc.ir.graph import Node
from graphc.ir.matrices import transposes
from graphc.ops import OPS
from graphc.ops.dtypes import is_half

_SOLVE = OPS["solve_triangular"]


def substitution(
    node: Node, nodes: Mapping[int, Node], names: Mapping[int, str], uses: Mapping[int, int]
) -> str | None:
    """Python source for `node` of the graph with `nodes`, if it is such an equation; else None.

    uses: how often each node is read.
    """
    solved, left = node, True
    if transposes(node):  # (A^-1 B^T)^T is the X with X A^T = B
        solved, left = nodes[node.inputs[0]], False
        if solved.op is not _SOLVE or uses[solved.id] > 1 or not transposes(nodes[solved.inputs[1]]):
            return None
    if solved.op is not _SOLVE or is_half(solved.dtype):
        return None
    triangle, right = (nodes[i] for i in solved.inputs)
    turned = transposes(triangle)
    if left and not turned:
        return None
    upper, unit = solved.params["upper"], solved.params["unit"]
    a = names[triangle.inputs[0] if turned else triangle.id]
    b = names[right.id if left else right.inputs[0]]
    return (
        f"lax.linalg.triangular_solve({a}, {b}, left_side={left}, lower={upper == turned}, "
        f"transpose_a={turned == left}, unit_diagonal={unit})"
    )
