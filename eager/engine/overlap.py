"""Writes that read the memory which they write: PyTorch refuses those whose result would depend on the order.

It looks at tensors that lie in one stretch of memory, each element once; of others it computes what comes of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from eager.core.interpreter import current_interpreter
from eager.core.placed import Placed
from eager.core.tensor import Tensor
from graphc.ops.strides import row_major

OVERLAP = (
    "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory "
    "location. Please clone() the tensor before performing the operation."
)


class Extent(NamedTuple):
    """Where the elements of a tensor lie in some memory, in bytes."""

    start: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.itemsize

    def is_dense(self) -> bool:
        """Whether the elements, if there are any, lie in one stretch, each once."""
        steps = [(n - 1) * s for n, s in zip(self.shape, self.strides, strict=True)]
        return 0 not in self.shape and min(steps, default=0) >= 0 and sum(steps) + self.itemsize == self.nbytes

    def is_same(self, other: Extent) -> bool:
        """Whether each element lies where that of `other` does."""
        if (self.start, self.shape) != (other.start, other.shape):
            return False
        return all(s == t for n, s, t in zip(self.shape, self.strides, other.strides, strict=True) if n > 1)

    def overlaps(self, other: Extent) -> bool:
        """Whether two dense stretches have some memory in common."""
        return (
            self.is_dense()
            and other.is_dense()
            and self.start < other.start + other.nbytes
            and other.start < self.start + self.nbytes
        )


def extents_of(a: Tensor, b: Tensor) -> tuple[Extent, Extent] | None:
    """Where two tensors that have values lie in the memory that they share; None if they share none."""
    x: Any = a._d
    y: Any = b._d
    if x.__class__ is np.ndarray and y.__class__ is np.ndarray:
        if _own_different(x, y):
            return None
        return (_of_array(x), _of_array(y)) if np.may_share_memory(x, y) else None
    if x.__class__ is Placed and y.__class__ is Placed and x.memory is y.memory:
        return _of_placed(x), _of_placed(y)
    return None


def _own_different(x: np.ndarray, y: np.ndarray) -> bool:
    """Whether it is plain at once that two arrays lie in different memory: the usual case."""
    a: Any = x if x.base is None else x.base
    b: Any = y if y.base is None else y.base
    return a is not b and a.__class__ is b.__class__ is np.ndarray and a.base is None and b.base is None


def _of_array(array: np.ndarray) -> Extent:
    return Extent(array.__array_interface__["data"][0], array.shape, array.strides, array.itemsize)


def _of_placed(data: Placed) -> Extent:
    return extent_from(0, data.offset, data.shape, data.stride, data.numpy_dtype.itemsize)


def extent_from(start: int, offset: int, shape: tuple[int, ...], strides: Any, itemsize: int) -> Extent:
    """An extent by its place behind `start` and its strides (None: row-major), in elements."""
    steps = row_major(shape) if strides is None else strides
    return Extent(start + offset * itemsize, shape, tuple(s * itemsize for s in steps), itemsize)


def may_overlap(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors may share memory; False where that is plain at once: the usual case."""
    x: Any = a._d
    y: Any = b._d
    owned = x.__class__ is y.__class__ is np.ndarray and x.base is None and y.base is None
    return not owned or x is y


def check_partial(target: Tensor, operands: Iterable[Any]) -> None:
    """Raise PyTorch's RuntimeError if an operand shows some of what `target` shows, but not the same."""
    for x in operands:
        if isinstance(x, Tensor) and x is not target and _overlap(target, x, same=False):
            raise RuntimeError(OVERLAP)


def check_apart(target: Tensor, operands: Iterable[Any]) -> None:
    """Raise PyTorch's RuntimeError if an operand shows some of what `target` shows."""
    for x in operands:
        if isinstance(x, Tensor) and (x is target or _overlap(target, x, same=True)):
            raise RuntimeError(OVERLAP)


def _overlap(target: Tensor, operand: Tensor, same: bool) -> bool:
    found = current_interpreter().extents(target, operand)
    return found is not None and found[0].overlaps(found[1]) and (same or not found[0].is_same(found[1]))


def combines(target: np.ndarray, operand: np.ndarray) -> bool:
    """Whether `operand` may be combined into `target` in place: it is all of it, or none."""
    if _own_different(target, operand) or not np.may_share_memory(target, operand):
        return True
    x, y = _of_array(target), _of_array(operand)
    return not x.overlaps(y) or x.is_same(y)
