"""Test inputs that an op declares for itself, where pointwise sampling over its domain does not fit."""

from __future__ import annotations

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


KINDS = (Floats, Complexes, Ints, Bools, Definite, Regular)


@final
class Sample:
    """One call of an op: a spec for each array (a plain tuple is the shape of floats) and the parameters."""

    __slots__ = ("inputs", "params")

    def __init__(self, *inputs: Any, **params: Any):
        self.inputs = tuple(s if isinstance(s, KINDS) else Floats(s) for s in inputs)
        self.params = params

    def __repr__(self) -> str:
        shapes = ",".join("x".join(map(str, s.shape)) or "scalar" for s in self.inputs)
        return "-".join([shapes, *(f"{k}={v}".replace(" ", "") for k, v in self.params.items())])

    def arrays(self, rng: np.random.Generator, domain: Any = None, dtype: Any = np.float64) -> list[np.ndarray]:
        """Draw the input arrays; `domain` is one (low, high), one for each array, or None for (-2, 2)."""
        return [_draw(rng, s, _interval(domain, i), dtype) for i, s in enumerate(self.inputs)]


def _interval(domain: Any, index: int) -> tuple[float, float]:
    if domain is None:
        return (-2.0, 2.0)
    if isinstance(domain[0], tuple):
        return domain[min(index, len(domain) - 1)]
    return domain


def _draw(rng: np.random.Generator, spec: Any, interval: tuple[float, float], dtype: Any) -> np.ndarray:
    if isinstance(spec, Ints):
        return rng.integers(spec.low, spec.high, spec.shape)
    if isinstance(spec, Bools):
        return rng.random(spec.shape) < 0.5
    real = np.asarray(rng.uniform(*interval, spec.shape)).astype(dtype)
    if isinstance(spec, (Definite, Regular)):
        dominant = (np.eye(spec.shape[-2], spec.shape[-1]) * np.arange(2, spec.shape[-1] + 2)).astype(dtype)
        if isinstance(spec, Definite):
            return (real @ np.swapaxes(real, -1, -2) / 4 + dominant).astype(dtype)
        return np.roll(real / 4 + dominant, 1, axis=-2).astype(dtype)
    if isinstance(spec, Complexes):
        return (real + 1j * rng.uniform(*interval, spec.shape)).astype(complex_of(real.dtype))
    return real
