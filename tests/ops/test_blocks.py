"""Kernels in passes of vectors against NumPy's and SciPy's loops."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special

from graphc.ops import blocks

SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 0.3, -7, 3.9, 4, 5, 88, -88, 1e-40, -1e-40, 1e30, -1e30]
KINDS = [np.float32, np.float64]
BOTH = [
    (blocks.fmod, np.fmod),
    (blocks.floor_divide, np.floor_divide),
    (blocks.remainder, lambda x, y: np.where((np.fmod(x, y) != 0) & ((y < 0) != (np.fmod(x, y) < 0)),
                                             np.fmod(x, y) + y, np.fmod(x, y))),
]  # fmt: skip


def operands(dtype: type, rng: np.random.Generator) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    x, y = rng.standard_normal((2, 3 * blocks.BLOCK + 5))
    steps = rng.integers(-900, 900, x.size), rng.integers(1, 50, x.size)
    made = {
        "plain": (x, y), "large quotients": (1e6 * x, y), "too large": (1e20 * x, y),
        "denormal": (1e-39 * x, 1e-40 * y),
        "whole": steps, "tenths": (steps[0] * 0.1, steps[1] * 0.1), "by one": (9 * x, np.array(-0.7)),
        "special": tuple(np.meshgrid(SPECIAL, SPECIAL)),
    }  # fmt: skip
    return {name: (a.astype(dtype), b.astype(dtype)) for name, (a, b) in made.items()}


def same(found: np.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_array_equal(found, expected)
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found)[known], np.signbit(expected)[known])


@pytest.mark.filterwarnings("ignore:.*encountered in")
@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize(("kernel", "plain"), BOTH, ids=[kernel.__name__ for kernel, _ in BOTH])
def test_remainders_have_numpys_bits(kernel, plain, dtype: type, rng: np.random.Generator) -> None:
    for name, (x, y) in operands(dtype, rng).items():
        found = kernel(x, y)
        assert found.dtype == dtype, name
        same(found, plain(x, y))
    wide = np.asfortranarray(operands(dtype, rng)["plain"][0][: blocks.BLOCK].reshape(64, -1))
    same(kernel(wide, wide[:1] + 3), plain(wide, wide[:1] + 3))
    assert kernel(np.zeros((0, 3), dtype), np.ones((300, 1, 3), dtype)).shape == (300, 0, 3)


@pytest.mark.parametrize("dtype", KINDS)
def test_logarithms_of_sums(dtype: type, rng: np.random.Generator) -> None:
    for x, y in operands(dtype, rng).values():
        with np.errstate(all="ignore"):
            eps, expected = np.finfo(dtype).eps, np.logaddexp(x.astype(np.float64), y.astype(np.float64)).astype(dtype)
        np.testing.assert_allclose(blocks.logaddexp(x, y), expected, rtol=2 * eps, atol=eps)


def test_erf(rng: np.random.Generator) -> None:
    x = np.concatenate([rng.standard_normal(9000), np.exp(rng.uniform(-90, 3, 9000)), np.resize(SPECIAL, 300)])
    x = np.copysign(x, rng.standard_normal(x.size)).astype(np.float32)
    exact, found = scipy.special.erf(x.astype(np.float64)), blocks.erf(x)
    same(np.isnan(found), np.isnan(exact))
    np.testing.assert_array_equal(np.signbit(found)[x == x], np.signbit(x)[x == x])
    off = np.abs(found - exact) / np.spacing(np.abs(exact.astype(np.float32)))
    assert np.nanmax(off) < 4  # 2.5, and what another machine's tanh may add
    assert (found[abs(x) > 5] == np.sign(x[abs(x) > 5])).all()


def test_erfinv(rng: np.random.Generator) -> None:
    special = [0.0, -0.0, 1.0, -1.0, 2.0, np.nan, np.inf, 1e-40, 0.9966, 0.9967]
    near_one = 1 - np.exp(-rng.uniform(0, 16, 9000))
    x = np.concatenate([rng.uniform(-1, 1, 9000), near_one, special]).astype(np.float32)
    exact, found = scipy.special.erfinv(x.astype(np.float64)), blocks.erfinv(x)
    same(found[~np.isfinite(exact)], exact[~np.isfinite(exact)].astype(np.float32))
    np.testing.assert_array_equal(np.signbit(found)[x == x], np.signbit(x)[x == x])
    usual = np.isfinite(exact) & (abs(exact) > 1e-37)
    off = np.abs(found - exact)[usual] / np.spacing(np.abs(exact[usual].astype(np.float32)))
    assert off.max() < 4  # 2.8, and what another machine's logarithm may add
