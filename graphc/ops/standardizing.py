"""Groups of elements with mean 0 and variance 1: the heart of normalization, in as few passes as NumPy allows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from graphc.ops.interpret import F as arrays
from graphc.ops.rounding import Rounding, largest
from graphc.ops.rules import accepting, same, same_float
from graphc.ops.samples import Sample
from graphc.ops.spec import op
from graphc.ops.sums import total

_REAL = accepting("f", "\"LayerNormKernelImpl\" not implemented for '{dtype}'")
_SAMPLES = (
    Sample((3, 5), axis=(1,), eps=1e-5), Sample((2, 3, 4), axis=(1, 2), eps=0.1), Sample((4, 3), axis=(0,), eps=1e-5),
    Sample((3, 2, 2, 2), axis=(0, 2, 3), eps=0.1),
)  # fmt: skip
BLOCK = 2**17  # elements
FEW, NEAR = 2**7, 2**15  # rows of a block of columns, and its elements
MANY = 2**14  # elements, from which NumPy's buffer matters
ROWS = range(2**9, 2**13)  # lengths of rows of which NumPy would gather several in its buffer


def _definition(F: Any, x: Any, axis: tuple[int, ...], eps: float) -> Any:
    centered = x - F.mean(x, axis=axis, keepdims=True)
    return centered * F.rsqrt(F.mean(F.square(centered), axis=axis, keepdims=True) + eps)


def _grad_definition(F: Any, g: Any, x: Any, axis: tuple[int, ...], eps: float) -> Any:
    # r as its definition has it, which graphs then compute once; it is not kept, for users write into results in place
    centered = x - F.mean(x, axis=axis, keepdims=True)
    scale = F.rsqrt(F.mean(F.square(centered), axis=axis, keepdims=True) + eps)
    r = centered * scale
    along = F.mean(g * r, axis=axis, keepdims=True)
    return (g - F.mean(g, axis=axis, keepdims=True) - r * along) * scale


def _parts(axis: tuple[int, ...], *arrays: np.ndarray) -> list[np.ndarray] | None:
    """The arrays as (before, kept, behind), without gaps, where `axis` is what is before and behind; None if it is not.

    NumPy adds up elements with gaps one after the other, which loses digits.
    """
    x = arrays[0]
    kept = [k for k in range(x.ndim) if k not in axis]
    first, last = (kept[0], kept[-1] + 1) if kept else (0, 0)
    if not x.size or last - first > len(kept):
        return None
    shape = math.prod(x.shape[:first]), math.prod(x.shape[first:last]), math.prod(x.shape[last:])
    return [np.ascontiguousarray(a).reshape(shape) for a in arrays]


def _blocks(x: np.ndarray) -> Iterator[tuple[slice, slice]]:
    """Groups of what is kept, whose elements stay in cache from one pass to the next.

    Meanwhile NumPy's buffer has room for one row: a number for each row is read where it is. If rows were gathered,
    NumPy would copy it for each element first, which takes as long as the operation.
    """
    before, kept, behind = x.shape
    step = max(1, BLOCK // (before * behind))
    usual = np.setbufsize(behind - behind % 16) if behind in ROWS and x.size >= MANY else None
    try:
        for start in range(0, kept, step):
            yield np.s_[:, start : start + step]
    finally:
        if usual is not None:
            np.setbufsize(usual)


def _mean(x: np.ndarray, y: np.ndarray | None = None) -> np.ndarray:
    """(1, kept, 1): the mean of x, or of x * y."""
    n = x.shape[2]
    # a product with a vector takes a quarter of a sum of rows
    found = x @ np.ones(n, x.dtype) if y is None else np.vecdot(x, y)
    found = found[0] if len(found) == 1 else total(found, 0)
    found /= n * len(x)
    return found[:, None]


def _scale(variance: np.ndarray, eps: float) -> np.ndarray:
    """1 / sqrt(variance + eps), in its place."""
    variance += eps
    np.sqrt(variance, variance)
    if eps > 0:
        return np.divide(1, variance, variance)
    with np.errstate(divide="ignore"):
        return np.divide(1, variance, variance)


def _of_columns(x: np.ndarray, eps: float, g: np.ndarray | None = None) -> np.ndarray:
    """The columns of a matrix with mean 0 and variance 1; or, with the cotangent `g`, the gradient of that.

    It is read by rows: where these are some powers of two long, a column has place for a few numbers in the cache.
    """
    n, width = x.shape
    step = min(FEW, max(8, NEAR // width))
    blocks = [slice(first, first + step) for first in range(0, n, step)]
    ones, result = np.ones(step, x.dtype), np.empty(x.shape, x.dtype)

    def mean_of(terms: Callable[[slice], np.ndarray]) -> np.ndarray:
        sums = [ones[: len(part)] @ part for part in map(terms, blocks)]
        found = sums[0] if len(sums) == 1 else total(np.array(sums), 0)
        found /= n
        return found

    def squares(at: slice) -> np.ndarray:
        centered = np.subtract(x[at], mean, result[at])
        return centered * centered

    mean = mean_of(lambda at: x[at])
    scale = _scale(mean_of(squares), eps)
    if g is None:
        for at in blocks:
            result[at] *= scale
        return result
    average, along = mean_of(lambda at: g[at]), mean_of(lambda at: g[at] * result[at])
    along *= scale
    along *= scale
    for at in blocks:
        found = result[at]
        found *= along
        np.subtract(g[at], found, found)
        found -= average
        found *= scale
    return result


def _standardize(x: np.ndarray, axis: tuple[int, ...], eps: float) -> np.ndarray:
    parts = _parts(axis, x)
    if parts is None:
        return _definition(arrays, x, axis, eps)
    (parted,) = parts
    if parted.shape[2] == 1:
        return _of_columns(parted[..., 0], eps).reshape(x.shape)
    result = np.empty(parted.shape, x.dtype)
    for block in _blocks(parted):
        given, centered = parted[block], result[block]
        np.subtract(given, _mean(given), centered)
        centered *= _scale(_mean(centered, centered), eps)
    return result.reshape(x.shape)


def _standardize_grad(g: np.ndarray, x: np.ndarray, axis: tuple[int, ...], eps: float) -> np.ndarray:
    parts = _parts(axis, g, x)
    if parts is None:
        return _grad_definition(arrays, g, x, axis, eps)
    if parts[0].shape[2] == 1:
        return _of_columns(parts[1][..., 0], eps, parts[0][..., 0]).reshape(x.shape)
    result = np.empty(parts[0].shape, x.dtype)
    for block in _blocks(result):
        along, given = (a[block] for a in parts)
        centered = given - _mean(given)
        scale = _scale(_mean(centered, centered), eps)
        centered *= scale
        centered *= _mean(along, centered)
        found = np.subtract(along, _mean(along), result[block])
        found -= centered
        found *= scale
    return result.reshape(x.shape)


def _of_means(r: np.ndarray, x: np.ndarray, axis: tuple[int, ...], eps: float) -> np.ndarray:
    """Rows are standardized by means, which are a few ULP of their elements off."""
    return largest(x, axis) / np.sqrt(x.var(axis=axis, keepdims=True) + eps)


standardize = op(
    "standardize", "input", params={"axis": (), "eps": 1e-5}, rule=same_float._replace(accepts=_REAL),
    samples=_SAMPLES, definition=_definition, rounding=Rounding(terms=_of_means),
    impl=lambda xp, x, axis, eps: _standardize(x, axis, eps),
    ref=lambda x, axis, eps: (x - x.mean(axis, keepdims=True)) / np.sqrt(x.var(axis, keepdims=True) + eps),
    vjp=dict(input=lambda F, g, input, axis, eps: F.standardize_grad(g, input, axis=axis, eps=eps)),
)  # fmt: skip


def _reference_of_grad(g: np.ndarray, x: np.ndarray, axis: tuple[int, ...], eps: float) -> np.ndarray:
    deviation = np.sqrt(x.var(axis, keepdims=True) + eps)
    r = (x - x.mean(axis, keepdims=True)) / deviation
    return (g - g.mean(axis, keepdims=True) - r * (g * r).mean(axis, keepdims=True)) / deviation


standardize_grad = op(
    "standardize_grad", "grad input", params={"axis": (), "eps": 1e-5}, rule=same._replace(accepts=_REAL),
    definition=_grad_definition,
    impl=lambda xp, g, x, axis, eps: _standardize_grad(g, x, axis, eps),
    samples=tuple(Sample(*s.inputs * 2, **s.params) for s in _SAMPLES),
    ref=_reference_of_grad,
)  # fmt: skip
