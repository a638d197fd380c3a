"""Test inputs that an op declares for itself, where pointwise sampling over its domain does not fit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, final

import numpy as np

from graphc.ops.dtypes import complex_of


class Floats(NamedTuple):
    """A float array of `shape`, uniform over the op's domain."""

    shape: tuple[int, ...]


class Complexes(NamedTuple):
    """A complex array of `shape`, both parts uniform over the op's domain."""

    shape: tuple[int, ...]


class Ints(NamedTuple):
    """An int64 array of `shape` with values in [low, high)."""

    shape: tuple[int, ...]
    high: int
    low: int = 0


class Bools(NamedTuple):
    """A bool array of `shape`."""

    shape: tuple[int, ...]


class Definite(NamedTuple):
    """Symmetric positive definite matrices with distinct eigenvalues."""

    shape: tuple[int, ...]


class Regular(NamedTuple):
    """Well-conditioned matrices, square or not, that an elimination has to permute."""

    shape: tuple[int, ...]


class Full(NamedTuple):
    """An array of `shape` that holds `value` everywhere, known when the graph is made."""

    shape: tuple[int, ...]
    value: float


class Counted(NamedTuple):
    """The integers 0, 1, ..., known when the graph is made."""

    shape: tuple[int]


class Picks(NamedTuple):
    """A matrix with a one in each row, at these places of `size`, and else zeros, known when the graph is made.

    turned: its transpose
    """

    places: tuple[int, ...]
    size: int
    turned: bool = False

    def matrix(self, dtype: np.dtype) -> np.ndarray:
        """With its numbers."""
        rows = np.eye(self.size, dtype=dtype)[list(self.places)]
        return rows.T if self.turned else rows


class Ties(NamedTuple):
    """A float array of `shape` with few different values, and zeros among them."""

    shape: tuple[int, ...]


class Large(NamedTuple):
    """A float array of `shape` with numbers whose exponentials are out of range, beside small ones."""

    shape: tuple[int, ...]


class Far(NamedTuple):
    """An int64 array of `shape` with the least and the largest numbers, widths of integers, zero and negatives."""

    shape: tuple[int, ...]


class Odd(NamedTuple):
    """A float array of `shape` with zeros of both signs, infinities and nan among numbers of the op's domain."""

    shape: tuple[int, ...]


_TIES = (-1.0, 0.0, 1.0, 1.0, 2.0)
_LARGE = (-1e4, -200.0, -1.0, 0.5, 3.0, 200.0, 1e4)
_ODD = (0.0, -0.0, np.inf, -np.inf, np.nan)
_FAR = (-(2**63), -(2**31), -64, -1, 0, 1, 7, 31, 32, 63, 64, 2**31, 2**63 - 1)
KINDS = (Floats, Complexes, Ints, Bools, Definite, Regular, Ties, Large, Far, Odd)


def _shown(spec: Any) -> str:
    kind = f"{type(spec).__name__.lower()}" if isinstance(spec, (Ties, Large, Far, Odd)) else ""
    return kind + ("x".join(map(str, spec.shape)) or "scalar")


@final
class Sample:
    """One call of an op: a spec for each array (a plain tuple is the shape of floats) and the parameters."""

    __slots__ = ("inputs", "params")

    def __init__(self, *inputs: Any, **params: Any):
        self.inputs = tuple(s if isinstance(s, KINDS) else Floats(s) for s in inputs)
        self.params = params

    def __repr__(self) -> str:
        shapes = ",".join(_shown(s) for s in self.inputs)
        return "-".join([shapes, *(f"{k}={v}".replace(" ", "") for k, v in self.params.items())])

    def extremes(self) -> Iterator[Sample]:
        """The same call at special places: ties, large numbers, signed zeros, infinities, nan; repeated indices."""
        whole = [s for s in self.inputs if isinstance(s, Ints) and len(s.shape) and s.high - s.low > 2]
        repeated = [s._replace(low=s.high - 2) if isinstance(s, Ints) and s in whole else s for s in self.inputs]
        for kind in (Ties, Large, Odd) if any(isinstance(s, Floats) and s.shape for s in self.inputs) else ():
            yield Sample(*(kind(s.shape) if isinstance(s, Floats) else s for s in repeated), **self.params)
        if whole:
            yield Sample(*repeated, **self.params)

    def arrays(self, rng: np.random.Generator, domain: Any = None, dtype: Any = np.float64) -> list[np.ndarray]:
        """Draw the input arrays; `domain` is one (low, high), one for each array, or None for (-2, 2)."""
        return [_draw(rng, s, interval(domain, i), dtype) for i, s in enumerate(self.inputs)]


def interval(domain: Any, index: int) -> tuple[float, float]:
    """Of operand number `index`, by the `domain` of an op."""
    if domain is None:
        return (-2.0, 2.0)
    if isinstance(domain[0], tuple):
        return domain[min(index, len(domain) - 1)]
    return domain


def _drawn_from(rng: np.random.Generator, spec: Ties | Large | Odd, real: np.ndarray) -> np.ndarray:
    if real.dtype.kind not in "fcV":  # of these there is nothing odd
        return np.asarray(rng.choice((0, 1, 1, 2), spec.shape)).astype(real.dtype)
    if isinstance(spec, Odd):
        return np.where(rng.random(spec.shape) < 0.4, rng.choice(_ODD, spec.shape), real).astype(real.dtype)
    return np.asarray(rng.choice(_TIES if isinstance(spec, Ties) else _LARGE, spec.shape)).astype(real.dtype)


def _draw(rng: np.random.Generator, spec: Any, interval: tuple[float, float], dtype: Any) -> np.ndarray:
    if isinstance(spec, Ints):
        return rng.integers(spec.low, spec.high, spec.shape)
    if isinstance(spec, Far):
        return rng.choice(np.array(_FAR), spec.shape)
    if isinstance(spec, Bools):
        return rng.random(spec.shape) < 0.5
    real = np.asarray(rng.uniform(*interval, spec.shape)).astype(dtype)
    if isinstance(spec, (Ties, Large, Odd)):
        return _drawn_from(rng, spec, real)
    if isinstance(spec, (Definite, Regular)):
        dominant = (np.eye(spec.shape[-2], spec.shape[-1]) * np.arange(2, spec.shape[-1] + 2)).astype(dtype)
        if isinstance(spec, Definite):
            return (real @ np.swapaxes(real, -1, -2) / 4 + dominant).astype(dtype)
        return np.roll(real / 4 + dominant, 1, axis=-2).astype(dtype)
    if isinstance(spec, Complexes):
        return (real + 1j * rng.uniform(*interval, spec.shape)).astype(complex_of(real.dtype))
    return real
