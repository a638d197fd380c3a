"""Distributions that are drawn by rejection: how many random words they take depends on their parameters.

Each sampler has PyTorch's algorithm on the CPU, so that the same seed gives the same numbers.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from eager.core import operands
from eager.core.interpreter import current_interpreter
from eager.core.tensor import Tensor
from eager.engine.conversion import converted
from eager.engine.language import E
from eager.functional.shapes import broadcast_tensors
from eager.rng.generator import Generator
from eager.rng.sampling import source_of
from graphc.ops import draws
from graphc.ops.dtypes import FLOAT64, is_floating
from graphc.ops.gamma import beta_slope, gamma_slope
from graphc.ops.rules import torch_name

FIRST, LARGEST = 32, 4096  # how many numbers are drawn at once, which doubles


class OneByOne:
    """Uniform and normal numbers in float64 from a generator, whose words are drawn in blocks: 10 times as fast.

    A context, at whose end the generator continues after the numbers that have been taken.
    """

    def __init__(self, source: Generator):
        self._source = source

    def __enter__(self) -> OneByOne:
        self._mark = self._source.mark()
        self._normal = self._source._next_normal
        self._block: list[float] = []
        self._next, self._before, self._size = 0, 0, FIRST
        return self

    def __exit__(self, *error: object) -> None:
        self._source.rewind(self._mark)
        if taken := self._before + self._next:
            self._source.bits(taken, wide=True)
        self._source._next_normal = self._normal

    def uniform(self) -> float:
        """A number in [0, 1)."""
        if self._next == len(self._block):
            self._before += self._next
            self._block = self._source.uniform((self._size,), FLOAT64).tolist()
            self._next, self._size = 0, min(2 * self._size, LARGEST)
        value = self._block[self._next]
        self._next += 1
        return value

    def normal(self) -> float:
        """A standard normal number. They are made in pairs: the second one waits in the generator."""
        if self._normal is not None:
            value, self._normal = self._normal, None
            return value
        angle = 2.0 * math.pi * self.uniform()
        radius = math.sqrt(-2.0 * math.log1p(-self.uniform()))
        self._normal = radius * math.sin(angle)
        return radius * math.cos(angle)


# PyTorch has these in float32, also where it computes in float64
_THIRD = float(np.float32(1) / np.float32(3))
_SQUEEZE = float(np.float32(0.0331))


def gamma_number(source: OneByOne, alpha: float, rounded: Callable[[float], float] = float) -> float:
    """G. Marsaglia, W. W. Tsang, "A simple method for generating gamma variables", 2000.

    rounded: to the dtype in which PyTorch computes with alpha alone.
    """
    scale = 1.0
    if not alpha >= 1:  # a gamma number of alpha + 1, times u^(1 / alpha), is accepted more often
        if not alpha > 0:
            return 0.0 if alpha == 0 else math.nan
        scale = (1 - source.uniform()) ** rounded(1.0 / alpha)
        alpha = rounded(alpha + 1)
    d = rounded(alpha - _THIRD)
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = source.normal()
        y = 1.0 + c * x
        if y <= 0:
            continue
        v, u, xx = y * y * y, 1 - source.uniform(), x * x
        if u < 1.0 - _SQUEEZE * xx * xx or math.log(u) < 0.5 * xx + d * (1.0 - v + math.log(v)):
            return scale * d * v


def poisson_number(source: OneByOne, rate: float) -> float:
    """Knuth's products below 10, else algorithm PTRS.

    W. Hoermann, "The transformed rejection method for generating Poisson random variables", 1993.
    """
    if not 0 <= rate < math.inf:
        return math.nan
    if rate < 10:
        count, product, end = 0, 1.0, math.exp(-rate)
        while rate > 0:
            product *= source.uniform()
            if product <= end:
                break
            count += 1
        return count
    b = 0.931 + 2.53 * math.sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    accepted = 0.9277 - 3.6224 / (b - 2)
    while True:
        u, v = source.uniform() - 0.5, source.uniform()
        from_edge = 0.5 - abs(u)
        k = math.floor((2 * a / from_edge + b) * u + rate + 0.43)
        if from_edge >= 0.07 and v <= accepted:
            return k
        if k < 0 or (from_edge < 0.013 and v > from_edge):
            continue
        bound = -rate + k * math.log(rate) - math.lgamma(k + 1)
        if math.log(v) + math.log(inverse_alpha) - math.log(a / (from_edge * from_edge) + b) <= bound:
            return k


def binomial_number(source: OneByOne, count: float, p: float) -> float:
    """Sums of geometric numbers while few successes are expected, else algorithm BTRS."""
    if count <= 0 or p <= 0:
        return 0.0
    if p >= 1:
        return count
    if not count * p < math.inf:
        return math.nan
    if p > 0.5:
        return count - _binomial(source, count, 1.0 - p)
    return _binomial(source, count, p)


def _binomial(source: OneByOne, count: float, p: float) -> float:
    if count * p >= 10:
        return _btrs(source, count, p)
    log_rest, trials, successes = math.log1p(-p), 0.0, 0
    while True:
        u = source.uniform()
        trials += math.ceil(math.log(u) / log_rest) if u > 0 else math.inf
        if trials > count:
            return successes
        successes += 1


def _btrs(source: OneByOne, count: float, p: float) -> float:
    """W. Hoermann, "The generation of binomial random variates", 1993.

    PyTorch compares a ratio where the paper has its logarithm; the accepted numbers are the same.
    """
    deviation = math.sqrt(count * p * (1 - p))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c, r = count * p + 0.5, p / (1 - p)
    accepted, alpha = 0.92 - 4.2 / b, (2.83 + 5.1 / b) * deviation
    m = math.floor((count + 1) * p)
    while True:
        u, v = source.uniform() - 0.5, source.uniform()
        from_edge = 0.5 - abs(u)
        k = math.floor((2 * a / from_edge + b) * u + c) if from_edge else -1
        if k < 0 or k > count:
            continue
        if from_edge >= 0.07 and v <= accepted:
            return k
        at_mode = (m + 0.5) * math.log((m + 1) / (r * (count - m + 1)))
        rest = (count + 1) * math.log((count - m + 1) / (count - k + 1))
        at_k = (k + 0.5) * math.log(r * (count - k + 1) / (k + 1))
        tails = _stirling_tail(m) + _stirling_tail(count - m) - _stirling_tail(k) - _stirling_tail(count - k)
        bound = at_mode + rest + at_k + tails
        if (math.log(v * alpha / (a / (from_edge * from_edge) + b)) if v else -math.inf) <= bound:
            return k


def _stirling_tail(k: float) -> float:
    """log(k!) less Stirling's approximation of it."""
    if k < 10:
        return math.lgamma(k + 1) - ((k + 0.5) * math.log(k + 1) - (k + 1) + 0.5 * math.log(2 * math.pi))
    square = (k + 1) * (k + 1)
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1)


