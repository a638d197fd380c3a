"""Products that are sums over rows, A^T B: several of one shape are one, of the A, and of the B, below each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from graphc.ir import Node
from graphc.ops import OPS

_MATMUL, _MUL, _PERMUTE, _SUM = OPS["matmul"], OPS["mul"], OPS["permute"], OPS["sum"]
MANY = 256  # rows of a product that is large enough by itself


class RowProduct(NamedTuple):
    """A^T B of two matrices or, without A, the sum of the rows of B.

    What A and B have in common is the number of rows: `a` and `b` may be vectors that are one row of them.
    """

    a: int | None
    b: int


def row_product(nodes: Mapping[int, Node], id: int) -> RowProduct | None:
    """Node `id` as a sum over rows. None for others, and where the operands take more memory than the product."""
    node = nodes[id]
    if node.op is _PERMUTE and node.aval.ndim == 2 and nodes[node.inputs[0]].op is _MATMUL:  # (A^T B)^T = B^T A
        product = row_product(nodes, node.inputs[0])
        return None if product is None or product.a is None else RowProduct(product.b, product.a)
    if node.op is _SUM and node.params == {"axis": (0,), "keepdims": False} and nodes[node.inputs[0]].aval.ndim == 2:
        return RowProduct(None, node.inputs[0])
    if node.op is _MATMUL and nodes[node.inputs[0]].op is _PERMUTE and node.aval.ndim == 2:
        a, b = nodes[node.inputs[0]].inputs[0], node.inputs[1]
        if nodes[b].aval.ndim == 2 and nodes[a].aval.size + nodes[b].aval.size <= node.aval.size:
            return RowProduct(a, b)
    if node.op is _MUL and node.aval.ndim == 2 and min(node.shape) > 1:  # a column times a row
        for a, b in (node.inputs, node.inputs[::-1]):
            if nodes[a].shape == (node.shape[0], 1) and nodes[b].shape in (node.shape[1:], (1, node.shape[1])):
                return RowProduct(a, b)
    return None
