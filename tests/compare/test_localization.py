"""`localize`: one place for all that it explains, with the operands there, the line's text, and the pass or rule."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import compare
import eager as torch
import graphc
from compare.checking.localization import source_line
from compare.command_line import main
from compare.judging.tolerance import Verdict
from compare.locating.culprit import summary
from eager.engine.language import E
from graphc.ir import Graph
from graphc.lowering.overrides import OVERRIDES
from graphc.ops import OPS
from graphc.ops.rules import pointwise_float
from graphc.rewrite import EXACT
from tests.compare.planted import drops_scaling, sum_for_difference

# the facade has a function of that name
pipeline_module = importlib.import_module("graphc.passes.pipeline")


def operand() -> Any:
    return torch.tensor([0.5, 0.75, 1.0], requires_grad=True)


def subtracts(x: Any) -> Any:
    return torch.exp(x * 2.0 - x.tanh()) + x


@pytest.fixture
def wrong_rule(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline_module, "ALL", (*pipeline_module.ALL, sum_for_difference(EXACT)))


@pytest.mark.usefixtures("wrong_rule")
def test_a_wrong_rule_explains_all_that_comes_after_it():
    found = compare.localize(subtracts, operand(), modes=["graph", "passes", "compiled"])
    assert not found.ok and len(found.divergences) == 1 and found.first is not None
    culprit = found.first.culprit
    assert culprit is not None and (culprit.part, culprit.rule, culprit.op) == ("rewrite rule", "planted_rule", "sub")
    assert found.first.line == "return torch.exp(x * 2.0 - x.tanh()) + x"
    assert "f32[3] [1.4621172" in culprit.operands[0]
    modes = [f.mode for f in found.first.findings]
    assert modes[0].endswith(": simplify") and modes[-1] == "compiled"
    assert set(found.report.bugs) == set(found.first.findings)


@pytest.mark.usefixtures("wrong_rule")
def test_a_wrong_rule_inside_a_loop():
    def loop(x: Any) -> Any:
        return graphc.fori_loop(0, 2, lambda i, a: torch.exp(a) - a.tanh(), x)

    for modes in (["compiled"], ["passes"]):
        found = compare.localize(loop, operand(), modes=modes)
        assert found.first is not None and found.first.culprit is not None
        assert (found.first.culprit.rule, found.first.culprit.pass_name) == ("planted_rule", "simplify")
        assert "a.tanh()" in found.first.line


@pytest.mark.usefixtures("wrong_rule")
def test_the_compiled_mode_alone_is_traced_back_to_the_rule():
    found = compare.localize(subtracts, operand(), modes=["compiled"])
    assert found.first is not None and found.first.culprit is not None
    assert (found.first.culprit.rule, found.first.culprit.pass_name) == ("planted_rule", "simplify")


@pytest.mark.parametrize("place", [0, 3, -1])
def test_bisection_finds_a_wrong_pass_wherever_it_is(monkeypatch: pytest.MonkeyPatch, place: int):
    sound = pipeline_module.default_passes

    def with_fault(*licence: Any) -> Any:
        passes = list(sound(*licence))
        passes.insert(place % (len(passes) + 1), ("drops scaling", drops_scaling))
        return tuple(passes)

    monkeypatch.setattr("compare.cases.case.default_passes", with_fault)
    monkeypatch.setattr(pipeline_module, "default_passes", with_fault)
    found = compare.localize(subtracts, operand(), modes=["compiled"])
    assert found.first is not None and found.first.culprit is not None
    assert (found.first.culprit.part, found.first.culprit.pass_name) == ("pass", "drops scaling")
    assert found.first.culprit.op == "positive" and found.first.culprit.operands


def _raises(graph: Graph) -> Graph:
    raise KeyError("planted")


def test_a_pass_that_raises(monkeypatch: pytest.MonkeyPatch):
    sound = pipeline_module.default_passes

    def with_fault(*licence: Any) -> Any:
        passes = list(sound(*licence))
        return (*passes[:4], ("raises", _raises), *passes[4:])

    monkeypatch.setattr("compare.cases.case.default_passes", with_fault)
    monkeypatch.setattr(pipeline_module, "default_passes", with_fault)
    found = compare.localize(subtracts, operand(), modes=["graph", "passes", "compiled"])
    assert found.first is not None and found.first.culprit is not None and len(found.divergences) == 1
    assert (found.first.culprit.part, found.first.culprit.pass_name) == ("pass", "raises")
    assert "KeyError: 'planted'" in found.first.culprit.evidence


def test_a_wrong_lowering(monkeypatch: pytest.MonkeyPatch):
    import jax.numpy as jnp

    monkeypatch.setitem(OVERRIDES, "expm1", lambda x: 1.01 * jnp.expm1(x))
    found = compare.localize(lambda x: torch.expm1(x * 2).sum(), operand(), modes=["graph", "passes", "compiled"])
    assert found.first is not None and found.first.culprit is not None
    assert (found.first.culprit.part, found.first.culprit.op) == ("lowering", "expm1")
    assert "[1. , 1.5, 2. ]" in found.first.culprit.operands[0]


def loops(x: Any) -> Any:
    return graphc.fori_loop(0, 3, lambda i, a: torch.expm1(a) * 0.5, x)


def branches(x: Any) -> Any:
    return graphc.cond(x.sum() > 0, lambda a: (torch.expm1(a), a), lambda a: (a, a), x)[0]


def scans(x: Any) -> Any:
    return graphc.scan(lambda c, a: (c * 0.5 + a, torch.expm1(c)), x[0], x)[1]


@pytest.mark.parametrize("fn", [loops, branches, scans])
def test_a_wrong_lowering_inside_control_flow(monkeypatch: pytest.MonkeyPatch, fn: Callable[..., Any]):
    import jax.numpy as jnp

    monkeypatch.setitem(OVERRIDES, "expm1", lambda x: 1.01 * jnp.expm1(x))
    found = compare.localize(fn, operand(), modes=["compiled"])
    assert found.first is not None and found.first.culprit is not None
    assert (found.first.culprit.part, found.first.culprit.op) == ("lowering", "expm1")
    assert "torch.expm1" in found.first.line and found.first.culprit.operands


def test_a_wrong_gradient_rule_inside_control_flow(declare: Callable[..., Any]):
    declare("planted", "x", impl="square", rule=pointwise_float, vjp={"x": lambda F, g, x: g * x})

    def loop(x: Any) -> Any:
        return graphc.fori_loop(0, 2, lambda i, a: E.planted(a) * 0.5, x)

    found = compare.localize(loop, operand(), modes=["finite differences"])
    assert found.first is not None and found.first.culprit is not None
    assert (found.first.culprit.part, found.first.culprit.op) == ("gradient rule for 'x'", "planted")


def test_two_faults_are_two_places(monkeypatch: pytest.MonkeyPatch, declare: Callable[..., Any]):
    import jax.numpy as jnp

    monkeypatch.setitem(OVERRIDES, "expm1", lambda x: 1.01 * jnp.expm1(x))
    declare("planted", "x", impl="square", rule=pointwise_float, vjp={"x": lambda F, g, x: g * x})

    def both(x: Any) -> Any:
        y = E.planted(x)
        return torch.expm1(x), y

    found = compare.localize(both, operand(), modes=["compiled", "finite differences"])
    culprits = [(d.culprit.op, d.line) for d in found.divergences if d.culprit is not None]
    assert culprits == [("expm1", "return torch.expm1(x), y"), ("planted", "y = E.planted(x)")]
    assert all(d.verdict is Verdict.BUG for d in found.divergences)


def test_what_cannot_be_captured_is_one_place_for_all_modes():
    def masked(x: Any) -> Any:
        return x * bool(x.data_ptr())

    found = compare.localize(masked, operand(), modes=["graph", "compiled"])
    assert [d.verdict for d in found.divergences] == [Verdict.UNSUPPORTED]
    assert [f.mode for f in found.divergences[0].findings] == ["graph", "compiled"]


def test_agreement_is_no_place():
    found = compare.localize(subtracts, operand(), modes=["graph"])
    assert found.ok and found.first is None and found.divergences == ()


def test_summaries():
    assert summary(np.zeros((0, 3), np.float32)) == "f32[0,3] []"
    big = np.linspace(-1, 1, 101)
    big[3], big[4] = np.nan, np.inf
    assert "from -1 to 1" in summary(big) and summary(big).endswith("1 nan, 1 infinite")
    assert summary(np.full(20, np.nan)) == "f64[20] 20 nan"
    assert summary(np.arange(20) > 3).endswith("True]...") and summary(np.arange(20)).startswith("i64[20] from 0 to 19")


def test_lines_of_files_and_nonsense(tmp_path: Path):
    (tmp_path / "a.py").write_text("x = 1\n    y = 2\n")
    assert source_line(f"{tmp_path}/a.py:2") == "y = 2"
    assert source_line("a.py") == source_line("") == source_line(f"{tmp_path}/a.py:99") == ""


PROGRAM = """
import eager as torch
from eager.engine.language import E
from graphc.ops import op
from graphc.ops.rules import pointwise_float

op("halved_rule", "x", impl="square", rule=pointwise_float, vjp={"x": lambda F, g, x: g * x})

def example():
    def loss(x):
        y = E.halved_rule(x)
        return y.sum()
    return loss, (torch.tensor([1.0, 2.0], requires_grad=True),)
"""


@pytest.mark.parametrize("as_json", [False, True])
def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], as_json: bool):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    modes = ["--modes", "graph,finite differences"]
    try:
        assert main(["localize", f"{path}:example", *modes, *(["--json"] * as_json)]) == 1
    finally:
        if "halved_rule" in OPS:
            OPS.remove("halved_rule")
        vars(E).pop("halved_rule", None)
    text = capsys.readouterr().out
    if as_json:
        (place,) = json.loads(text)["divergences"]
        assert (place["culprit"]["op"], place["line"]) == ("halved_rule", "y = E.halved_rule(x)")
        assert place["findings"] == [{**place["findings"][0], "mode": "finite differences", "what": "gradient of x"}]
    else:
        text = " ".join(text.split())  # lines are broken at 80 columns
        assert "gradient rule for 'x' of op 'halved_rule'" in text
        assert "program.py:11: y = E.halved_rule(x)" in text and "[1., 2.]" in text