def _each(sampler: Callable[..., float]) -> Callable[..., np.ndarray]:
    """`sampler`, of numbers, as a sampler of arrays."""

    def sample(source: Generator, *parameters: np.ndarray) -> np.ndarray:
        with OneByOne(source) as numbers:
            columns = [p.astype(FLOAT64).ravel().tolist() for p in parameters]
            values = [sampler(numbers, *row) for row in zip(*columns, strict=True)]
        return np.array(values, FLOAT64).reshape(parameters[0].shape)

    return sample


def _gamma(source: Generator, alpha: np.ndarray) -> np.ndarray:
    least = np.finfo(alpha.dtype).tiny if alpha.dtype.kind == "f" else 0
    rounded = float if alpha.dtype == FLOAT64 else lambda x: float(np.float32(x))
    return np.maximum(_each(lambda numbers, a: gamma_number(numbers, a, rounded))(source, alpha), least)


def _dirichlet(source: Generator, alpha: np.ndarray) -> np.ndarray:
    gammas = _each(gamma_number)(source, alpha)
    limits = np.finfo(alpha.dtype)
    with np.errstate(invalid="ignore"):
        return np.clip(gammas / gammas.sum(-1, keepdims=True), limits.tiny, 1 - limits.epsneg)


def _von_mises(source: Generator, loc: np.ndarray, concentration: np.ndarray) -> np.ndarray:
    """D. J. Best, N. I. Fisher, "Efficient simulation of the von Mises distribution", 1979."""
    loc, kappa = loc.astype(FLOAT64), concentration.astype(FLOAT64)
    with np.errstate(all="ignore"):
        tau = 1 + np.sqrt(1 + 4 * kappa**2)
        rho = (tau - np.sqrt(2 * tau)) / (2 * kappa)
        r = np.where(kappa < 1e-5, 1 / kappa + kappa, (1 + rho**2) / (2 * rho))
        angle, pending = np.where(kappa < np.inf, 0, np.nan), kappa < np.inf
        while pending.any():
            u1, u2, u3 = source.uniform((3, *loc.shape), FLOAT64)
            z = np.cos(math.pi * u1)
            f = (1 + r * z) / (r + z)
            c = kappa * (r - f)
            accepted = (c * (2 - c) - u2 > 0) | (np.log(c / u2) + 1 - c >= 0)
            # as PyTorch: an element that is accepted again, while others are pending, takes the later number
            angle = np.where(accepted, np.sign(u3 - 0.5) * np.arccos(f), angle)
            pending &= ~accepted
    return (angle + math.pi + loc) % (2 * math.pi) - math.pi


