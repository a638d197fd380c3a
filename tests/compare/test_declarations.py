"""One call checks an op, or a mode, that somebody has added: sound ones pass, and each way of being wrong is named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import compare
from compare.cases.case import Case
from compare.cases.outcome import Outcome
from compare.declared.declarations import DECLARATION
from compare.declared.operations import IN_EVERY_MODE, OpsReport
from compare.judging.tolerance import Verdict
from compare.locating.culprit import Culprit
from compare.modes import modes_named
from compare.selftest.planting import declared
from graphc.lowering.overrides import OVERRIDES
from graphc.ops import OPS
from graphc.ops.rules import pointwise, pointwise_float

Declare = Callable[..., Any]
SOUND: dict[str, Any] = {"impl": "square", "rule": pointwise_float, "vjp": {"x": lambda F, g, x: g * (2 * x)}}
QUICK = {"dtypes": [], "modes": ["graph", "compiled"]}


def findings(report: OpsReport) -> set[tuple[str, str]]:
    return {(f.mode, f.what) for _, r in report.reports for f in r.bugs}


def test_sound_op(declare: Declare):
    op = declare("planted", "x", **SOUND)
    report = compare.check_op(op)
    assert report.ok, str(report)
    names = [r.name for _, r in report.reports]
    assert {"planted[3x4]", "planted[scalar]", "planted[0x4]", "planted[3x4] in int64"} <= {*names}
    assert {f"planted[3x4], {layout}" for layout in IN_EVERY_MODE} <= {*names}
    assert any(f.what.startswith("second gradient of") for _, r in report.reports for f in r.findings)


def test_name_that_is_not_registered():
    with pytest.raises(ValueError, match="no op named 'nothing'"):
        compare.check_op("nothing")


def test_kernel_that_gives_another_dtype_than_the_rule(declare: Declare):
    op = declare("planted", "x", impl=lambda xp, x: x > 0, rule=pointwise)
    assert (DECLARATION, "shape and dtype") in findings(compare.check_op(op, **QUICK))


def test_kernel_that_writes_to_its_operand(declare: Declare):
    def kernel(x: Any) -> Any:
        x *= 2
        return x * x

    op = declare("planted", "x", **{**SOUND, "numpy": kernel, "vjp": {}})
    assert (DECLARATION, "operands") in findings(compare.check_op(op, **QUICK))


def test_kernel_that_returns_its_operand(declare: Declare):
    op = declare("planted", "x", **{**SOUND, "impl": lambda xp, x: x, "vjp": {}})
    assert (DECLARATION, "memory of the result") in findings(compare.check_op(op, **QUICK))


def test_kernel_that_ignores_strides(declare: Declare):
    def kernel(x: Any) -> Any:
        return np.ndarray(x.shape, x.dtype, np.ascontiguousarray(x.base if x.base is not None else x)) ** 2

    op = declare("planted", "x", **{**SOUND, "numpy": kernel, "vjp": {}})
    report = compare.check_op(op, **QUICK)
    wrong = {r.name for _, r in report.reports if not r.ok}
    assert {f"planted[3x4], {layout}" for layout in IN_EVERY_MODE} <= wrong, str(report)
    assert (DECLARATION, "layouts") in findings(report)


def test_kernel_that_is_wrong_backwards(declare: Declare):
    def kernel(x: Any) -> Any:
        return x * x + (x.ndim > 0 and x.strides[-1] < 0)

    op = declare("planted", "x", **{**SOUND, "numpy": kernel, "vjp": {}})
    assert (DECLARATION, "layouts") in findings(compare.check_op(op, **QUICK))


def test_lowering_that_is_wrong_in_one_dtype(declare: Declare, monkeypatch: pytest.MonkeyPatch):
    op = declare("planted", "x", **SOUND)
    monkeypatch.setitem(OVERRIDES, "planted", lambda x: (x + (x.dtype == np.float64)) * x)
    report = compare.check_op(op, dtypes=[np.dtype(np.float64)], modes=["compiled"])
    assert [r.name for _, r in report.reports if not r.ok] == ["planted[3x4] in float64"], str(report)


class Off:
    """A mode that is off by a thousandth where the result has two elements or more."""

    name, wide, repeats = "off", False, False

    def run(self, case: Case) -> Outcome:
        outcome = case.observe(case.fn)
        values = {
            k: v * v.dtype.type(1.001) if v.size > 1 and v.dtype.kind == "f" else v for k, v in outcome.values.items()
        }
        return Outcome(
            outcome.structure, values, outcome.declared, outcome.requires_grad, outcome.gradients, outcome.changes,
            outcome.state, outcome.error,
        )  # fmt: skip

    def locate(self, case: Case, label: str, outcome: Outcome) -> Culprit | None:
        return None


def test_mode_that_is_off():
    report = compare.check_mode(Off(), names=["tanh", "argmax"])
    wrong = {name for name, r in report.reports if not r.ok}
    assert {"tanh", "writes in place", "state"} <= wrong
    assert "argmax" not in wrong


@pytest.mark.deep
@pytest.mark.parametrize("mode", ["strict", "xla op by op"])
def test_modes_that_are_not_run_by_default_agree(mode: str):
    assert mode not in [m.name for m in modes_named(None)]
    report = compare.check_mode(mode, names=["tanh", "matmul"])
    assert report.ok, str(report)


def test_pytorch_agrees():
    pytest.importorskip("torch")
    names = ["tanh", "matmul", "softmax", "index", "cumsum", "conv2d", "max_pool2d", "special_i1", "where", "scan"][:9]
    report = compare.check_mode("pytorch", names=names)
    assert report.ok, str(report)
    opinions = {
        name for name, r in report.reports if r.findings[0].mode == "pytorch" and "function" not in r.findings[0].detail
    }
    assert {*names, "a model", "writes in place", "state"} <= opinions


def test_pytorch_sees_a_wrong_kernel(declare: Declare):
    pytest.importorskip("torch")
    import eager as torch
    from eager.engine.language import E

    declare("hardtanh", "x", impl=lambda xp, x: xp.minimum(xp.maximum(x, -1), 1.5), rule=pointwise)
    report = compare.check(lambda x: E.hardtanh(x), torch.tensor([-2.0, 0.5, 3.0]), modes=["graph", "pytorch"])
    assert [(f.mode, f.culprit.op) for f in report.bugs if f.culprit] == [("pytorch", "hardtanh")]


def test_pytorch_is_asked_for_the_order_of_equal_elements():
    pytest.importorskip("torch")
    import eager as torch

    x = torch.tensor([1.0, 0.0] * 50)
    for fn in (lambda x: x.sort(), lambda x: x.sort(descending=True), lambda x: x.topk(3)):
        assert compare.check(fn, x, modes=["pytorch"]).verdict is Verdict.IDENTICAL
    kernel = OPS["sort"].kernel

    def last_first(x: np.ndarray, axis: int, descending: bool, first: int | None) -> list[np.ndarray]:
        return [np.flip(found, axis) for found in kernel(x, axis, not descending, first)]

    with declared(OPS["sort"], kernel=last_first):
        assert compare.check(lambda x: x.sort(), x, modes=["pytorch"]).verdict is Verdict.BUG
