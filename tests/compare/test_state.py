"""Python state: what a call changes is compared in every mode, and is put back after each run."""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import compare
import eager as torch
from compare.cases.case import Case
from compare.judging.tolerance import Verdict
from compare.modes import COMPILED, EAGER
from graphc.capture.state.places import Change

MODES = ["eager", "graph", "compiled"]


@dataclass
class Result:
    total: Any
    note: str


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(2, 2)
        self.calls = 0
        self.mean = torch.zeros(2)
        self.history: list[Any] = []
        self.last: Any = None
        self.table = {"rows": 0}

    def forward(self, x: Any) -> Any:
        self.calls += 1
        self.table["rows"] = len(x)
        y = self.linear(x) * self.calls
        self.mean = 0.9 * self.mean + 0.1 * y.detach().mean(0)
        self.history.append(y.detach().sum().item())
        self.last = Result(y.detach().sum(), "seen")
        return y


def labels(report: Any, mode: str) -> set[str]:
    return {f.what for f in report.findings if f.mode == mode}


def test_state_of_a_model_is_compared_and_put_back():
    model = Model()
    before, linear = model.mean, model.linear
    report = compare.check(model, torch.ones(3, 2), modes=MODES)
    assert report.ok, str(report)
    for mode in ("graph", "compiled"):
        assert labels(report, mode) >= {
            "self.calls after the call", "self.table['rows'] after the call", "self.mean after the call",
            "self.history after the call.0", "self.last after the call.total",
        }  # fmt: skip
    assert (model.calls, model.history, model.last, model.table) == (0, [], None, {"rows": 0})
    assert model.mean is before
    assert model.linear is linear


def test_number_computed_from_tensors_is_judged_by_its_rounding():
    weights = torch.linspace(-1, 1, 10_001)
    kept: dict[str, float] = {}

    def fn(x: Any) -> Any:
        kept["sum"] = (torch.sin(x) * weights).sum().item()
        return x

    report = compare.check(fn, torch.linspace(0, 7, 10_001), modes=MODES)
    (found,) = [f for f in report.findings if f.mode == "compiled" and f.what.startswith("kept['sum']")]
    assert found.verdict in (Verdict.IDENTICAL, Verdict.WITHIN_ROUNDING), str(found)


def test_containers_among_the_arguments():
    def fn(x: Any, bag: list[Any], table: Any) -> Any:
        bag.append(x * 2)
        table["n"] = x.sum()
        return x

    bag: list[Any] = []
    table: Any = OrderedDict()
    report = compare.check(fn, torch.ones(2), bag, table, modes=MODES)
    assert report.ok, str(report)
    assert labels(report, "compiled") >= {"bag after the call.0", "table after the call.n"}
    assert not bag
    assert not table


def test_globals_deque_and_deletion():
    cache: Any = deque(maxlen=2)
    options = {"warm": True}

    def fn(x: Any) -> Any:
        nonlocal cache
        cache.append(x.sum())
        if "warm" in options:
            del options["warm"]
            return x * 2
        return x * 3

    report = compare.check(fn, torch.ones(2), modes=MODES)
    assert report.ok, str(report)
    assert options == {"warm": True}
    assert not cache


def test_change_that_is_lost(monkeypatch: pytest.MonkeyPatch):
    sound = Change.carry_out

    def forgets(self: Change, value: Any, given: Any) -> None:
        if "mean" not in self.path:
            sound(self, value, given)

    monkeypatch.setattr(Change, "carry_out", forgets)
    report = compare.check(Model(), torch.ones(3, 2), modes=["compiled"])
    assert [f.what for f in report.bugs] == ["self.mean after the call"]
    assert "no change" in report.bugs[0].detail


def test_change_with_a_wrong_value(monkeypatch: pytest.MonkeyPatch):
    sound = Change.carry_out

    def doubles(self: Change, value: Any, given: Any) -> None:
        sound(self, value * 2 if self.path == "self.mean" else value, given)

    case = Case(Model(), (torch.ones(3, 2),), {}, 0)
    monkeypatch.setattr(Change, "carry_out", doubles)
    right, wrong = EAGER.run(case), COMPILED.run(case)
    label = "self.mean after the call"
    assert np.allclose(wrong.changes[label], 2 * right.changes[label])


def test_python_values_that_are_added_once_are_a_convention():
    log: list[str] = []

    def fn(x: Any) -> Any:
        log.append("called")
        return x + 1

    report = compare.check(fn, torch.ones(2))
    assert report.verdict is Verdict.CONVENTION
    (found,) = [f for f in report.findings if f.verdict is Verdict.CONVENTION]
    assert (found.mode, found.what) == ("compiled", "second call: log after the call")
    assert not log


def test_optimizer_step_changes_what_eager_changes():
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    losses: list[Any] = []

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = (model(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        return loss

    report = compare.check(step, torch.ones(3, 2), modes=MODES)
    assert report.ok, str(report)
    assert "losses after the call.0" in labels(report, "compiled")
    assert not losses


def test_entries_that_are_made_moved_and_kept():
    kept, made = {1: torch.ones(3), 2: torch.zeros(3)}, {}

    def moved(x: Any) -> Any:
        value = kept.pop(1, None)
        kept[3] = x.detach()
        return x + kept[2] + (0 if value is None else value)

    def remembered(x: Any) -> Any:
        if "mean" not in made:
            made["mean"] = x.detach().mean()
        return x - made["mean"]

    def updated(x: Any) -> Any:
        kept.update({2: kept[2] + x.detach(), 4: x.detach().sum()})
        return x * kept[2]

    for fn in (moved, remembered, updated):
        report = compare.check(fn, torch.tensor([0.5, -1.0, 2.0], requires_grad=True), modes=MODES)
        assert report.ok, str(report)
