"""Programs as they are written in textbooks, at float32 values where the written form overflows or loses its digits.

The values and the gradients are those of the real function. What has no stable form, or needs a proof, stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import eager as torch
import graphc

exp, log, sqrt, sigmoid, softmax = torch.exp, torch.log, torch.sqrt, torch.sigmoid, torch.softmax
BIG = np.array([-1e30, -1e-30, 1e-30, 1e30])


class Form(NamedTuple):
    """written: the program; at: where; value and slope: what it is there, in float64, or None; near: up to how much."""

    name: str
    written: Callable[[Any], Any]
    at: Any
    value: Callable[[np.ndarray], Any]
    slope: Callable[[np.ndarray], Any] | None
    near: float = 1e-37


def _logistic(x: np.ndarray) -> np.ndarray:
    return np.where(x < 0, np.exp(x) / (1 + np.exp(x)), 1 / (1 + np.exp(-x)))


def _softplus(x: np.ndarray) -> np.ndarray:
    return np.logaddexp(x, 0)


def _shares(x: np.ndarray) -> np.ndarray:
    e = np.exp(x - x.max())
    return e / e.sum()


def _log_total(x: np.ndarray) -> float:
    return x.max() + np.log(np.exp(x - x.max()).sum())


WIDE = np.array([-200.0, -100.0, -20.0, -1e-9, 0.5, 20.0, 88.0, 100.0])
SMALL = np.array([-1e-5, -1e-10, 1e-30, 1e-10, 0.5])
FORMS = (
    Form("log(1 + x)", lambda x: log(1 + x), SMALL, np.log1p, lambda x: 1 / (1 + x)),
    Form("exp(x) - 1", lambda x: exp(x) - 1, SMALL, np.expm1, np.exp),
    Form("log(1 + exp(x))", lambda x: log(1 + exp(x)), WIDE, _softplus, _logistic),
    Form("1 / (1 + exp(-x))", lambda x: 1 / (1 + exp(-x)), WIDE[2:], _logistic, lambda x: _logistic(x) * _logistic(-x)),
    Form("log(sigmoid(x))", lambda x: log(sigmoid(x)), WIDE, lambda x: -_softplus(-x), lambda x: _logistic(-x)),
    Form("log(1 / (1 + exp(-x)))", lambda x: log(1 / (1 + exp(-x))), WIDE, lambda x: -_softplus(-x),
         lambda x: _logistic(-x)),
    Form("1 - sigmoid(x)", lambda x: 1 - sigmoid(x), WIDE[2:-1], lambda x: _logistic(-x),
         lambda x: -_logistic(x) * _logistic(-x), 1e-7),
    Form("log(1 - sigmoid(x))", lambda x: log(1 - sigmoid(x)), WIDE, lambda x: -_softplus(x), lambda x: -_logistic(x)),
    Form("log(1 - exp(x))", lambda x: log(1 - exp(x)), [-80.0, -20.0, -1.0, -0.1, -1e-9, -1e-30],
         lambda x: np.log(-np.expm1(x)), lambda x: np.exp(x) / np.expm1(x), 1e-7),
    Form("log(softmax(x))", lambda x: log(softmax(x, 0)), [-200.0, 0.0, -400.0],
         lambda x: x - _log_total(x), lambda x: 1 - x.size * _shares(x)),
    Form("log(sum(exp(x)))", lambda x: log(exp(x).sum()), [1000.0, 999.0, -1000.0], _log_total, _shares),
    Form("log(exp(x) / sum(exp(x)))", lambda x: log(exp(x) / exp(x).sum()), [1000.0, 999.0, -1000.0],
         lambda x: x - _log_total(x), None),
    Form("log(x * x)", lambda x: log(x * x), BIG, lambda x: 2 * np.log(np.abs(x)), lambda x: 2 / x),
    Form("log(x ** 2)", lambda x: log(x**2), BIG, lambda x: 2 * np.log(np.abs(x)), lambda x: 2 / x),
    Form("log(sqrt(x))", lambda x: log(sqrt(x)), BIG[2:], lambda x: np.log(x) / 2, lambda x: 0.5 / x),
    Form("sqrt(x * x)", lambda x: sqrt(x * x), BIG, np.abs, np.sign),
    Form("log(exp(x))", lambda x: log(exp(x)), [-1000.0, 3.0, 1000.0], lambda x: x, np.ones_like),
    Form("log(exp(sum(log(x))))", lambda x: log(exp(log(x).sum())), [1e-30] * 3, lambda x: np.log(x).sum(),
         lambda x: 1 / x),
    Form("x * 1e30 / 1e30", lambda x: x * 1e30 / 1e30, [1e20, -1.0], lambda x: x, np.ones_like),
    Form("x * sigmoid(x)", lambda x: x * sigmoid(x), WIDE[2:], lambda x: x * _logistic(x),
         lambda x: _logistic(x) * (1 + x * _logistic(-x))),
)  # fmt: skip


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
@pytest.mark.parametrize("backend", ["jax", "numpy"])
def test_value(form: Form, backend: str) -> None:
    x = np.array(form.at, np.float32)
    found = graphc.compile(form.written, backend=backend)(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(found, form.value(x.astype(np.float64)), rtol=4e-6, atol=form.near)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
@pytest.mark.parametrize("backend", ["jax", "numpy"])
def test_gradient(form: Form, backend: str) -> None:
    if form.slope is None:
        return
    x = np.array(form.at, np.float32)
    slope = torch.func.grad(lambda x: form.written(x).sum())
    found = graphc.compile(slope, backend=backend)(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(found, form.slope(x.astype(np.float64)), rtol=4e-6, atol=form.near)


@pytest.mark.parametrize(
    ("written", "at"),
    [
        (lambda x: exp(log(x)), -1.0),
        (lambda x: sqrt(x) * sqrt(x), -1.0),
        (lambda x: x / x, 0.0),
        (lambda x: x / x * x, 0.0),
        (lambda x: x - x, np.inf),
        (lambda x: 0 * x, np.inf),
        (lambda x: x / (x * x), 0.0),
        (lambda x: torch.func.grad(lambda x: log(x * x).sum())(x) * 1.0, 0.0),
    ],
)
@pytest.mark.parametrize("backend", ["jax", "numpy"])
def test_what_is_nan_stays_nan(written: Callable[[Any], Any], at: float, backend: str) -> None:
    x = torch.tensor([at, 2.0])
    found = graphc.compile(written, backend=backend)(x).numpy()
    assert np.isnan(written(x).numpy()[0]) and np.isnan(found[0]) and np.isfinite(found[1])


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_strict_keeps_the_written_form(form: Form) -> None:
    x = torch.from_numpy(np.array(form.at, np.float32))
    strict = graphc.compile(form.written, backend="numpy", strict=True)
    np.testing.assert_array_equal(strict(x).numpy(), form.written(x).numpy())
