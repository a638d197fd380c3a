"""The replay audit: a compiled function follows every change; one that does not is caught, and the change is named."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

import pytest

import compare
import eager as torch
from compare.cases.case import Case
from compare.checking.findings import Report
from compare.checking.perturbations import perturbations
from compare.judging.tolerance import Verdict
from graphc.capture.state import environment
from graphc.capture.state.places import Cell, DictItem, Place
from graphc.compiling.signature import Signatures


def bugs(report: Report) -> set[str]:
    """The ways of calling in which something is wrong."""
    return {f.mode for f in report.bugs}


def scaled() -> tuple[Callable[..., Any], SimpleNamespace, list[float]]:
    """A function that reaches an object, a list and a tensor by itself."""
    options = SimpleNamespace(power=2, negate=False)
    factors = [2.0, 3.0]
    weight = torch.tensor([1.0, -2.0], requires_grad=True)

    def fn(x: Any, y: Any) -> Any:
        result = x * factors[0] * weight + y * options.power
        return -result if options.negate else result

    return fn, options, factors


def arguments() -> tuple[Any, Any]:
    return torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[5.0, 6.0], [7.0, 8.0]])


def test_audit_of_a_sound_function():
    fn, options, factors = scaled()
    report = compare.audit(fn, *arguments())
    assert report.ok, str(report)
    assert set(report.modes) >= {
        "compiled", "3 calls in a row", "x, y: leading size 3 in place of 2", "x, y: leading size 5 in place of 2",
        "x, y: in another order", "y is x", "x and y overlap", "other values in weight", "weight is another tensor",
        "options.power changed", "options.negate changed", "factors[0] changed", "weight.requires_grad changed",
    }  # fmt: skip
    assert (options.power, options.negate, factors) == (2, False, [2.0, 3.0])


@pytest.mark.parametrize(("kind", "missed"), [(DictItem, "options.power changed"), (Cell, "factor changed")])
def test_guard_that_is_lost(monkeypatch: pytest.MonkeyPatch, kind: type[Place], missed: str):
    sound = environment.lines_by_words

    def without(places: Iterable[Place], *rest: Any) -> list[str]:
        return sound([p for p in places if not isinstance(p, kind)], *rest)

    monkeypatch.setattr(environment, "lines_by_words", without)
    options, factor = SimpleNamespace(power=2), 3
    report = compare.audit(lambda x: x * options.power + factor, torch.tensor(1.0))
    assert bugs(report) == {missed}, str(report)
    assert report.bugs[0].culprit is not None
    assert report.bugs[0].culprit.part == "program of an earlier call"


def test_number_that_is_no_part_of_the_signature(monkeypatch: pytest.MonkeyPatch):
    sound = Signatures.of

    def forgetful(self: Any, args: Any, kwargs: Any) -> Any:
        return sound(self, args, kwargs)._replace(signature=sound(self, args[:1], kwargs).signature)

    monkeypatch.setattr(Signatures, "of", forgetful)
    report = compare.audit(lambda x, n: x * n, torch.ones(2), True)
    assert "argument 1: False in place of True" in bugs(report)


def test_state_goes_on_from_call_to_call():
    class Counter:
        def __init__(self) -> None:
            self.count = 0

        def __call__(self, x: Any) -> Any:
            self.count += 1
            return x * self.count

    report = compare.audit(counter := Counter(), torch.tensor(1.0))
    assert report.ok, str(report)
    assert counter.count == 0


def test_numbers_among_the_arguments_are_changed():
    case = Case(lambda x, n, flag=False: x, (torch.ones(2), 3), {"flag": True}, 0)
    names = [p.name for p in perturbations(case)]
    assert "argument 1: 4 in place of 3" in names
    assert "flag: False in place of True" in names


def test_exchange_of_training_and_evaluation():
    model = torch.nn.BatchNorm1d(2)  # has an integer among its buffers, too
    report = compare.audit(model, torch.tensor([[1.0, 2.0], [3.0, 5.0]]))
    assert report.ok, str(report)
    assert "training and evaluation exchanged" in report.modes
    assert model.training


def test_refusal_is_no_bug_of_the_audit():
    def fn(x: Any, n: int) -> Any:
        return x * n if n == 3 else x * bool(x.data_ptr())

    report = compare.audit(fn, torch.ones(2), 3)
    assert report.ok, str(report)
    (refused,) = [f for f in report.findings if f.mode == "argument 1: 4 in place of 3"]
    assert refused.verdict is Verdict.NO_OPINION


def test_check_with_audit():
    report = compare.check(torch.tanh, torch.ones(2), modes=["eager"], audit=True)
    assert report.modes[:3] == ("eager", "compiled", "3 calls in a row")


def test_what_cannot_be_changed_is_left_out():
    class Fixed:
        __slots__ = ("scale",)

        def __init__(self) -> None:
            object.__setattr__(self, "scale", 2.0)

        def __setattr__(self, name: str, value: Any) -> None:
            raise AttributeError(f"{name} is fixed")

    fixed = Fixed()
    report = compare.audit(lambda x: x * fixed.scale, torch.tensor(1.0))
    assert report.ok, str(report)
    assert [f.detail for f in report.findings if f.mode == "fixed.scale changed"] == ["refused: scale is fixed"]
