"""Further distributions, as PyTorch draws them on the CPU: one by one, from uniform numbers in float64."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from eager.rng.generator import Generator
from graphc.ops.dtypes import FLOAT64

LIKELY = 0.3  # from this probability of [a, b] on, `truncated_normal` draws normal numbers, else uniform ones


def cauchy(source: Generator, shape: tuple[int, ...], median: float, sigma: float) -> np.ndarray:
    """Median + sigma tan(pi (u - 1/2))."""
    return median + sigma * np.tan(math.pi * (source.uniform(shape, FLOAT64) - 0.5))


def log_normal(source: Generator, shape: tuple[int, ...], mean: float, std: float) -> np.ndarray:
    """exp of normal numbers, which are drawn one by one."""
    return np.exp(source.normals_one_by_one(shape, mean, std))


def truncated_normal(
    source: Generator, normal: Callable[[tuple[int, ...]], np.ndarray], shape: tuple[int, ...], dtype: np.dtype,
    mean: float, std: float, a: float, b: float,
) -> np.ndarray:  # fmt: skip
    """Normal numbers of [a, b], by rejection: of those that `normal(shape)` draws, or of uniform ones."""
    low, high = (0.5 * math.erf((bound - mean) / std / math.sqrt(2.0)) for bound in (a, b))
    if high - low > LIKELY:
        candidates = lambda: normal(shape).astype(dtype, copy=False)
        accepted = lambda x: (x >= dtype.type(a)) & (x <= dtype.type(b))
    else:
        peak = _log_density(np.array(max(a, min(mean, b)), FLOAT64), mean, std)
        candidates = lambda: source.uniform(shape, dtype, a, b)
        accepted = lambda x: np.log(source.uniform(shape, dtype)) <= _log_density(x, mean, std) - dtype.type(peak)
    values = candidates()
    pending = ~accepted(values)
    while pending.any():
        drawn = candidates()
        values = np.where(pending, drawn, values)
        pending &= ~accepted(drawn)
    return values


def _log_density(x: np.ndarray, mean: float, std: float) -> np.ndarray:
    kind = x.dtype.type
    return np.square((x - kind(mean)) / kind(std)) * kind(-0.5)


def geometric(source: Generator, shape: tuple[int, ...], p: float) -> np.ndarray:
    """How many trials the first success takes: ceil(log(u) / log(1 - p))."""
    with np.errstate(divide="ignore"):
        return np.ceil(np.log(source.uniform(shape, FLOAT64)) / math.log(1 - p))


def slopes(source: Generator, shape: tuple[int, ...], lower: float, upper: float) -> np.ndarray:
    """Uniform numbers in [lower, upper)."""
    return source.uniform(shape, FLOAT64) * (upper - lower) + lower
