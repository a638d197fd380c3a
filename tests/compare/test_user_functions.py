"""autograd.Functions and hooks: every mode has their gradients, and who does not use them finds them wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import compare
import eager as torch
from compare.judging.tolerance import Verdict
from compare.selftest.planting import entry
from graphc.lowering.overrides import OVERRIDES

QUICK = ["graph", "compiled", "jax.grad", "finite differences"]


def function(forward: Callable[..., Any], backward: Callable[..., Any]) -> Any:
    return type(
        "Users", (torch.autograd.Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    )


def square(factor: float) -> Any:
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    def backward(ctx: Any, g: Any) -> Any:
        return factor * ctx.saved_tensors[0] * g

    return function(forward, backward)


def given() -> Any:
    return torch.tensor([0.5, -1.25, 2.0], requires_grad=True)


@pytest.mark.parametrize("order", [1, 2])
def test_a_right_backward_is_right_in_every_mode(order: int):
    report = compare.check(lambda x: square(2.0).apply(x.sin()).sum(), given(), order=order)
    assert report.ok, str(report)
    assert not [f for f in report.findings if f.verdict is Verdict.NO_OPINION]


@pytest.mark.parametrize("factor", [3.0, 2.001])
def test_a_wrong_backward_is_found_by_who_does_not_use_it(factor: float):
    users = square(factor)
    report = compare.check(lambda x: users.apply(x).sum(), given(), modes=QUICK)
    assert {f.mode for f in report.bugs} == {"jax.grad", "finite differences"}
    culprit = report.bugs[0].culprit
    assert (
        culprit is not None and "backward of the autograd.Function" in str(culprit) and __file__[-20:] in culprit.where
    )


def test_a_wrong_lowering_beside_a_function_is_found():
    with entry(OVERRIDES, "sin", lambda x: x * 1.001):
        report = compare.check(lambda x: square(2.0).apply(x.sin()).sum(), given(), modes=["compiled"])
    assert {f.what for f in report.bugs} >= {"result", "gradient of x"}


@pytest.mark.parametrize("rounded", [lambda x: x.round(), lambda x: (x > 0).float()])
def test_a_backward_that_stands_in_for_no_derivative_gets_no_opinion(rounded: Callable[[Any], Any]):
    through = function(lambda ctx, x: rounded(x), lambda ctx, g: g)
    report = compare.check(lambda x: (through.apply(x) * x).sum(), given(), modes=QUICK)
    assert report.ok, str(report)
    assert report.verdict_of("jax.grad") is report.verdict_of("finite differences") is Verdict.NO_OPINION


def test_what_only_the_backward_reads_is_an_input():
    weight = torch.tensor([2.0, 3.0, 4.0])
    scaled = function(lambda ctx, x: x * torch.tensor([2.0, 3.0, 4.0]), lambda ctx, g: g * weight)
    assert compare.check(lambda x: scaled.apply(x).sin().sum(), given(), modes=QUICK).ok


def test_hooks_are_part_of_the_gradients():
    def hooked(x: Any) -> Any:
        y = x * 2
        y.register_hook(lambda g: g * 3)
        return (y * y).sum()

    report = compare.check(hooked, given(), modes=QUICK)
    assert report.ok, str(report)
    assert report.verdict_of("graph") is Verdict.IDENTICAL
    assert "hook" in str(report)


@pytest.mark.parametrize("of_argument", [False, True])
def test_hooks_from_before_the_call_are_seen_by_every_mode(of_argument: bool):
    x, w = given(), torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    seen: list[Any] = []

    def hook(g: Any) -> Any:
        seen.append(g)
        return g * 3 + 1

    (x if of_argument else w).register_hook(hook)
    report = compare.check(lambda x: (x * w).sin().sum(), x, modes=QUICK)
    assert report.ok and seen, str(report)
    assert report.verdict_of("graph") is Verdict.IDENTICAL
    assert report.verdict_of("jax.grad") is report.verdict_of("finite differences") is Verdict.NO_OPINION


def test_eagers_own_functions():
    report = compare.check(lambda x: x.median() + x.nanmedian(), given(), modes=QUICK)
    assert report.ok and report.verdict_of("graph") is Verdict.IDENTICAL
    zeta = compare.check(lambda x: torch.special.zeta(x.abs() + 1.1, torch.tensor(2.0)).sum(), given(), modes=QUICK)
    assert zeta.ok, str(zeta)
