"""Rows with mean 0 and variance 1: the heart of layer_norm and group_norm, in as few passes as NumPy allows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from graphc.ops.interpret import F as arrays
from graphc.ops.rounding import Rounding, largest
from graphc.ops.rules import accepting, same, same_float
from graphc.ops.samples import Sample
from graphc.ops.spec import op

_REAL = accepting("f", "\"LayerNormKernelImpl\" not implemented for '{dtype}'")
_SAMPLES = (Sample((3, 5), axis=(1,), eps=1e-5), Sample((2, 3, 4), axis=(1, 2), eps=0.1))


def _definition(F: Any, x: Any, axis: tuple[int, ...], eps: float) -> Any:
    centered = x - F.mean(x, axis=axis, keepdims=True)
    return centered * F.rsqrt(F.mean(F.square(centered), axis=axis, keepdims=True) + eps)


def _grad_definition(F: Any, g: Any, r: Any, x: Any, axis: tuple[int, ...], eps: float) -> Any:
    # the same expressions as in the definition of r, which graphs then compute once
    centered = x - F.mean(x, axis=axis, keepdims=True)
    scale = F.rsqrt(F.mean(F.square(centered), axis=axis, keepdims=True) + eps)
    along = F.mean(g * r, axis=axis, keepdims=True)
    return (g - F.mean(g, axis=axis, keepdims=True) - r * along) * scale


def _rows(axis: tuple[int, ...], *arrays: np.ndarray) -> list[np.ndarray] | None:
    """The arrays with the axes as one, the last; None if they are not the last ones, or there is nothing.

    They have no gaps: NumPy adds up elements with gaps one after the other, which loses digits.
    """
    x = arrays[0]
    first = x.ndim - len(axis)
    if not x.size or axis != tuple(range(first, x.ndim)):
        return None
    shape = -1, math.prod(x.shape[first:])
    return [np.ascontiguousarray(a).reshape(shape) for a in arrays]


def _means(flat: np.ndarray) -> np.ndarray:
    n = flat.shape[1]
    return (flat @ np.full(n, 1 / n, flat.dtype))[:, None]  # a product with a vector takes a quarter of a sum of rows


def _scale(centered: np.ndarray, eps: float) -> np.ndarray:
    variance = np.vecdot(centered, centered) / centered.dtype.type(centered.shape[1])
    with np.errstate(divide="ignore"):
        return (1 / np.sqrt(variance + centered.dtype.type(eps)))[:, None]


def _standardize(x: np.ndarray, axis: tuple[int, ...], eps: float) -> np.ndarray:
    rows = _rows(axis, x)
    if rows is None:
        return _definition(arrays, x, axis, eps)
    (flat,) = rows
    result = flat - _means(flat)
    result *= _scale(result, eps)
    return result.reshape(x.shape)


def _standardize_grad(g: np.ndarray, r: np.ndarray, x: np.ndarray, axis: tuple[int, ...], eps: float) -> np.ndarray:
    rows = _rows(axis, g, r, x)
    if rows is None:
        return _grad_definition(arrays, g, r, x, axis, eps)
    flat_g, flat_r, flat_x = rows
    along = np.vecdot(flat_g, flat_r) / x.dtype.type(flat_x.shape[1])
    result = flat_g - _means(flat_g)
    result -= flat_r * along[:, None]
    result *= _scale(flat_x - _means(flat_x), eps)
    return result.reshape(x.shape)


def _of_means(r: np.ndarray, x: np.ndarray, axis: tuple[int, ...], eps: float) -> np.ndarray:
    """Rows are standardized by means, which are a few ULP of their elements off."""
    return largest(x, axis) / np.sqrt(x.var(axis=axis, keepdims=True) + eps)


standardize = op(
    "standardize", "input", params={"axis": (), "eps": 1e-5}, rule=same_float._replace(accepts=_REAL),
    samples=_SAMPLES, definition=_definition, rounding=Rounding(terms=_of_means),
    impl=lambda xp, x, axis, eps: _standardize(x, axis, eps),
    ref=lambda x, axis, eps: (x - x.mean(axis, keepdims=True)) / np.sqrt(x.var(axis, keepdims=True) + eps),
    vjp=dict(input=lambda F, g, r, input, axis, eps: F.standardize_grad(g, r, input, axis=axis, eps=eps)),
)  # fmt: skip
standardize_grad = op(
    "standardize_grad", "grad output input", params={"axis": (), "eps": 1e-5}, rule=same._replace(accepts=_REAL),
    definition=_grad_definition,
    impl=lambda xp, g, r, x, axis, eps: _standardize_grad(g, r, x, axis, eps),
    samples=tuple(Sample(*s.inputs * 3, **s.params) for s in _SAMPLES),
    ref=lambda g, r, x, axis, eps: (
        (g - g.mean(axis, keepdims=True) - r * (g * r).mean(axis, keepdims=True))
        / np.sqrt(x.var(axis, keepdims=True) + eps)),
)  # fmt: skip
