"""Further distributions, as PyTorch draws them on the CPU: one by one, from uniform numbers in float64."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from eager.generator import Generator
from graphc.ops.dtypes import FLOAT64

Draw = Callable[[Generator, tuple[int, ...]], np.ndarray]


def cauchy(source: Generator, shape: tuple[int, ...], median: float, sigma: float) -> np.ndarray:
    """Median + sigma tan(pi (u - 1/2))."""
    return median + sigma * np.tan(math.pi * (source.uniform(shape, FLOAT64) - 0.5))


def log_normal(source: Generator, shape: tuple[int, ...], mean: float, std: float) -> np.ndarray:
    """exp of normal numbers, which are drawn one by one."""
    return np.exp(source.normals_one_by_one(shape, mean, std))


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


def leaky_slopes(source: Generator, x: np.ndarray, lower: float, upper: float) -> np.ndarray:
    """For each element of `x` a factor: uniform in [lower, upper) where it is not positive, else 1."""
    slopes = np.ones(x.shape, x.dtype)
    negative = x <= 0
    count = int(negative.sum())
    slopes[negative] = source.uniform((count,), FLOAT64) * (upper - lower) + lower
    return slopes
