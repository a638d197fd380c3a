"""Softmax and its logarithm on NumPy: rows along the last axis, a few at a time, so that they stay in cache."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphc.ops.dtypes import FLOAT32, FLOAT64
from graphc.ops.sums import total

SMALL = 2**11  # elements, up to which blocks cost more than they save
BLOCK = 2**15
NARROW, WIDE = 48, 2**9  # elements of a row
_PLAIN = {FLOAT32: 60.0, FLOAT64: 500.0}  # sums of a power of e as high do not overflow, one as low has all its digits
_largest: Any = np.maximum.reduce  # positional arguments (axis, dtype, out, keepdims): half the cost of keywords


def _apart(x: np.ndarray, axis: int) -> np.ndarray:
    return np.asarray(x - _largest(x, axis, None, None, True) if x.shape[axis] else np.array(x))


def _pays(x: np.ndarray, axis: int) -> bool:
    return x.size > SMALL and axis % x.ndim == x.ndim - 1 and x.shape[-1] <= BLOCK and x.dtype in _PLAIN


def _tops(rows: np.ndarray) -> np.ndarray:
    """The largest of each row, as a column. NumPy finds those of long rows quickly."""
    count = rows.shape[1]
    if count >= WIDE:
        return _largest(rows, 1, None, None, True)
    if count > NARROW:
        return np.take_along_axis(rows, rows.argmax(1, keepdims=True), 1)
    return _largest(np.ascontiguousarray(rows.T), 0, None, None, False)[:, None]


def softmax(x: np.ndarray, axis: int) -> np.ndarray:
    """exp(x) / sum(exp(x)) along `axis`.

    Where exp(x) has all its digits as it is, the largest of each row need not be found and taken off, nor does the
    difference round: the rows are as good, in a third of the time. A number too low for that is nothing beside a sum of
    1 or more.
    """
    if not _pays(x, axis):
        e = _apart(x, axis)
        np.exp(e, e)
        e /= total(e, axis, None, True)
        return e
    plain, ones = _PLAIN[x.dtype], np.ones((x.shape[-1], 1), x.dtype)
    result = np.empty(x.shape, x.dtype)
    for rows, out in _blocks(x, result):
        sums = None
        if rows.max() <= plain:
            sums = np.exp(rows, out) @ ones  # a product with a vector takes a quarter of a sum of rows
            if not (sums.min() >= 1 or rows.min() >= -plain):
                sums = None
        if sums is None:
            np.subtract(rows, _tops(rows), out)
            sums = np.exp(out, out) @ ones
        out /= sums
    return result


def log_softmax(x: np.ndarray, axis: int) -> np.ndarray:
    """x - log(sum(exp(x))) along `axis`."""
    if not _pays(x, axis):
        apart = _apart(x, axis)
        apart -= np.log(total(np.exp(apart), axis, None, True))
        return apart
    ones = np.ones((x.shape[-1], 1), x.dtype)
    result, powers = np.empty(x.shape, x.dtype), np.empty((BLOCK // len(ones), len(ones)), x.dtype)
    for rows, out in _blocks(x, result):
        np.subtract(rows, _tops(rows), out)
        out -= np.log(np.exp(out, powers[: len(out)]) @ ones)
    return result


def _blocks(x: np.ndarray, result: np.ndarray) -> Any:
    shape = -1, x.shape[-1]
    x, result = x.reshape(shape), result.reshape(shape)
    step = BLOCK // shape[1]
    for start in range(0, len(x), step):
        yield x[start : start + step], result[start : start + step]
