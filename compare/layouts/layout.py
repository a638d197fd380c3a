"""Layouts: the places of an array's elements in memory, as a value that can be written down and made again."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

LINE = 64  # bytes: no vector unit asks for more alignment
STEPS = (2, 3, 4, 8, -1, -4)  # of the set that is tried where all of them would be too many


class Layout(NamedTuple):
    """Where elements lie: `strides` in elements, one for each dim. 0 repeats an element, a negative one goes backwards.

    offset  elements before the lowest one, which lies so far from a multiple of 64 bytes
    shift   bytes by which all of them are out of alignment
    """

    strides: tuple[int, ...]
    offset: int = 0
    shift: int = 0

    def placed(self, array: np.ndarray) -> np.ndarray:
        """A new array that lies so, with the values of `array`; where elements share a place, those of the first.

        As in a tensor that `expand` gives, elements that are repeated are read-only.
        """
        size = array.itemsize
        reach = [(n - 1) * s for n, s in zip(array.shape, self.strides, strict=True) if n]
        low, high = sum(r for r in reach if r < 0), sum(r for r in reach if r > 0)
        memory = np.zeros((self.offset + high - low + 1) * size + self.shift + LINE, np.uint8)
        start = -memory.__array_interface__["data"][0] % LINE + self.shift + (self.offset - low) * size
        result = np.ndarray(array.shape, array.dtype, memory, start, tuple(s * size for s in self.strides))
        repeated = [s == 0 and n > 1 for n, s in zip(array.shape, self.strides, strict=True)]
        result[...] = array[tuple(slice(0, 1) if r else slice(None) for r in repeated)] if any(repeated) else array
        result.flags.writeable = not any(repeated)
        return result

    def is_plain(self, shape: tuple[int, ...]) -> bool:
        """Whether this is how a new array of that shape lies, but for the alignment of its first element."""
        return self._replace(offset=0) == Layout(stepped(shape).strides)

    @property
    def weight(self) -> int:
        """How far it is from that of a new array."""
        return 1 + sum(2 * abs(s) + (s < 0) for s in self.strides) + self.offset + self.shift

    def __str__(self) -> str:
        more = [f"offset {self.offset}"] * bool(self.offset) + [f"{self.shift} bytes off"] * bool(self.shift)
        return ", ".join([f"strides {self.strides}", *more])


def placed(array: np.ndarray, strides: Sequence[int], offset: int = 0, shift: int = 0) -> np.ndarray:
    """`array` in the layout that these numbers say: see `Layout`. For scripts.

    >>> placed(np.arange(6.0).reshape(2, 3), (-1, 4)).strides
    (-8, 32)
    """
    return Layout(tuple(strides), offset, shift).placed(array)


def laid_out(array: np.ndarray, name: str) -> np.ndarray:
    """`array` in the layout of `layouts_of` with that name, as it is if its shape has none."""
    known = dict(layouts_of(array.shape))
    return known[name].placed(array) if name in known else array


def layout_of(array: np.ndarray) -> Layout | None:
    """The layout of `array`; None if its steps are no multiples of its elements, or elements overlap in part."""
    size = array.itemsize
    if any(s % size for s in array.strides):
        return None
    strides = tuple(s // size for s in array.strides)
    first = array.__array_interface__["data"][0] + sum(
        (n - 1) * s for n, s in zip(array.shape, array.strides, strict=True) if s < 0 and n
    )
    found = Layout(strides, first % LINE // size, first % LINE % size)
    return found if np.array_equal(found.placed(array), array, equal_nan=array.dtype.kind in "fc") else None


def stepped(shape: Sequence[int], step: int = 1, order: Sequence[int] | None = None, gap: int = 0) -> Layout:
    """The dims in `order`, from the longest step to the shortest (row by row without it), the last one with `step`,
    `gap` elements between rows. A negative step goes backwards in every dim.
    """
    order = range(len(shape)) if order is None else order
    strides, extent = [1] * len(shape), step
    for k in reversed(order):
        strides[k] = extent
        extent = extent * max(shape[k], 1) + (math.copysign(gap, step) if k == order[-1] else 0)
        extent = int(extent)
    return Layout(tuple(strides))


def repeated(shape: Sequence[int], axes: Sequence[int]) -> Layout:
    """Row by row, where the elements along `axes` are one."""
    plain = stepped([1 if k in axes else n for k, n in enumerate(shape)]).strides
    return Layout(tuple(0 if k in axes else s for k, s in enumerate(plain)))


def layouts_of(shape: Sequence[int]) -> Iterator[tuple[str, Layout]]:
    """(name, layout) of layouts of all kinds that arrays of this shape can have, besides the plain one."""
    dims = len(shape)
    for step in STEPS:
        yield f"step {step}", stepped(shape, step)
    yield "one element off", Layout(stepped(shape).strides, offset=1)
    yield "one byte off", Layout(stepped(shape).strides, shift=1)
    yield "step 3, one byte off", Layout(stepped(shape, 3).strides, offset=1, shift=1)
    if dims > 1:
        reverse = range(dims - 1, -1, -1)
        yield "column by column", stepped(shape, 1, reverse)
        yield "column by column, step 4", stepped(shape, 4, reverse)
        yield "column by column, backwards", stepped(shape, -1, reverse)
        yield "gaps between rows", stepped(shape, gap=1)
        yield "rows backwards", Layout((-stepped(shape).strides[0], *stepped(shape).strides[1:]))
    if dims > 2:
        yield "first dim last", stepped(shape, 1, (*range(1, dims), 0))
        yield "inner dims exchanged", stepped(shape, 2, (*range(dims - 2), dims - 1, dims - 2))
    for axis in range(dims):
        yield f"repeated along dim {axis}", repeated(shape, (axis,))
    if dims > 1:
        yield "repeated throughout", repeated(shape, range(dims))
