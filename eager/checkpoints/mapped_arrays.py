"""Arrays over memory that a file has given."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

NOT_BOOL = "a bool that is neither 0 nor 1"  # on which NumPy's loops go astray
MOST_DIMS = 64


def over(
    memory: np.ndarray, dtype: np.dtype, shape: tuple[int, ...], strides: tuple[int, ...], offset: int
) -> np.ndarray:
    """The array that shows `memory`, which is flat and of bytes, in steps of `strides` bytes from byte `offset` on.

    Raises ValueError unless all of it lies in `memory`.
    """
    if len(shape) != len(strides) or len(shape) > MOST_DIMS:
        raise ValueError(f"a tensor with {len(shape)} dims and {len(strides)} strides")
    if min((*shape, *strides, offset)) < 0:
        raise ValueError("a negative size, stride or offset")
    if not math.prod(shape):
        return np.ndarray(shape, dtype, memory, 0, strides)
    last = offset + sum(step * (size - 1) for size, step in zip(shape, strides, strict=True)) + dtype.itemsize
    if last > memory.size:
        raise ValueError(f"it reaches beyond its memory: to byte {last:,} of {memory.size:,}")
    return np.ndarray(shape, dtype, memory, offset, strides)


def check_bools(array: np.ndarray, memory: np.ndarray) -> None:
    """ValueError unless the bools of an array over `memory` are 0 and 1."""
    if array.dtype.kind != "b" or not array.size:
        return
    # expanded dims may have more elements than there are bytes
    seen = array.view(np.uint8) if array.size <= memory.size else memory
    if seen.max() > 1:
        raise ValueError(NOT_BOOL)


class _Memory:
    """The bytes from `start` to `end`, as NumPy takes them."""

    def __init__(self, start: int, end: int, owners: Sequence[np.ndarray]):
        self.__array_interface__ = {"data": (start, True), "shape": (end - start,), "typestr": "|u1", "version": 3}
        self._owners = owners


def address(array: np.ndarray) -> int:
    """Where the first element lies."""
    return array.__array_interface__["data"][0]


def memory_of(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """The memory that the arrays lie in, flat and of bytes, which may only be read."""
    bounds = [np.lib.array_utils.byte_bounds(array) for array in arrays]
    start, end = min(low for low, _ in bounds), max(high for _, high in bounds)
    return np.asarray(_Memory(start, end, arrays))
