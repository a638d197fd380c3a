"""How computed tensors lie in memory: as eager's kernels leave them, which keep the order of their operands' dims."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, final

import numpy as np

from graphc.capture.storage.memory import Memories
from graphc.ir import INPUT, Builder, Node
from graphc.ops.dims import has_dim
from graphc.ops.interpret import run_kernel
from graphc.ops.strides import Strides, row_major, strides_of

LARGEST = 1 << 12  # elements of an operand: of larger ones, pointwise ops are tried on fewer, others are row-major
FEW = 2  # elements along each dim that are enough to see an order


@final
class Layouts:
    """The strides of nodes of a graph under construction, found when they are asked for.

    given  f(position): the strides of an input
    """

    def __init__(self, builder: Builder, memories: Memories, given: Callable[[int], Strides]):
        self._builder, self._memories, self._given = builder, memories, given
        self._known: dict[int, Strides] = {}

    def of(self, id: int) -> Strides:
        """The strides of the value of node `id`, in elements; None if it is row-major."""
        pending = [id]
        while pending:
            node = self._builder.nodes[pending[-1]]
            if node.id not in self._known:
                place = self._memories.find(node.id)
                if place is not None or node.op.several or len(node.shape) < 2:
                    self._known[node.id] = None if place is None else place.strides
                elif missing := [i for i in node.inputs if i not in self._known]:
                    pending += missing
                    continue
                else:
                    self._known[node.id] = self._made(node)
            pending.pop()
        return self._known[id]

    def _made(self, node: Node) -> Strides:
        if node.op is INPUT:
            return self._given(self._builder.inputs.index(node.id))
        if node.op.structured or all(self._known[i] is None for i in node.inputs):
            return None
        operands = [self._builder.nodes[i] for i in node.inputs]
        if any(has_dim(operand.shape) for operand in operands):
            return None
        if all(_in_order(operand.shape, self._known[operand.id]) for operand in operands):
            return None
        small = any(operand.aval.size > LARGEST for operand in operands)
        if small and not node.op.pointwise:
            return None
        stand_ins = [_stand_in(operand, self._known[operand.id], small) for operand in operands]
        try:
            with np.errstate(all="ignore"):
                result = run_kernel(node.op, stand_ins, node.params)
        except Exception:  # whatever a kernel says about ones: what it would give is not known
            return None
        if not small:
            return strides_of(result)
        order = _order(strides_of(result) or row_major(result.shape))
        stored = row_major(tuple(node.shape[axis] for axis in order))
        found = dict(zip(order, stored, strict=True))
        return tuple(found[axis] for axis in range(len(node.shape)))


def _in_order(shape: tuple[int, ...], strides: Strides) -> bool:
    """Whether an array is row-major but for gaps between its elements, which kernels do not leave in their results."""
    if strides is None:
        return True
    steps = [step for n, step in zip(shape, strides, strict=True) if n != 1]
    return all(step > after for step, after in pairwise([*steps, 0]))


def _stand_in(node: Node, strides: Strides, small: bool) -> np.ndarray:
    """An array of ones with its dims in the same order in memory."""
    shape = tuple(min(n, FEW) for n in node.shape) if small else node.shape
    if strides is None:
        return np.ones(shape, node.dtype)
    order = _order(strides)
    made: Any = np.ones(tuple(shape[axis] for axis in order), node.dtype).transpose(np.argsort(order))
    # dims that repeat are read as such
    return np.broadcast_to(made[tuple(slice(0, 1) if s == 0 else slice(None) for s in strides)], shape)


def _order(strides: tuple[int, ...]) -> tuple[int, ...]:
    """The dims from the longest step to the shortest."""
    return tuple(sorted(range(len(strides)), key=lambda axis: -abs(strides[axis])))
