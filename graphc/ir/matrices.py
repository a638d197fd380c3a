"""What a node does to matrices."""

from __future__ import annotations

from graphc.ir.graph import Node
from graphc.ops import OPS

_PERMUTE = OPS["permute"]


def transposes(node: Node) -> bool:
    """Whether it swaps the last two dims, and these only."""
    n = node.aval.ndim if node.op is _PERMUTE else 0
    return n >= 2 and node.params["dims"] == (*range(n - 2), n - 1, n - 2)
