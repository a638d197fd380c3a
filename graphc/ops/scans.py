"""Running sums, products and extremes on NumPy.

Along the last axis a ufunc's own `accumulate` waits for each number before the next, which is as fast as it gets. Along
others NumPy does the same, column by column, and jumps through memory: whole rows at once take a twentieth of the time.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from graphc.ops.dtypes import COMPLEX64, COMPLEX128, FLOAT32, FLOAT64

WIDE = 2**5  # elements of a row, from which rows at once pay
BLOCK = 2**13
_WIDER = {FLOAT32: FLOAT64, COMPLEX64: COMPLEX128}
_ROUNDING = (np.add, np.multiply, np.logaddexp)


def accumulate(
    ufunc: Any, x: np.ndarray, axis: int, dtype: np.dtype | None = None, reverse: bool = False
) -> np.ndarray:
    """`ufunc.accumulate(x, axis, dtype)`; float32 in float64, each result rounded once, as in PyTorch.

    ufunc  a ufunc, or an associative function f(x, y)
    reverse  from the end on
    """
    result = np.empty(x.shape, x.dtype if dtype is None else dtype)
    if not x.ndim or not x.size:
        result[...] = x
        return result
    out = result
    if reverse:
        x, out = np.flip(x, axis), np.flip(out, axis)
    if x.size <= BLOCK and isinstance(ufunc, np.ufunc):
        out[...] = ufunc.accumulate(x, axis, _carried(ufunc, out.dtype))
        return result
    axis %= x.ndim
    parts = math.prod(x.shape[:axis]), x.shape[axis], math.prod(x.shape[axis + 1 :])
    x, out = x.reshape(parts), out.reshape(parts)  # a view, of what is at most flipped
    if parts[2] >= WIDE or not isinstance(ufunc, np.ufunc):
        for source, target in zip(x, out, strict=True):
            _by_rows(ufunc, source, target)
    else:
        for source, target in zip(np.moveaxis(x, 2, 0), np.moveaxis(out, 2, 0), strict=True):
            _by_lines(ufunc, source, target)
    return result


def _carried(ufunc: Any, dtype: np.dtype) -> np.dtype:
    """What is carried on: extremes are not rounded."""
    return _WIDER.get(dtype, dtype) if ufunc in _ROUNDING else dtype


def _by_rows(ufunc: Any, rows: np.ndarray, out: np.ndarray) -> None:
    """Along the first of two axes."""
    carry = rows[0].astype(_carried(ufunc, out.dtype))
    out[0] = carry
    exact = carry.dtype == out.dtype
    for k in range(1, len(rows)):
        row = rows[k].astype(carry.dtype, copy=False)
        if exact and isinstance(ufunc, np.ufunc):
            ufunc(out[k - 1], row, out=out[k])
        else:
            carry = ufunc(carry, row)
            out[k] = carry


def _by_lines(ufunc: Any, lines: np.ndarray, out: np.ndarray) -> None:
    """Along the last of two axes, in blocks that stay in cache."""
    count, wide = lines.shape[1], _carried(ufunc, out.dtype)
    if lines.dtype == wide == out.dtype:
        ufunc.accumulate(lines, 1, out=out)
        return
    step = max(1, BLOCK // count)
    for first in range(0, len(lines), step):
        group = slice(first, first + step)
        carry = None
        for start in range(0, count, BLOCK):
            part = slice(start, start + BLOCK)
            block = lines[group, part].astype(wide)
            if carry is not None:
                block[:, 0] = ufunc(carry, block[:, 0])
            ufunc.accumulate(block, axis=1, out=block)
            out[group, part] = block
            carry = block[:, -1].copy()
