"""Gradients of gradients: the modes agree on them, and a rule that is only wrong at second order is named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import compare
import eager as torch
from compare.judging.tolerance import Verdict
from eager.engine.language import E
from graphc.ops.rules import pointwise_float


def numbers(*shape: int) -> Any:
    return torch.from_numpy(np.random.default_rng(3).uniform(0.5, 1.5, shape).astype(np.float32)).requires_grad_()


def test_second_gradients_agree_in_every_mode():
    w = numbers(3, 2)
    report = compare.check(lambda x: torch.tanh(x @ w).sum(0), numbers(4, 3), order=2)
    assert report.ok, str(report)
    for mode in ("graph", "compiled", "jax.grad", "finite differences"):
        assert {"second gradient of x", "second gradient of w"} <= {f.what for f in report.findings if f.mode == mode}


def test_gradients_of_a_linear_function_are_constants():
    model = torch.nn.Linear(2, 1)
    report = compare.check(model, numbers(3, 2), order=2, modes=["graph", "compiled"])
    assert report.ok, str(report)


def test_nothing_to_differentiate():
    report = compare.check(lambda x: x > 1, numbers(3), order=2, modes=["compiled"])
    assert report.ok
    assert report.findings[-1].verdict is Verdict.NO_OPINION


def test_order_that_is_not_known():
    with pytest.raises(ValueError, match="order must be 1 or 2, got 3"):
        compare.check(torch.tanh, numbers(3), order=3)


def test_rule_that_is_wrong_at_second_order_only(declare: Callable[..., Any]):
    # the first gradient is right; as a function of x it is cut off
    declare("planted", "x", impl="square", rule=pointwise_float,
            vjp={"x": lambda F, g, x: g * (2 * F.stop_gradient(x))})  # fmt: skip
    x = numbers(3)
    assert compare.check(lambda x: E.planted(torch.exp(x)).sum(), x, modes=["jax.grad", "finite differences"]).ok
    report = compare.check(lambda x: E.planted(torch.exp(x)).sum(), x, order=2, modes=["jax.grad", "compiled"])
    wrong = [f for f in report.bugs if f.mode == "jax.grad"]
    assert [f.what for f in wrong] == ["second gradient of x"]
    assert report.verdict_of("compiled") < Verdict.BUG
