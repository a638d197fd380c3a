"""Between which numbers the checks that an array has passed on its way leave its elements."""

from __future__ import annotations

import math
from collections.abc import Mapping

from graphc.ir import Node
from graphc.ops import OPS
from graphc.rewrite.rule import held_number

_GE, _LT = OPS["ge"], OPS["lt"]


def passed_range(id: int, nodes: Mapping[int, Node]) -> tuple[float, float]:
    """The least that an element may be, and what it is less than."""
    low, high, node = -math.inf, math.inf, nodes[id]
    while node.op.passes or node.op.view:
        condition = nodes[node.inputs[1]] if node.op.passes and len(node.inputs) == 2 else None
        if condition is not None and condition.op in (_GE, _LT) and condition.inputs[0] == node.inputs[0]:
            limit = held_number(condition.inputs[1], nodes)
            if isinstance(limit, int):
                low, high = (max(low, limit), high) if condition.op is _GE else (low, min(high, limit))
        node = nodes[node.inputs[0]]
    return low, high
