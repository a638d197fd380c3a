"""Orthogonal polynomials of large degree: what the recurrence gives, in steps that do not grow with it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special

import eager as torch
import graphc
from graphc.ops import polynomials
from graphc.ops.polynomials import NEAR, POLYNOMIALS
from graphc.ops.spec import Op
from graphc.ops.special import PREFIX
from tests.depth import one_in
from tests.oracle import asked_of_torch, torch_or_skip

INSIDE = np.array([-0.99, -0.5, -1e-9, 0.0, 0.3, 0.7, 0.99])
ENDS = np.array([-1.0, 1.0])
OUTSIDE = np.array([-3.0, -1.5, -1.0001, 1.0001, 1.5, 3.0, 1e30, np.inf, -np.inf, np.nan])
BY_NAME = [pytest.param(op, id=op.name) for op in POLYNOMIALS]
FAR = [p for p in BY_NAME if "hermite" not in p.id]


def by_recurrence(op: Op, x: np.ndarray, degree: int, monkeypatch: pytest.MonkeyPatch) -> np.ndarray:
    with monkeypatch.context() as patched:
        patched.setattr(polynomials, "NEAR", degree)
        return op.kernel(x, np.asarray(float(degree)))


@pytest.mark.parametrize("op", FAR)
@pytest.mark.parametrize("degree", [NEAR + 1, NEAR + 2, 129, 1000, 1001])
def test_far_values_are_those_of_the_recurrence(op: Op, degree: int, monkeypatch: pytest.MonkeyPatch):
    x = np.concatenate([INSIDE, ENDS, OUTSIDE])
    with np.errstate(all="ignore"):
        found, expected = op.kernel(x, np.asarray(float(degree))), by_recurrence(op, x, degree, monkeypatch)
    # rounding grows with the degree, and where x is shifted that has an error, too
    np.testing.assert_allclose(found, expected, rtol=1e-12 * degree, atol=1e-13 * degree)


@pytest.mark.parametrize("op", FAR)
def test_values_leave_the_range_where_the_recurrence_does(op: Op, monkeypatch: pytest.MonkeyPatch):
    """Finite, infinite for two degrees, then nan."""
    x = np.array([-7.0, 9.0], np.float32)
    with np.errstate(all="ignore"):
        for degree in range(NEAR + 1, 140):
            found, expected = op.kernel(x, np.asarray(float(degree))), by_recurrence(op, x, degree, monkeypatch)
            assert np.array_equal(np.isnan(found), np.isnan(expected)), (degree, found, expected)
            assert np.array_equal(found == np.inf, expected == np.inf), (degree, found, expected)


@pytest.mark.parametrize("op", BY_NAME)
def test_steps_are_bounded(op: Op, monkeypatch: pytest.MonkeyPatch):
    """By the passes of NumPy over the array: `np.isnan` is asked after each."""
    passes, isnan = 0, np.isnan

    def counted(x: Any) -> Any:
        nonlocal passes
        passes += 1
        return isnan(x)

    monkeypatch.setattr(polynomials.np, "isnan", counted)
    with np.errstate(all="ignore"):
        op.kernel(np.array([-0.9, 0.4, 1.0, 1.0 + 1e-15]), np.asarray(1e6))
    assert passes <= 400


@asked_of_torch("name", one_in(4, [op.name.removeprefix(PREFIX) for op in POLYNOMIALS]))
def test_a_million_is_pytorchs(name: str):
    x, degrees = np.array([-0.7, -0.2, 0.1, 0.6, 0.9]), np.array([[1e3], [1e6], [1e6 + 1]])
    expected = getattr(torch_or_skip().special, name)(*map(torch_or_skip().tensor, (x, degrees))).numpy()
    function = getattr(torch.special, name)
    for found in (function, graphc.compile(function)):
        result = found(torch.tensor(x), torch.tensor(degrees)).numpy()
        np.testing.assert_allclose(result, expected, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("name", ["laguerre", "legendre"])
def test_the_limits_of_very_large_degrees_go_on_where_the_loops_end(name):
    limit, loop = getattr(polynomials, f"_{name}_limit"), getattr(scipy.special, f"eval_{name}")
    inside = [1e-3, 0.3, 0.9, 1 - 1e-5, 1 - 1e-10] if name == "legendre" else [1e-9, 0.5, 3.0, 30.0]
    beyond = [1 + 1e-12, 1 + 1e-10] if name == "legendre" else [-1e-9, -1e-5, -1e-3]
    x, n = np.array(inside + beyond), polynomials.FAR - 5
    bound = 1e-7 * np.maximum(np.abs(loop(n, x)), np.exp(np.maximum(x, 0) / 2) / n**0.5)
    assert (np.abs(limit(x, np.full(x.shape, float(n))) - loop(n, x)) < bound).all()
    assert (np.abs(limit(x, np.full(x.shape, n + 1.0)) - loop(n, x)) > bound).any()  # another degree is seen
