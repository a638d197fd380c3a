"""Orders by keys: the places that NumPy's stable sort gives, from NumPy and from XLA."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from graphc.ops import orders
from tests.depth import one_in

DTYPES = ("f2", "f4", "f8", "bf16", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?")
SHAPES = ((7, 90), 1), ((90, 3), 0), ((300,), 0), ((0, 3), 0), ((3, 0), 1), ((1, 5), 1), ((5, 1), -1), ((2, 70, 2), 1)
SPECIAL = (np.nan, -0.0, 0.0, np.inf, -np.inf, -np.nan, 1e-310, -1e-40, 1.0)


def drawn(code: str, shape: tuple[int, ...], ties: bool) -> np.ndarray:
    """Numbers of all sizes, with signed zeros, infinities, both signs of nan, and perhaps many that are equal."""
    rng = np.random.default_rng(len(shape) + ties)
    dtype = np.dtype(ml_dtypes.bfloat16 if code == "bf16" else code)
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        values = rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
        return values // dtype.type(info.max // 3) if ties else values
    values = rng.standard_normal(shape) * 10
    values = np.round(values) if ties else values
    for k, special in enumerate(SPECIAL):
        values.flat[k::13] = special
    with np.errstate(over="ignore"):
        return values.astype(dtype)


def expected(x: np.ndarray, axis: int, descending: bool) -> np.ndarray:
    """Row by row, by Python's sort, which is stable: nan is the largest."""
    rows = np.moveaxis(x, axis, -1)
    found = np.zeros(rows.shape, np.int64)
    for at in np.ndindex(rows.shape[:-1]):
        row = rows[at].tolist()
        nans, rest = [k for k, v in enumerate(row) if v != v], [k for k, v in enumerate(row) if v == v]
        rest.sort(key=row.__getitem__, reverse=descending)
        found[at] = nans + rest if descending else rest + nans
    return np.moveaxis(found, -1, axis)


def cases() -> list[Any]:
    return [pytest.param(code, ties, id=f"{code}-{'ties' if ties else 'all'}") for code in DTYPES for ties in (0, 1)]


@pytest.mark.parametrize(("code", "ties"), cases())
def test_numpy(code: str, ties: bool, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(orders, "SMALL", 0)
    monkeypatch.setattr(orders, "SHORT", 0)
    for shape, axis in SHAPES:
        x = drawn(code, shape, ties)
        for descending in (False, True):
            wanted = expected(x, axis, descending)
            np.testing.assert_array_equal(orders.order(x, axis, descending), wanted)
            for first in (0, 1, 2, 5):
                part = np.take(wanted, range(min(first, shape[axis])), axis)
                np.testing.assert_array_equal(orders.order(x, axis, descending, first), part)


@pytest.mark.parametrize("ties", one_in(2, [1, 0], lambda ties: "ties" if ties else "all"))
@pytest.mark.parametrize("code", DTYPES)
def test_xla(code: str, ties: bool):
    import jax

    from graphc.lowering import orders as lowered
    from tests.quick import OPTIONS

    for shape, axis in SHAPES[: 3 if code == "f4" else 1]:
        x = drawn(code, shape, ties)
        for descending in (False, True):
            wanted = expected(x, axis, descending)
            with jax.enable_x64(True):
                for first in (None, 2):
                    values, places = jax.jit(lowered.sort, static_argnums=(1, 2, 3), compiler_options=dict(OPTIONS))(
                        x, axis, descending, first
                    )
                    assert places.dtype == np.int64
                    part = wanted if first is None else np.take(wanted, range(first), axis)
                    np.testing.assert_array_equal(places, part)
                    taken = np.take_along_axis(x, part, axis)
                    assert np.asarray(values).tobytes() == taken.tobytes()  # also which nan, and the sign of zero


def test_what_is_ordered_is_told_in_bytes():
    from graphc.lowering.orders import words

    for dtype, first, each in ((np.float32, None, 8), (np.float32, 2, 4), (np.float32, 30, 8), (np.float64, 2, 8)):
        assert words(np.zeros((3, 100), dtype), 1, first) == 300 * each, (dtype, first)
    assert words(np.zeros((), np.float32), 0, None) == 0


def test_keys_rise_with_the_numbers():
    x = np.array([-np.inf, -1.0, -1e-45, 0.0, 1e-45, 1.0, np.inf, np.nan], np.float32)
    key = orders.keys(np, x)
    assert (np.diff(key.astype(np.int64)) > 0).all()
    assert orders.keys(np, np.float32([-0.0]))[0] == orders.keys(np, np.float32([0.0]))[0] == 0


def test_a_key_that_forgets_the_sign_is_seen(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(orders, "SMALL", 0)
    monkeypatch.setattr(orders, "SHORT", 0)
    monkeypatch.setattr(orders, "keys", lambda xp, x: x.view(np.int32))
    x = np.array([-1.0, -2.0], np.float32)
    assert orders.order(x, 0, False).tolist() != expected(x, 0, False).tolist()
