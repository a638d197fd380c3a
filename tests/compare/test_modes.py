"""Modes can be added; every op of the registry means the same in each."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
import pytest

import compare
import eager as torch
import graphc
from compare import modes as registry
from compare.cases.case import Case
from compare.cases.outcome import Outcome
from compare.declared.operations import OpCall, call_of, check_ops, samples_of
from compare.judging.tolerance import Verdict
from compare.locating.culprit import Culprit
from compare.modes.sharded import mesh_for
from eager.distributed.tensor import Replicate, Shard
from graphc.ops import OPS
from graphc.ops.dtypes import FLOAT32
from graphc.passes.pipeline import default_passes
from graphc.sharding import P
from tests.depth import one_in


class Doubling:
    """A mode that gives twice what eager gives."""

    name, wide, repeats = "doubling", False, False

    def run(self, case: Case) -> Outcome:
        return case.observe(lambda *args, **kwargs: case.fn(*args, **kwargs) * 2)

    def locate(self, case: Case, label: str, outcome: Outcome) -> Culprit | None:
        return Culprit("doubling", where="here")


@pytest.fixture
def doubling() -> Iterator[None]:
    compare.register_mode(Doubling())
    yield
    del registry._modes["doubling"]


def test_registered_mode_is_run_and_judged(doubling: None):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    report = compare.check(torch.tanh, x)
    assert [(f.mode, f.what) for f in report.bugs] == [("doubling", "result"), ("doubling", "gradient of input")]
    assert "first parts at the doubling (here)" in str(report)


def test_the_optimized_graph_on_numpy():
    x = torch.tensor([[1.0, 2.0], [0.5, -1.0]], requires_grad=True)
    report = compare.check(lambda x: torch.sigmoid(x @ x).mean(), x, modes=["numpy"])
    assert report.ok and "numpy" in str(report)


class Forgetting(Doubling):
    """A mode whose results have no history, or one that eager's have not."""

    name = "forgetting"

    def __init__(self, history: bool):
        self._history = history

    def run(self, case: Case) -> Outcome:
        return case.observe(lambda *args: case.fn(*args).detach().requires_grad_(self._history))


@pytest.mark.parametrize("history", [True, False])
def test_a_history_that_only_one_mode_has_is_a_bug(history: bool):
    compare.register_mode(Forgetting(not history))
    try:
        x = torch.tensor([1.0, 2.0], requires_grad=history)
        report = compare.check(torch.tanh, x, modes=["forgetting"])
    finally:
        del registry._modes["forgetting"]
    assert "requires_grad of result" in [f.what for f in report.bugs]


def test_passes_stand_for_one_mode_each():
    names = [m.name for m in registry.modes_named(["passes"])]
    assert names == [f"pass {k}: {name}" for k, (name, _) in enumerate(default_passes(), 1)]


# one op of each kind; `python -m compare ops` runs them all
@pytest.mark.parametrize(
    "name", one_in(2, ["mul", "exp2", "index", "where", "matmul", "softmax", "conv2d", "cat", "full", "argmax"])
)
def test_op_means_the_same_in_every_mode(name: str):
    report = check_ops([name])
    assert report.ok, str(report)


def _together(calls: Sequence[OpCall]) -> Callable[..., tuple[Any, ...]]:
    """The calls one after the other, as one program: XLA compiles once."""

    functions = [(call.function, len(call.operands)) for call in calls]

    def program(*operands: Any) -> tuple[Any, ...]:
        left = iter(operands)
        return tuple(function(*islice(left, count)) for function, count in functions)

    return program


EVERY = [name for name, op in OPS.items() if not op.structured]


# tests/samples and tests/lowering compile each op, too
@pytest.mark.parametrize("name", one_in(24, EVERY))
def test_every_op_means_the_same_compiled(name: str, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("compare.cases.call.SINGLY", 0)  # the samples have no inputs in common
    calls = [call_of(OPS[name], sample, rng, FLOAT32) for sample in samples_of(OPS[name])]
    report = compare.check(_together(calls), *(t for c in calls for t in c.operands), modes=["graph", "compiled"])
    assert report.ok, f"{[c.function.__name__ for c in calls]}\n{report}"


def test_ops_report_names_the_worst_of_an_op(monkeypatch: pytest.MonkeyPatch):
    def check_with_bug(op: Any, sample: Any, **rest: Any) -> Any:
        return compare.check(lambda x: x * bool(x.data_ptr()), torch.tensor([1.0]), modes=["graph"])

    monkeypatch.setattr("compare.declared.operations.check_sample", check_with_bug)
    report = check_ops(["tanh"])
    assert not report.ok
    assert report.rows()["tanh"]["graph"] is Verdict.UNSUPPORTED


@pytest.mark.parametrize(
    ("rows", "placements", "axes"),
    [
        (8, P(("rows", "pipe"), "cols"), {"rows": 2, "pipe": 2, "cols": 2}),
        (3, P("data"), {"data": 1}),
        (4, [Replicate(), Replicate(), Shard(0)], {"axis 0": 2, "axis 1": 2, "axis 2": 2}),
        (4, P("model"), {"data": 2, "model": 2}),
    ],
)
def test_meshes_have_the_axes_that_a_program_names(rows: int, placements: Any, axes: dict[str, int]):
    def f(x: Any) -> Any:
        return graphc.shard(x * 2, placements).square().mean()

    x = torch.randn(rows, 4, requires_grad=True)
    assert mesh_for(graphc.trace(f, x)).sizes == axes
    report = compare.check(f, x, modes=["parts"])
    assert report.ok and report.verdict is not Verdict.NO_OPINION, str(report)
