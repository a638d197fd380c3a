"""Arrays that no input changes: masks made of counted numbers, triangles of ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import final

import numpy as np

from graphc.ir import INPUT, Node
from graphc.ops import OPS
from graphc.ops.interpret import run_kernel

MOST = 1 << 22  # elements of an array that is computed to be looked at
_CONSTANT = OPS["constant"]


@final
class Held:
    """Values of nodes, computed when they are asked for."""

    def __init__(self, nodes: Mapping[int, Node]):
        self._nodes = nodes
        self._is_held: dict[int, bool] = {}
        self._values: dict[int, np.ndarray | None] = {}

    def is_held(self, id: int) -> bool:
        """Whether a node depends on no input, and is made of arrays of modest sizes."""
        stack = [id]
        while stack:
            k = stack[-1]
            node = self._nodes[k]
            left = [i for i in node.inputs if i not in self._is_held] if k not in self._is_held else []
            if left and _is_plain(node):
                stack += left
                continue
            stack.pop()
            self._is_held[k] = _is_plain(node) and all(self._is_held[i] for i in node.inputs)
        return self._is_held[id]

    def value(self, id: int) -> np.ndarray | None:
        """The array that a node is; None if that depends on inputs, or is refused."""
        if id not in self._values:
            self._values[id] = self._computed(self._nodes[id]) if self.is_held(id) else None
        return self._values[id]

    def _computed(self, node: Node) -> np.ndarray | None:
        if node.op is _CONSTANT:
            return node.params["value"].array
        operands = [value for i in node.inputs if (value := self.value(i)) is not None]
        if len(operands) < len(node.inputs):
            return None
        if node.check is not None and not node.check.ok(np, *operands, **node.params):
            return None
        return run_kernel(node.op, operands, node.params)


def _is_plain(node: Node) -> bool:
    if node.op is INPUT or node.op.impure or node.op.structured or node.op.several:
        return False
    return all(type(n) is int for n in node.shape) and node.size <= MOST
