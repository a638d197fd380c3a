"""Sums on NumPy, as exact along every axis as NumPy's own are along the last one."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

# called with positional arguments (axis, dtype, out, keepdims): half the cost of keywords
_plain: Any = np.add.reduce
MANY, BLOCK, WIDE, LARGE = 2**9, 2**7, 2**8, 2**11
RUN, SHORT = 2**9, 2**5
NEAR = 2**21  # bytes


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
    if count < MANY:
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


def _of_runs(x: np.ndarray, y: np.ndarray | None = None) -> np.ndarray:
    """The sums of x, or of x * y, along the last axis: of runs of it, then of their sums. No gaps within rows."""
    count = x.shape[-1]
    if count <= RUN:
        if y is not None:
            return np.vecdot(x, y)
        ones = np.ones(count, x.dtype)
        # several rows at once, which BLAS takes of a matrix, come slowly from memory that is far away
        return x @ ones if x.nbytes <= NEAR else np.vecdot(x, ones)
    whole = count // RUN * RUN
    parts = [None if a is None else a[..., :whole].reshape(-1, RUN) for a in (x, y)]
    result = _of_runs(_of_runs(*parts).reshape(*x.shape[:-1], -1))  # type: ignore[arg-type]
    if whole < count:
        result += _of_runs(x[..., whole:], None if y is None else y[..., whole:])
    return result


def of_products(x: np.ndarray, y: np.ndarray, axes: tuple[int, ...]) -> np.ndarray:
    """`total(x * y, axes)`; where these are the last axes, among others, the products are never in memory."""
    last = x.ndim
    while last - 1 in axes:
        last -= 1
    count = math.prod(x.shape[last:])
    plain = x.shape != y.shape or x.dtype != y.dtype or x.dtype.kind != "f" or x.dtype.itemsize < 4
    if plain or x.size < LARGE or count < SHORT or not (x.flags.c_contiguous and y.flags.c_contiguous):
        return total(x * y, axes)
    rows = _of_runs(*(a.reshape(*a.shape[:last], count) for a in (x, y)))
    rest = tuple(k for k in axes if k < last)
    return total(rows, rest) if rest else rows


def _along(x: np.ndarray, axes: list[int], count: int, keepdims: bool) -> np.ndarray:
    if (
        x.flags.f_contiguous and x.ndim > 1 and 1 not in x.shape
    ):  # strides of 1 element are anybody's, and the result's show
        return _along(x.T, [x.ndim - 1 - i for i in reversed(axes)], count, keepdims).T
    outer, last, shape = axes[0], axes[-1] + 1, x.shape
    if last - outer > len(axes) or not x.flags.c_contiguous:
        return _plain(x, tuple(axes), None, None, keepdims)
    kept = (1,) * len(axes) if keepdims else ()
    if last == x.ndim:
        if x.size < LARGE or x.dtype.itemsize < 4:
            return _plain(x, tuple(axes), None, None, keepdims)
        return _of_runs(x.reshape(*shape[:outer], count)).reshape((*shape[:outer], *kept))
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
