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


def poisson(source: Generator, rates: np.ndarray) -> np.ndarray:
    """A Poisson number for each rate: by Knuth's products below 10, else by Hoermann's transformed rejection."""
    numbers = [_poisson(source, float(rate)) for rate in rates.ravel()]
    return np.array(numbers, rates.dtype).reshape(rates.shape)


def _unit(source: Generator) -> float:
    return float(source.uniform((), FLOAT64))


def _poisson(source: Generator, rate: float) -> int:
    if rate >= 10:
        return _by_rejection(source, rate)
    if rate == 0:
        return 0
    count, product, end = 0, 1.0, math.exp(-rate)
    while True:
        product *= _unit(source)
        if product <= end:
            return count
        count += 1


def _by_rejection(source: Generator, rate: float) -> int:
    """Algorithm PTRS of W. Hoermann, "The transformed rejection method for generating Poisson random variables"."""
    b = 0.931 + 2.53 * math.sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    accepted = 0.9277 - 3.6224 / (b - 2)
    while True:
        u = _unit(source) - 0.5
        v = _unit(source)
        from_edge = 0.5 - abs(u)
        k = math.floor((2 * a / from_edge + b) * u + rate + 0.43)
        if from_edge >= 0.07 and v <= accepted:
            return k
        if k < 0 or (from_edge < 0.013 and v > from_edge):
            continue
        bound = -rate + k * math.log(rate) - math.lgamma(k + 1)
        if math.log(v) + math.log(inverse_alpha) - math.log(a / (from_edge * from_edge) + b) <= bound:
            return k


def slopes(source: Generator, shape: tuple[int, ...], lower: float, upper: float) -> np.ndarray:
    """Uniform numbers in [lower, upper)."""
    return source.uniform(shape, FLOAT64) * (upper - lower) + lower
