"""What a node does to matrices."""

from __future__ import annotations

from collections.abc import Mapping

from graphc.ir.graph import Node
from graphc.ops import OPS
from graphc.ops.linalg import split_equation

_MATMUL, _ADDMM, _PERMUTE, _EINSUM = OPS["matmul"], OPS["addmm"], OPS["permute"], OPS["einsum"]


def transposes(node: Node) -> bool:
    """Whether it swaps the last two dims, and these only."""
    n = node.aval.ndim if node.op is _PERMUTE else 0
    return n >= 2 and node.params["dims"] == (*range(n - 2), n - 1, n - 2)


def product_letters(node: Node, nodes: Mapping[int, Node]) -> tuple[str, str, str] | None:
    """A letter for each dim of the two operands of a product, and of what they give, as einsum writes it.

    None for what is no product of two, and for products of stacks of matrices that are no einsum.
    """
    if node.op is _EINSUM:
        terms, out = split_equation(node.params["equation"])
        return (terms[0], terms[1], out) if len(terms) == 2 else None
    if node.op not in (_MATMUL, _ADDMM):
        return None
    ranks = [nodes[i].aval.ndim for i in node.inputs[-2:]]
    if not set(ranks) <= {1, 2}:
        return None
    left, right = "ik"[2 - ranks[0] :], "kj"[: ranks[1]]
    return left, right, (left + right).replace("k", "")
