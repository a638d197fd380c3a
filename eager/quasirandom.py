"""Points that fill a cube evenly. As `torch.quasirandom`: the same points, scrambled or not, for the same seed."""

from __future__ import annotations

from typing import Any

import numpy as np

from eager.core.dtypes import dtype as DType
from eager.core.tensor import Tensor
from eager.functional.buffers import from_numpy
from eager.functional.casts import get_default_dtype
from eager.rng.functions import randint
from eager.rng.generator import Generator

__all__ = ["SobolEngine"]

NOT_BALANCED = (
    "The balance properties of Sobol' points require n to be a power of 2. {0} points have been previously generated, "
    "then: n={0}+2**{1}={2}. If you still want to do this, please use 'SobolEngine.draw()' instead."
)


class SobolEngine:
    """Sobol' points in [0, 1)^dimension, with the direction numbers of Joe and Kuo (2008), which SciPy has.

        >>> import eager as torch
        >>> torch.quasirandom.SobolEngine(2).draw(4)
        tensor([[0.0000, 0.0000],
                [0.5000, 0.5000],
                [0.7500, 0.2500],
                [0.2500, 0.7500]])

    scramble: whether the digits are mixed and shifted at random, as Owen (1998) has it, from the default generator, or
    with `seed` from one of its own. ValueError for a dimension below 1 or above MAXDIM.
    """

    MAXBIT = 30
    MAXDIM = 21201

    def __init__(self, dimension: int, scramble: bool = False, seed: int | None = None):
        if not 1 <= dimension <= self.MAXDIM:
            raise ValueError(f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]")
        self.seed, self.scramble, self.dimension = seed, scramble, dimension
        directions = _directions(dimension, self.MAXBIT)
        shift = np.zeros(dimension, np.int64)
        if scramble:
            generator = None if seed is None else Generator().manual_seed(seed)
            shift = randint(2, (dimension, self.MAXBIT), generator=generator).numpy() @ 2 ** np.arange(self.MAXBIT)
            mixing = np.tril(randint(2, (dimension, self.MAXBIT, self.MAXBIT), generator=generator).numpy())
            directions = _mixed(directions, mixing)
        self.sobolstate, self.shift = from_numpy(directions), from_numpy(shift)
        self.quasi = self.shift.clone()
        self.num_generated = 0

    def draw(self, n: int = 1, out: Tensor | None = None, dtype: DType | None = None) -> Tensor:
        """The next `n` points, a tensor of (n, dimension), also written to `out`. The default dtype if None."""
        points = self._advance(n) / 2.0**self.MAXBIT
        result = from_numpy(points).to(dtype or get_default_dtype())
        return result if out is None else out.resize_as_(result).copy_(result)

    def draw_base2(self, m: int, out: Tensor | None = None, dtype: DType | None = None) -> Tensor:
        """The next 2**m points. ValueError unless there are a power of two of them then."""
        total = self.num_generated + 2**m
        if total & (total - 1):
            raise ValueError(NOT_BALANCED.format(self.num_generated, m, total))
        return self.draw(2**m, out, dtype)

    def reset(self) -> SobolEngine:
        """Begin with the first point again."""
        self.quasi.copy_(self.shift)
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Leave `n` points out."""
        self._advance(n)
        return self

    def _advance(self, n: int) -> np.ndarray:
        """The next n points in units of 2**-MAXBIT. Each is the last one, one direction flipped (a Gray code)."""
        steps = np.arange(self.num_generated - 1, self.num_generated + n - 1)
        flipped = self.sobolstate.numpy().T[_lowest_zero(steps)]
        if self.num_generated == 0 and n:
            flipped[0] = 0  # the first point is the shift itself
        points = np.bitwise_xor.accumulate(np.concatenate([self.quasi.numpy()[None], flipped]))[1:]
        if n:
            self.quasi.copy_(from_numpy(points[-1].copy()))
        self.num_generated += n
        return points

    def __repr__(self) -> str:
        shown: dict[str, Any] = {"dimension": self.dimension}
        if self.scramble:
            shown["scramble"] = True
        if self.seed is not None:
            shown["seed"] = self.seed
        return f"SobolEngine({', '.join(f'{name}={value}' for name, value in shown.items())})"


def _directions(dimension: int, bits: int) -> np.ndarray:
    """Direction numbers, int64 of (dimension, bits)."""
    from scipy.stats import qmc

    return qmc.Sobol(dimension, scramble=False, bits=bits)._sv.astype(np.int64)  # SciPy has no public name for them


def _lowest_zero(numbers: np.ndarray) -> np.ndarray:
    """The place of the lowest bit that is 0."""
    return np.bitwise_count(numbers & ~(numbers + 1))


def _mixed(directions: np.ndarray, mixing: np.ndarray) -> np.ndarray:
    """Each direction's digits, most significant first, times a lower triangular matrix of ones and zeros, modulo 2."""
    bits = directions.shape[-1]
    places = np.arange(bits - 1, -1, -1)
    mixing[:, np.arange(bits), np.arange(bits)] = 1
    digits = (directions[..., None] >> places) & 1  # (dimension, direction, digit)
    return ((digits @ mixing.swapaxes(-1, -2)) % 2 << places).sum(-1)
