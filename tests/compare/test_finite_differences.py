"""Finite differences: right where functions have kinks, oscillate or cancel, and still able to find a wrong rule."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import compare
import eager as torch
from compare.judging.tolerance import Verdict
from compare.selftest.planting import declared, with_rule
from eager import nn
from graphc.ops import OPS
from graphc.ops.spec import Vjp

MODE = ["finite differences"]


def checked(fn: Callable[..., Any], *args: Any, seed: int = 0) -> Verdict:
    report = compare.check(fn, *args, seed=seed, modes=MODE)
    return report.verdict_of("finite differences")


def scaled(op: str, factor: float) -> Any:
    """The gradient rule of `op` is wrong by a factor."""
    rule = OPS[op].vjp["input"]
    wrong = Vjp(lambda F, *v: rule.fn(F, *v) * factor, rule.names)
    return declared(OPS[op], vjp=with_rule(OPS[op], "input", wrong))


def perceptron(seed: int) -> tuple[Any, Any]:
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
    return lambda x: model(x).square().mean(), torch.randn(64, 20)


@pytest.mark.parametrize("seed", [2, 3, 5, 6, 7])
def test_kinks_on_the_way(seed: int):
    fn, x = perceptron(seed)
    assert checked(fn, x, seed=seed) is Verdict.WITHIN_ROUNDING


def test_a_wrong_rule_beside_kinks_is_found():
    with scaled("relu", 1 + 1e-4):
        fn, x = perceptron(2)
        assert checked(fn, x, seed=2) is Verdict.BUG


def test_a_wrong_subgradient_side_is_found():
    x = torch.linspace(-2, 2, 40).requires_grad_()
    wrong = Vjp(lambda F, g, input: F.where(input > 1e-2, g, 0), ("g", "input"))
    with declared(OPS["relu"], vjp=with_rule(OPS["relu"], "input", wrong)):
        assert checked(lambda x: (x / 64).relu().sum(), x) is Verdict.BUG  # 0 < x/64 < 1/100 has the other one's


@pytest.mark.parametrize("size", [1e4, 1e5, 1e6])
def test_oscillation_at_large_arguments(size: float):
    for seed in range(3):
        torch.manual_seed(seed)
        assert checked(lambda x: x.sin().sum(), (torch.randn(8) * size).requires_grad_()) is Verdict.WITHIN_ROUNDING
        with scaled("sin", 1 + 1e-3):
            assert checked(lambda x: x.sin().sum(), (torch.randn(8) * size).requires_grad_()) is Verdict.BUG


def test_fourier_features():
    torch.manual_seed(0)
    assert checked(lambda t: (t * 2 * math.pi * 1000).sin().sum(), (torch.rand(8) * 100).requires_grad_()) < Verdict.BUG
    periods = torch.arange(8.0).mul(1000).requires_grad_()  # steps of whole periods would see a constant
    assert checked(lambda t: (t * (2 * math.pi)).sin().sum(), periods) < Verdict.BUG


def test_cancellation():
    torch.manual_seed(0)
    x = torch.randn(200).requires_grad_()
    assert checked(lambda x: ((x + 1e6) - 1e6 - x).sum(), x) is Verdict.WITHIN_ROUNDING
    with scaled("neg", 1 + 1e-3):
        assert checked(lambda x: ((x + 1e6) - 1e6 + x.neg()).sum(), x) is Verdict.BUG


def test_a_gradient_of_0_times_infinity_is_nan_by_convention():
    x = torch.tensor([1.0, 0.0, -1.0], requires_grad=True)

    def fn(x: Any) -> Any:
        return torch.where(x > 0, x.log(), 0.0).sum()

    assert checked(fn, x) is Verdict.CONVENTION
    with scaled("log", 1 + 1e-3):
        assert checked(fn, x) is Verdict.BUG


def test_a_rule_that_gives_nan_by_itself_is_found():
    wrong = Vjp(lambda F, g, input: g / input * (input - 2) / (input - 2), ("g", "input"))
    with declared(OPS["log"], vjp=with_rule(OPS["log"], "input", wrong)):
        assert checked(lambda x: x.log().sum(), torch.tensor([1.0, 2.0], requires_grad=True)) is Verdict.BUG


def test_steps_get_shorter_beside_the_end_of_a_domain():
    x = torch.tensor([1e-5, 1.0], dtype=torch.float64, requires_grad=True)
    with scaled("sqrt", 1.001):
        report = compare.check(lambda x: x.sqrt()[:1].sum(), x, modes=MODE)
    assert report.verdict is Verdict.BUG and np.isfinite(report.bugs[0].difference or 0.0)
