"""What a report says of a planted fault: the op, the pass or the rule, the evidence, and the user's line.

The faults themselves are in `compare.selftest.faults`.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import compare
import eager as torch
from compare.checking.findings import Report
from compare.judging.tolerance import Verdict
from compare.locating.culprit import Culprit
from compare.selftest.planting import declared, with_rule
from eager.engine.language import E
from graphc.lowering.overrides import OVERRIDES
from graphc.ops import OPS
from graphc.ops.aval import Aval
from graphc.ops.rules import pointwise_float
from graphc.ops.spec import Rule
from graphc.passes import rules_for
from graphc.rewrite import EXACT, REASSOCIATES
from tests.compare.planted import drops_scaling, sum_for_difference

# the facade has a function of that name
pipeline_module = importlib.import_module("graphc.passes.pipeline")
Declare = Callable[..., Any]


def numbers(*shape: int, dtype: Any = np.float32) -> Any:
    values = np.random.default_rng(5).uniform(0.5, 1.5, shape).astype(dtype)
    return torch.from_numpy(values).requires_grad_()


def culprit_of(report: Report, mode: str) -> Culprit:
    """The culprit of the first bug in `mode`."""
    assert report.verdict is Verdict.BUG, str(report)
    found = [f for f in report.findings if f.mode == mode and f.verdict is Verdict.BUG]
    assert found, f"no bug in mode '{mode}':\n{report}"
    assert found[0].culprit is not None, str(report)
    return found[0].culprit


def is_here(culprit: Culprit) -> bool:
    return "test_planted_faults.py:" in culprit.where


@pytest.fixture
def square_with(declare: Declare) -> Callable[..., None]:
    """Declares op "planted": the square, with changes."""

    def declare_square(**changes: Any) -> None:
        sound = {"impl": "square", "rule": pointwise_float, "vjp": {"x": lambda F, g, x: g * (2 * x)}}
        declare("planted", "x", **{**sound, **changes})

    return declare_square


def through_planted(x: Any) -> Any:
    return torch.tanh(E.planted(torch.exp(-x))).sum()


def test_sound_planted_op_passes(square_with: Callable[..., None]):
    square_with()
    report = compare.check(through_planted, numbers(3))
    assert report.ok, str(report)


@pytest.mark.parametrize("mode", ["jax.grad", "finite differences"])
def test_wrong_gradient_rule(square_with: Callable[..., None], mode: str):
    square_with(vjp={"x": lambda F, g, x: g * (2.001 * x)})
    report = compare.check(through_planted, numbers(3))
    culprit = culprit_of(report, mode)
    assert (culprit.op, culprit.part) == ("planted", "gradient rule for 'x'")
    assert is_here(culprit)
    assert report.verdict_of("compiled") < Verdict.BUG  # both modes share the wrong rule


def test_wrong_gradient_rule_in_the_middle_of_a_registered_op():
    sin, x = OPS["sin"], numbers(4)
    torch.sin(x).sum().backward()  # generates eager's code, which has to follow the change
    wrong = sin._vjp("input", lambda F, g, input: g * F.cos(input) * 2.001 / 2)
    with declared(sin, vjp=with_rule(sin, "input", wrong)):
        culprit = culprit_of(compare.check(lambda x: torch.exp(torch.sin(x * 2)).mean(), x), "jax.grad")
    assert culprit.op == "sin"
    assert is_here(culprit)
    assert compare.check(lambda x: torch.exp(torch.sin(x * 2)).mean(), x).ok


def test_gradient_rule_that_forgets_the_cotangent(square_with: Callable[..., None]):
    square_with(vjp={"x": lambda F, g, x: 2 * x})
    assert culprit_of(compare.check(through_planted, numbers(3)), "finite differences").op == "planted"


def test_eager_form_that_differs_from_the_declaration(
    square_with: Callable[..., None], monkeypatch: pytest.MonkeyPatch
):
    square_with()
    through_planted(numbers(3))  # generates eager's code
    monkeypatch.setattr(OPS["planted"], "kernel", lambda x: x * x * x.dtype.type(1.001))
    culprit = culprit_of(compare.check(through_planted, numbers(3), modes=["graph"]), "graph")
    assert (culprit.op, culprit.part) == ("planted", "eager form")
    assert is_here(culprit)


@pytest.mark.parametrize("licence", [EXACT, REASSOCIATES])
def test_wrong_rewrite_rule(monkeypatch: pytest.MonkeyPatch, licence: Any):
    monkeypatch.setattr(pipeline_module, "ALL", (*pipeline_module.ALL, sum_for_difference(licence)))
    report = compare.check(lambda x: torch.exp(x * 2.0 - x.tanh()) + x, numbers(3))
    stages = [f"pass {k}: {name}" for k, (name, _) in enumerate(pipeline_module.default_passes(), 1)]
    simplify = next(k for k, stage in enumerate(stages) if stage.endswith(": simplify"))
    culprit = culprit_of(report, stages[simplify])
    assert (culprit.part, culprit.rule, culprit.pass_name) == ("rewrite rule", "planted_rule", "simplify")
    assert is_here(culprit)
    assert report.verdict_of(stages[simplify - 1]) is Verdict.IDENTICAL
    assert report.verdict_of("compiled") is Verdict.BUG
    assert "planted_rule" in {r.name for r in rules_for(REASSOCIATES)}


def test_wrong_pass(monkeypatch: pytest.MonkeyPatch):
    sound = pipeline_module.default_passes()
    broken = (*sound[:2], ("planted pass", drops_scaling), *sound[2:])
    monkeypatch.setattr("compare.modes.default_passes", lambda: broken)
    monkeypatch.setattr("compare.cases.case.default_passes", lambda: broken)
    report = compare.check(lambda x: torch.exp(x) * 3.0, numbers(3), modes=["passes"])
    culprit = culprit_of(report, "pass 3: planted pass")
    assert (culprit.part, culprit.pass_name, culprit.op) == ("pass", "planted pass", "positive")
    assert is_here(culprit)
    assert report.verdict_of("pass 2: common subexpressions") is Verdict.IDENTICAL


def test_wrong_lowering(monkeypatch: pytest.MonkeyPatch):
    import jax.numpy as jnp

    monkeypatch.setitem(OVERRIDES, "cos", lambda x: jnp.sin(x + 1.5))
    report = compare.check(
        lambda x: torch.sin(torch.cos(x * 2)).sum(), numbers(3), modes=["graph", "passes", "compiled"]
    )
    culprit = culprit_of(report, "compiled")
    assert (culprit.op, culprit.part) == ("cos", "lowering")
    assert is_here(culprit)
    assert report.verdict_of("graph") is Verdict.IDENTICAL


def test_wrong_lowering_of_an_op_that_only_the_gradient_uses(monkeypatch: pytest.MonkeyPatch):
    import jax.numpy as jnp

    monkeypatch.setitem(OVERRIDES, "cos", lambda x: jnp.sin(x + 1.5))
    report = compare.check(lambda x: torch.sin(x).sum(), numbers(3), modes=["compiled"])
    assert [f.what for f in report.bugs] == ["gradient of x"]
    assert culprit_of(report, "compiled").op == "cos"


def test_lowering_that_raises(monkeypatch: pytest.MonkeyPatch):
    def broken(x: Any) -> Any:
        raise NotImplementedError("planted")

    monkeypatch.setitem(OVERRIDES, "cos", broken)
    report = compare.check(lambda x: torch.cos(x), numbers(3), modes=["compiled"])
    culprit = culprit_of(report, "compiled")
    assert (culprit.op, culprit.part) == ("cos", "lowering")
    assert "NotImplementedError: planted" in culprit.evidence


def test_dropped_dtype(monkeypatch: pytest.MonkeyPatch):
    import jax.numpy as jnp

    monkeypatch.setitem(OVERRIDES, "exp", lambda x: jnp.exp(x.astype(np.float32)))
    report = compare.check(lambda x: torch.exp(x), numbers(3, dtype=np.float64), modes=["compiled"])
    assert report.bugs[0].what == "dtype of result"
    culprit = culprit_of(report, "compiled")
    assert culprit.op == "exp"
    assert culprit.evidence == "gives f32[3], declared is f64[3]"


def _column(op: Any, avals: list[Aval], params: Any) -> Aval:
    return Aval((*avals[0].shape, 1), avals[0].dtype)


def test_wrong_shape_rule(square_with: Callable[..., None]):
    square_with(rule=Rule(_column), vjp={})
    report = compare.check(lambda x: E.planted(x.detach()), numbers(3), modes=["graph"])
    assert report.bugs[0].what == "shape of result"
    culprit = culprit_of(report, "graph")
    assert (culprit.op, culprit.part) == ("planted", "shape rule")
    assert culprit.evidence == "declares f32[3,1], the kernel gives f32[3]"


@pytest.mark.deep
def test_one_wrong_element_in_a_million(monkeypatch: pytest.MonkeyPatch):
    import jax.numpy as jnp

    monkeypatch.setitem(OVERRIDES, "exp", lambda x: jnp.exp(x).at[77].multiply(1.001))
    x = torch.from_numpy(np.random.default_rng(0).standard_normal(1_000_000).astype(np.float32))
    report = compare.check(lambda x: torch.exp(x), x, modes=["compiled"])
    assert "element (77,)" in report.bugs[0].detail
    assert culprit_of(report, "compiled").op == "exp"


def test_state_that_cannot_be_put_back_is_seen():
    calls = iter(range(1, 100))

    def counts(x: Any) -> Any:
        return x * next(calls)

    report = compare.check(counts, torch.tensor([1.0]), modes=["eager"])
    assert [f.what for f in report.bugs] == ["second call: result"]
