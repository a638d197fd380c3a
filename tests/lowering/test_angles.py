"""Sines and their inverses in loops over vectors: how exact they are, and at special points."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from graphc.lowering import angles, scans
from graphc.ops.spec import MANY

N = 2 * MANY
ULPS = {"sin": 0.85, "cos": 0.85, "tan": 2.5, "asin": 3.0, "acos": 3.0, "atan": 2.0}
NUMPY = {"asin": np.arcsin, "acos": np.arccos, "atan": np.arctan}
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 1e-30, -1e-30, 1e30, -1e30, 3e38, -3e38]


def judged(found: object, exact: np.ndarray, dtype: type) -> float:
    """The largest error in ULP, if nan and signs of zero are in their places."""
    got, rounded = np.asarray(found), exact.astype(dtype)
    assert got.dtype == dtype
    np.testing.assert_array_equal(np.isnan(got), np.isnan(exact))
    np.testing.assert_array_equal(np.signbit(got[exact == 0]), np.signbit(exact[exact == 0]))
    counted = np.isfinite(exact) & (np.abs(exact) > 8 * np.finfo(dtype).tiny)
    return float(np.max(np.abs(got - exact)[counted] / np.spacing(np.abs(rounded[counted]))))


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("name", ULPS)
def test_float32(name: str, rng: np.random.Generator) -> None:
    sign = np.sign(rng.standard_normal(N))
    periodic = name not in NUMPY
    quarters = rng.integers(-5000, 5000, N) * (np.pi / 2)
    sets = {"small": rng.uniform(-1, 1, N), "tiny": sign * np.exp(rng.uniform(-60, 0, N))}
    if periodic or name == "atan":
        sets |= {
            "large": rng.uniform(-8000, 8000, N),
            "near zeros": quarters,
            "huge": sign * np.exp(rng.uniform(0, 80, N)),
        }
    for what, values in {**sets, "special": np.resize(SPECIAL, N)}.items():
        x = values.astype(np.float32)
        exact = NUMPY.get(name, getattr(np, name, None))(x.astype(np.float64))
        assert judged(jax.jit(angles.OVERRIDES[name])(x), exact, np.float32) < ULPS[name], what


@pytest.mark.parametrize("name", ULPS)
def test_float64(name: str, rng: np.random.Generator) -> None:
    x = rng.uniform(-1, 1, N) * (1e5 if name in ("sin", "cos") else 1)
    expected = NUMPY.get(name, getattr(np, name, None))(x)
    with jax.enable_x64(True):
        found = np.asarray(jax.jit(angles.OVERRIDES[name])(x))
    np.testing.assert_allclose(found, expected, rtol=8e-16)


def test_angles_of_points(rng: np.random.Generator) -> None:
    special = [x.ravel() for x in np.meshgrid(SPECIAL, SPECIAL)]
    for y, x in (rng.standard_normal((2, N)), np.exp(rng.uniform(-30, 30, (2, N))) * [[1], [-1]],
                 [np.resize(v, N) for v in special]):  # fmt: skip
        y, x = y.astype(np.float32), x.astype(np.float32)
        exact = np.arctan2(y.astype(np.float64), x.astype(np.float64))
        assert judged(jax.jit(angles.atan2)(y, x), exact, np.float32) < 2.5


def test_programs_without_64_bits_stay_without() -> None:
    x = jnp.ones(N, jnp.float32)
    for name in ULPS:
        with jax.enable_x64(True):
            assert "f64" not in str(jax.make_jaxpr(angles.OVERRIDES[name])(x)), name


SCANS = {
    "sum": (lax.add, lax.cumsum, np.cumsum), "product": (lax.mul, lax.cumprod, np.cumprod),
    "maximum": (lax.max, lax.cummax, np.maximum.accumulate),
    "logarithm": (jnp.logaddexp, lax.cumlogsumexp, np.logaddexp.accumulate),
}  # fmt: skip


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("name", SCANS)
def test_scans_in_blocks(name: str, reverse: bool, rng: np.random.Generator) -> None:
    combine, other, plain = SCANS[name]
    for shape, axis in (((2 * scans.BLOCK + 1, scans.WIDE + 40), 0), ((3, 1000, 40), 1)):
        x = np.sign(rng.standard_normal(shape)) if name == "product" else rng.standard_normal(shape)
        with jax.enable_x64(True):
            found = jax.jit(lambda x, axis=axis: scans.along(x, axis, combine, other, reverse))(x)
        expected = np.flip(plain(np.flip(x, axis), axis), axis) if reverse else plain(x, axis)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("shape", "dtype"), [((2 * scans.LONG + 7,), "float32"), ((300, scans.TRIANGLE), "float64")])
def test_running_sums_by_products(shape: tuple[int, ...], dtype: str, reverse: bool, rng: np.random.Generator) -> None:
    running = jax.jit(lambda x: scans.cumsum(x, x.ndim - 1, reverse))
    x = rng.standard_normal(shape).astype(dtype)
    spoilt = x.copy()
    spoilt.flat[[x.size // 3, x.size // 2, 2]] = np.inf, -np.inf, np.nan
    for given in (x, spoilt, np.abs(x) * np.finfo(dtype).max / 100):
        with jax.enable_x64(True):
            found = running(given)
        assert found.dtype == dtype
        with np.errstate(all="ignore"):
            expected = np.flip(np.flip(given, -1).cumsum(-1), -1) if reverse else given.cumsum(-1)
        scale = np.abs(np.where(np.isfinite(expected), expected, 0)).max()
        np.testing.assert_allclose(found, expected, rtol=0, atol=200 * np.finfo(dtype).eps * scale)
