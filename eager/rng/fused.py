"""Products with a term added, of which only the sum is rounded: PyTorch is compiled to instructions that do so."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphc.ops.dtypes import FLOAT32, FLOAT64

_LARGE = 2.0**900


def fused(x: np.ndarray, factor: Any, term: Any) -> np.ndarray:
    """x * factor + term of float32 or float64, rounded once."""
    if x.dtype == FLOAT32:  # of which float64 holds products
        return (x.astype(FLOAT64) * factor + term).astype(FLOAT32)
    if abs(factor) > _LARGE:  # whose halves overflow
        return fused(x, factor / _LARGE, term / _LARGE) * _LARGE
    product = x * factor
    (a, b), (c, d) = _halves(x), _halves(factor)
    below = ((a * c - product) + a * d + b * c) + b * d
    total = product + term
    part = total - product
    return total + ((product - (total - part)) + (term - part) + below)


def _halves(x: Any) -> tuple[Any, Any]:
    """Float64 numbers as sums of two, of which products have no more digits than fit."""
    scaled = x * (2.0**27 + 1)
    high = scaled - (scaled - x)
    return high, x - high
