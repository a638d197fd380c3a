"""What is a number but for nan: functions of it are not computed, and its nan stays."""

from __future__ import annotations

import numpy as np
import pytest

import eager as torch
import graphc

X = np.array([1.0, -2.5, 0.0, -0.0, np.inf, -np.inf, np.nan, 1e30], np.float32)
Y = np.array([3.0, 0.0, -1.0, 2.0, 5.0, 1.0, 2.0, -1.0], np.float32)


@pytest.mark.parametrize(("f", "gone"), [
    (lambda x, y: torch.exp(x - x), "exp"),
    (lambda x, y: torch.cos(torch.sqrt(x - x) * 3.0), "cos"),
    (lambda x, y: torch.neg(x - x), "exp"),
    (lambda x, y: torch.log(x / x), "log"),
    (lambda x, y: torch.atan(2.0 / (x / x)), "atan"),
    (lambda x, y: x / x, "div"),
    (lambda x, y: (x * y) / x, "div"),
])  # fmt: skip
def test_nan_stays_where_it_was(f, gone: str):
    graph = graphc.trace(f, torch.from_numpy(X), torch.from_numpy(Y))
    better = graphc.optimize(graph)
    assert gone not in {op.name for op in better.ops}
    found, expected = np.asarray(better(X, Y)), np.asarray(graph(X, Y))
    np.testing.assert_allclose(found, expected, rtol=1e-6)  # nan in the same places
    assert (np.signbit(found) == np.signbit(expected))[~np.isnan(found)].all()


def test_what_may_differ_stays():
    graph = graphc.trace(lambda x, y: torch.exp(x - y), torch.from_numpy(X), torch.from_numpy(Y))
    assert "exp" in {op.name for op in graphc.optimize(graph).ops}


def test_like_terms_of_other_signs_stay():
    graph = graphc.trace(lambda x: 2.0 * x - x, torch.from_numpy(X))  # nan where x is infinite
    np.testing.assert_array_equal(np.asarray(graphc.optimize(graph)(X)), np.asarray(graph(X)))
