"""Sums on NumPy, as exact along every axis as NumPy's own are along the last one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

# called with positional arguments (axis, dtype, out, keepdims): half the cost of keywords
_plain: Any = np.add.reduce
MANY, BLOCK, WIDE, LARGE = 2**9, 2**7, 2**8, 2**11


def total(x: np.ndarray, axis: int | tuple[int, ...], dtype: np.dtype | None = None, keepdims: bool = False) -> Any:
    """`np.add.reduce(x, axis, dtype, None, keepdims)`.

    NumPy adds pairwise along the last axis only. Along the others it adds one row after the other: the error of equal
    terms then grows like their number (36 in 77,000 for 10^5 numbers in float32), and rows of a few elements are slow.
    """
    if x.size < MANY or dtype is not None or x.dtype.kind not in "fc":
        return _plain(x, axis, dtype, None, keepdims)
    shape, axes = x.shape, axis if axis.__class__ is tuple else (axis,)
    count = 1
    for i in axes:  # type: ignore[union-attr]
        count *= shape[i]
    if count < MANY or count == x.size:
        if x.size >= LARGE and 1 < count < MANY and axes in ((-1,), (x.ndim - 1,)) and x.flags.c_contiguous:
            return _of_lines(x, keepdims)
        return _plain(x, axis, None, None, keepdims)
    return _along(x, sorted(i % x.ndim for i in axes), count, keepdims)  # type: ignore[union-attr]


def sums(xp: Any, x: Any, axis: int | tuple[int, ...], keepdims: bool) -> Any:
    """`xp.sum`; on NumPy, `total`."""
    return total(x, axis, None, keepdims) if xp is np else xp.sum(x, axis=axis, keepdims=keepdims)


def _of_lines(x: np.ndarray, keepdims: bool) -> np.ndarray:
    """The sums along the last axis, where it is short: a product with a vector takes a quarter to a thirtieth."""
    if x.dtype.itemsize < 4:
        return _plain(x, x.ndim - 1, None, None, keepdims)
    r = x.reshape(-1, x.shape[-1]) @ np.ones(x.shape[-1], x.dtype)
    return r.reshape(*x.shape[:-1], 1) if keepdims else r.reshape(x.shape[:-1])


def _along(x: np.ndarray, axes: list[int], count: int, keepdims: bool) -> np.ndarray:
    if x.flags.f_contiguous and 1 not in x.shape:  # strides of 1 element are anybody's, and the result's show
        return _along(x.T, [x.ndim - 1 - i for i in reversed(axes)], count, keepdims).T
    outer, last, shape = axes[0], axes[-1] + 1, x.shape
    if last == x.ndim or last - outer > len(axes) or not x.flags.c_contiguous:
        return _plain(x, tuple(axes), None, None, keepdims)
    kept = (1,) * len(axes) if keepdims else ()
    rows = x.reshape(math.prod(shape[:outer]), count, -1)
    return _of_rows(rows).reshape(*shape[:outer], *kept, *shape[last:])


def _of_rows(x: np.ndarray) -> np.ndarray:
    """The sums along the middle one of three axes: of blocks of it, then of their sums."""
    outer, count, width = x.shape
    if count < MANY:
        return _plain(x, 1, None, None, False)
    blocks = count // BLOCK
    whole = x[:, : blocks * BLOCK]
    if width >= WIDE:  # blocks of rows that follow each other
        sums = _plain(whole.reshape(outer, blocks, BLOCK, width), 2, None, None, False)
    else:  # every 7th row, say: 7 rows at once
        sums = _plain(whole.reshape(outer, BLOCK, blocks * width), 1, None, None, False)
    result = _of_rows(sums.reshape(outer, blocks, width))
    return result if blocks * BLOCK == count else result + _plain(x[:, blocks * BLOCK :], 1, None, None, False)