SAMPLERS: dict[str, Callable[..., np.ndarray]] = {
    "standard_gamma": _gamma,
    "dirichlet": _dirichlet,
    "poisson": _each(poisson_number),
    "binomial": _each(binomial_number),
    "von_mises": _von_mises,
}


def _of_state(name: str, state: np.ndarray, *parameters: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    generator = Generator.of_state(state)
    return SAMPLERS[name](generator, *parameters), generator._state()


draws.SAMPLERS.update({name: functools.partial(_of_state, name) for name in SAMPLERS})  # for programs that draw


class Sampler(NamedTuple):
    """A sampler, and how programs call it."""

    name: str
    draw: Callable[..., np.ndarray]


def rejected(sampler: str, *parameters: Tensor, generator: Generator | None = None) -> Tensor:
    """What `SAMPLERS[sampler]` draws with these parameters, of one shape and dtype: now, or at each call."""
    return current_interpreter().drawn(
        Sampler(sampler, SAMPLERS[sampler]), parameters, source_of(generator, parameters[0])
    )


def check_real_floating(x: Tensor, kernel: str) -> None:
    """Raise PyTorch's NotImplementedError unless `x` is floating."""
    if not is_floating(operands.kind_of(x)):
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{torch_name(x._dtype())}'")


def binomial(count: Tensor, prob: Tensor, generator: Generator | None = None) -> Tensor:
    """How many of `count` trials, each of probability `prob`, succeed. As `torch.binomial`."""
    check_real_floating(count, "binomial_cpu")
    count, prob = broadcast_tensors(count.detach(), prob.detach())
    return rejected("binomial", count, prob, generator=generator)


def von_mises(loc: Tensor, concentration: Tensor) -> Tensor:
    """Angles in [-pi, pi) around `loc`, of one shape with `concentration`, drawn in float64."""
    return rejected("von_mises", loc, concentration)


def standard_gamma(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Numbers of the gamma distribution with concentration `input` and rate 1. As `torch._standard_gamma`."""
    check_real_floating(input, "standard_gamma_cpu")
    return E.standard_gamma(rejected("standard_gamma", input.detach(), generator=generator), input)


def dirichlet(input: Tensor, generator: Generator | None = None) -> Tensor:
    """Points on the simplex with concentration `input` along the last dim. As `torch._sample_dirichlet`.

    Gradients flow to `input`, as they do in PyTorch through `Dirichlet.rsample`.
    """
    check_real_floating(input, "dirichlet")
    return E.dirichlet(rejected("dirichlet", input.detach(), generator=generator), input)


def standard_gamma_grad(input: Tensor, output: Tensor) -> Tensor:
    """The slope of `output`, drawn by `standard_gamma(input)`. As `torch._standard_gamma_grad`."""
    slope = gamma_slope(E, converted(input.detach(), FLOAT64), converted(output.detach(), FLOAT64))
    return converted(slope, input._dtype())


def dirichlet_grad(x: Tensor, alpha: Tensor, total: Tensor) -> Tensor:
    """The slope of x / (1 - x), x being of beta(alpha, total - alpha). As `torch._dirichlet_grad`."""
    wide = [converted(t.detach(), FLOAT64) for t in (x, alpha, total)]
    return converted(beta_slope(E, *wide), x._dtype())
