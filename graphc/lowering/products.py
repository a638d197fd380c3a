"""Small products that read their operands, or give their result, transposed.

XLA would copy a matrix to transpose it, in a kernel of its own; for a large one that takes no time beside the product.
"""

from __future__ import annotations

from collections.abc import Mapping

from graphc.ir.graph import Node
from graphc.ops import OPS
from graphc.ops.dtypes import is_half, is_inexact

SMALL = 2**14  # elements of a matrix
NARROW = 16  # columns of one: such a product, transposed afterwards, XLA writes as a loop without blocks
_MATMUL, _ADDMM, _PERMUTE = OPS["matmul"], OPS["addmm"], OPS["permute"]


def product(node: Node, nodes: Mapping[int, Node], names: Mapping[int, str], uses: Mapping[int, int]) -> str | None:
    """Python source for `node` of the graph with `nodes`, if it is such a product of two matrices; else None.

    uses: how often each node is read.
    """
    if node.op is _PERMUTE and _is_transpose(node):
        inner = nodes[node.inputs[0]]
        if inner.op is not _MATMUL or uses[inner.id] > 1:
            return None
        if not _of_matrices(inner, nodes, any_size=node.shape[0] <= NARROW):
            return None
        left, right = (nodes[i] for i in inner.inputs)
        # (A^T B)^T = B^T A; of the two, XLA is twice as fast where the narrower matrix comes first
        if not _is_transpose(left) or _is_transpose(right) or node.shape[0] > node.shape[1]:
            return None
        return _dot(names[right.id], 0, names[left.inputs[0]], 0)
    if node.op not in (_MATMUL, _ADDMM) or not _of_matrices(node, nodes):
        return None
    *bias, left, right = (nodes[i] for i in node.inputs)
    if not (_is_transpose(left) or _is_transpose(right)):
        return None
    (a, i), (b, j) = (
        (names[m.inputs[0]], 1 - dim) if _is_transpose(m) else (names[m.id], dim) for m, dim in ((left, 1), (right, 0))
    )
    text = _dot(a, i, b, j)
    return f"jnp.add({text}, {names[bias[0].id]})" if bias else text


def _is_transpose(node: Node) -> bool:
    return node.op is _PERMUTE and node.params["dims"] == (1, 0)


def _of_matrices(node: Node, nodes: Mapping[int, Node], any_size: bool = False) -> bool:
    """Whether `node` is a product of small matrices, in the dtype that it computes in."""
    dtype = node.dtype
    exact = is_inexact(dtype) and not is_half(dtype) and all(nodes[i].dtype == dtype for i in node.inputs)
    return exact and all(nodes[i].aval.ndim == 2 and (any_size or nodes[i].size <= SMALL) for i in node.inputs[-2:])


def _dot(a: str, i: int, b: str, j: int) -> str:
    """The product of `a` and `b` over dimension `i` of one and `j` of the other."""
    return f"lax.dot_general({a}, {b}, ((({i},), ({j},)), ((), ())))"
