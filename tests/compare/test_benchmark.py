"""The benchmark's rows, its arithmetic, and its refusal to time what does not agree."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

import compare
import eager as torch
from compare.bench_report import BOTH, FORWARD, BenchReport, Timing, seconds_text
from compare.benchmark import DisagreementError, break_even


def loss(w: Any, x: Any) -> Any:
    return torch.tanh(x @ w).sum()


@pytest.fixture(scope="module")
def report() -> BenchReport:
    rng = np.random.default_rng(0)
    w = torch.from_numpy(rng.standard_normal((3, 2)).astype(np.float32)).requires_grad_()
    return compare.bench(loss, w, torch.from_numpy(rng.standard_normal((4, 3)).astype(np.float32)), min_time=0.01)


def test_every_mode_has_a_row_for_each_kind_of_call(report: BenchReport):
    assert report.agree
    rows = [(t.what, t.mode) for t in report.timings]
    assert rows == [(what, mode) for what in (FORWARD, BOTH) for mode in ("eager", "graphc", "jax")]


def test_times_are_positive_and_in_order(report: BenchReport):
    for t in report.timings:
        assert 0 < t.low <= t.median <= t.high
        assert t.first_call > 0
        assert t.calls >= 7


def test_first_call_is_split(report: BenchReport):
    assert report.timing("eager").parts == {}
    assert list(report.timing("graphc").parts) == ["capture", "passes", "jax trace", "lower", "xla"]
    assert list(report.timing("jax", BOTH).parts) == ["jax trace", "lower", "xla"]
    assert all(s > 0 for t in report.timings for s in t.parts.values())


def test_only_eager_has_no_break_even(report: BenchReport):
    assert [t.mode for t in report.timings if t.break_even is None] == ["eager", "eager"]


def test_forward_only_where_nothing_requires_grad():
    report = compare.bench(lambda x: x * 2, torch.tensor([1.0]), modes=("eager", "graphc"), min_time=0.0)
    assert [t.what for t in report.timings] == [FORWARD, FORWARD]


@pytest.mark.parametrize(
    ("first", "steady", "expected"),
    [(10.0, 1.0, 10.0), (10.0, 3.0, math.inf), (10.0, 2.0, math.inf), (1.0, 1.0, 1.0)],
    ids=["faster", "slower", "as fast", "faster from the start"],
)
def test_break_even(first: float, steady: float, expected: float):
    assert break_even(first, steady, 1.0, 2.0) == expected


def test_break_even_is_where_the_totals_cross():
    n = break_even(7.5, 0.3, 0.5, 1.0)
    assert 7.5 + 0.3 * (n - 1) <= 0.5 + 1.0 * (n - 1)
    assert 7.5 + 0.3 * (n - 2) > 0.5 + 1.0 * (n - 2)


def unstable(calls: list[int]) -> Any:
    def fn(x: Any) -> Any:
        calls.append(1)
        return x * len(calls)

    return fn


def test_functions_that_do_not_agree_are_not_timed():
    with pytest.raises(DisagreementError, match="second call"):
        compare.bench(unstable([]), torch.tensor([1.0]), min_time=0.0)


def test_force_times_them_and_says_so():
    report = compare.bench(unstable([]), torch.tensor([1.0]), modes=("eager",), min_time=0.0, force=True)
    assert not report.agree
    assert "do NOT agree" in str(report)


def test_unknown_mode_is_refused():
    with pytest.raises(ValueError, match="unknown mode 'torch'; known are eager, graphc, jax"):
        compare.bench(loss, modes=("torch",))


def test_table_and_json():
    row = Timing("graphc", FORWARD, 0.25, {"xla": 0.2}, 1.5e-5, 1e-5, 2e-5, 100, math.inf)
    report = BenchReport("f", True, (row,))
    for text in ("graphc", "250 ms", "15 us", "xla 200 ms", "never"):
        assert text in str(report)
    assert json.loads(report.to_json())["timings"][0]["break_even"] == "never"


@pytest.mark.parametrize(("seconds", "text"), [(2.0, "2 s"), (0.0123, "12.3 ms"), (4.5e-6, "4.5 us"), (3e-9, "3 ns")])
def test_seconds_text(seconds: float, text: str):
    assert seconds_text(seconds) == text


def test_tensors_are_left_as_they_were():
    x = torch.tensor([1.0, 2.0])
    compare.bench(lambda x: x.add_(1.0) * 2, x, min_time=0.0)
    assert x.tolist() == [1.0, 2.0]
