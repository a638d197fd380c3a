"""The benchmark's rows, its statistics, its memory and roofline, and its refusal to time what does not agree."""

from __future__ import annotations

import importlib
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import compare
import eager as torch
import graphc
from compare.benchmarking import BOTH, FORWARD, BenchReport, DisagreementError, ScalingReport, Timing
from compare.benchmarking.clock import LEAST_ROUNDS, Samples, interleaved
from compare.benchmarking.roofline import Roofline, roofline
from compare.benchmarking.statistics import Interval, break_even, break_even_interval, median_interval
from compare.command_line import main
from compare.environment import environment
from graphc.display import bytes_text, seconds_text

bench_module = importlib.import_module("compare.benchmarking.bench")
roofline_module = importlib.import_module("compare.benchmarking.roofline")

ROWS = ("eager", "compiled", "strict", "jax.jit")


def loss(w: Any, x: Any) -> Any:
    return torch.tanh(x @ w).sum()


@pytest.fixture(scope="module")
def report() -> BenchReport:
    rng = np.random.default_rng(0)
    w = torch.from_numpy(rng.standard_normal((3, 2)).astype(np.float32)).requires_grad_()
    return compare.bench(loss, w, torch.from_numpy(rng.standard_normal((4, 3)).astype(np.float32)), min_time=0.01)


def test_every_mode_has_a_row_for_each_kind_of_call(report: BenchReport):
    assert report.agree
    assert [(t.what, t.mode) for t in report.timings] == [(what, mode) for what in (FORWARD, BOTH) for mode in ROWS]


def test_times_are_positive_and_in_order(report: BenchReport):
    for t in report.timings:
        assert 0 < t.steady.low <= t.steady.median <= t.steady.high
        assert t.first_call > 0
        assert t.calls >= LEAST_ROUNDS


def test_first_call_is_split(report: BenchReport):
    assert report.timing("eager").parts == {}
    for mode in ("compiled", "strict"):
        assert list(report.timing(mode).parts) == ["capture", "passes", "jax trace", "lower", "xla"]
    assert list(report.timing("jax.jit", BOTH).parts) == ["jax trace", "lower", "xla"]
    assert all(s > 0 for t in report.timings for s in t.parts.values())


def test_only_the_first_row_is_compared_with_nothing(report: BenchReport):
    for t in report.timings:
        assert (t.ratio is None) == (t.break_even is None) == (t.mode == "eager")


def test_ratios_are_taken_round_by_round(monkeypatch: pytest.MonkeyPatch):
    times = [Samples(9.0, [2.0, 9.0, 4.0], 5), Samples(19.0, [1.0, 3.0, 4.0], 5)]
    monkeypatch.setattr(bench_module, "interleaved", lambda calls, min_time: times)
    report = compare.bench(lambda x: x * 2, torch.tensor([1.0]), modes=("eager", "compiled"))
    eager, compiled = report.timings
    assert (eager.steady.median, compiled.steady.median, compiled.calls) == (4.0, 3.0, 15)
    assert compiled.ratio == Interval(2.0, 1.0, 3.0)  # not 4 / 3
    assert compiled.break_even == Interval(11.0, 3.0, math.inf)  # 10 seconds more at first, 1, 6 and 0 saved by a call


def test_json_round_trip(report: BenchReport):
    assert BenchReport.from_json(report.to_json()) == report
    never = replace(report.timings[1], break_even=Interval(math.inf, 12.0, math.inf))
    changed = replace(report, timings=(report.timings[0], never))
    assert json.loads(changed.to_json())["timings"][1]["break_even"] == {
        "median": "never",
        "low": 12.0,
        "high": "never",
    }
    assert BenchReport.from_json(changed.to_json()) == changed


def test_json_has_units_and_where_it_ran(report: BenchReport):
    values = json.loads(report.to_json())
    assert set(values["timings"][0]) - {"mode", "what", "calls"} <= set(values["units"])
    assert values["environment"]["numpy"] == np.__version__


def test_the_environment_names_no_paths(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("XLA_FLAGS", "--xla_a=1 --xla_dump_to=/some/folder --xla_b=2")
    assert environment()["XLA_FLAGS"] == "--xla_a=1 --xla_dump_to=(a path) --xla_b=2"


def test_the_table_is_plain_text(report: BenchReport):
    lines = str(report).splitlines()
    assert lines[0].startswith("loss: compiled is ")
    assert lines[1].startswith("call")
    assert "speedup over eager" in lines[1]
    assert str(report).isascii()


def test_forward_only_where_nothing_requires_grad():
    report = compare.bench(lambda x: x * 2, torch.tensor([1.0]), modes=("eager", "compiled"), min_time=0.0)
    assert [t.what for t in report.timings] == [FORWARD, FORWARD]


def test_tensors_are_left_as_they_were():
    x = torch.tensor([1.0, 2.0])
    compare.bench(lambda x: x.add_(1.0) * 2, x, modes=("eager", "compiled"), min_time=0.0)
    assert x.tolist() == [1.0, 2.0]


def test_unknown_mode_is_refused():
    with pytest.raises(ValueError, match=r"unknown mode 'torch'; known are eager, compiled, strict, jax.jit"):
        compare.bench(loss, modes=("torch",))


# --- what does not agree


def unstable(x: Any) -> Any:
    return x + float(np.random.default_rng().random())


def test_functions_that_do_not_agree_are_not_timed():
    with pytest.raises(DisagreementError, match="the modes do not agree"):
        compare.bench(unstable, torch.tensor([1.0]), min_time=0.0)


def test_force_times_them_and_says_so():
    report = compare.bench(unstable, torch.tensor([1.0]), modes=("eager",), min_time=0.0, force=True)
    assert not report.agree
    assert "do NOT agree" in str(report)


# --- statistics


@pytest.mark.parametrize(
    ("n", "rank"), [(5, 1), (6, 1), (8, 1), (9, 2), (20, 6), (40, 14)], ids=lambda v: str(v)
)  # from the tables of the sign test
def test_the_interval_is_between_the_right_samples(n: int, rank: int):
    interval = median_interval(list(range(n, 0, -1)))
    assert (interval.low, interval.high) == (rank, n + 1 - rank)
    assert interval.median == (n + 1) / 2


@pytest.mark.deep
@pytest.mark.parametrize("n", [9, 31])
def test_the_interval_has_the_median_in_it_as_often_as_it_says(n: int):
    samples = np.random.default_rng(0).lognormal(size=(2000, n))  # median 1, mean 1.65
    intervals = [median_interval(list(row)) for row in samples]
    covered = np.mean([i.low <= 1.0 <= i.high for i in intervals])
    assert 0.94 < covered < 0.985


def test_no_samples_have_no_median():
    with pytest.raises(ValueError, match="at least one"):
        median_interval([])


@pytest.mark.parametrize(
    ("extra", "saving", "expected"),
    [(9.0, 1.0, 10.0), (9.0, -1.0, math.inf), (9.0, 0.0, math.inf), (0.0, 1.0, 1.0)],
    ids=["faster", "slower", "as fast", "faster from the start"],
)
def test_break_even(extra: float, saving: float, expected: float):
    assert break_even(extra, saving) == expected


def test_break_even_is_where_the_totals_cross():
    n = break_even(7.0, 0.7)
    assert 7.5 + 0.3 * (n - 1) <= 0.5 + 1.0 * (n - 1)
    assert 7.5 + 0.3 * (n - 2) > 0.5 + 1.0 * (n - 2)


def test_break_even_is_uncertain_where_the_saving_is():
    assert break_even_interval(10.0, [1.0, 2.0, -1.0]) == Interval(11.0, 6.0, math.inf)


def test_rounds_are_interleaved_and_nobody_always_comes_first():
    order: list[str] = []
    samples = interleaved([lambda: order.append("a"), lambda: order.append("b")], 0.0)
    assert [len(s.rounds) for s in samples] == [LEAST_ROUNDS, LEAST_ROUNDS]
    blocks = [name for k, name in enumerate(order) if k == 0 or order[k - 1] != name]
    assert len(blocks) > LEAST_ROUNDS  # ab ba ab ...: neighbours of two rounds merge


# --- memory and roofline


def test_eager_memory_is_what_numpy_allocates():
    x = torch.zeros(1000, 1000)
    report = compare.bench(lambda x: (x + 1.0).sum(), x, modes=("eager", "compiled"), min_time=0.0)
    eager, compiled = report.timing("eager").memory, report.timing("compiled").memory
    assert eager is not None and 4.0e6 <= eager < 4.1e6
    assert compiled is not None and compiled < 1e5  # XLA adds what it makes


def test_the_work_of_a_product():
    graph = graphc.trace(lambda a, b: a @ b, torch.zeros(200, 300), torch.zeros(300, 100))
    found = roofline(graph)
    assert found is not None
    assert found.operations == 2 * 200 * 300 * 100
    assert found.bytes == 4 * (200 * 300 + 300 * 100 + 200 * 100)


def test_a_roofline_is_the_slower_of_two():
    assert Roofline(1e9, 10, 1e9, 1e9).bound == "arithmetic"
    memory = Roofline(10, 10**9, 1e9, 5e8)
    assert (memory.bound, memory.seconds) == ("memory", 2.0)


def test_no_roofline_where_work_depends_on_values():
    graph = graphc.trace(lambda x: graphc.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, x), torch.zeros(3))
    assert roofline(graph) is None


def test_shares_of_the_peak(monkeypatch: pytest.MonkeyPatch):
    a = torch.randn(100, 100)
    monkeypatch.setattr(roofline_module, "peak_bytes", lambda count: 1e18)
    for peak in (1e15, 1.0):
        monkeypatch.setattr(roofline_module, "peak_operations", lambda dtype, peak=peak: peak)
        report = compare.bench(lambda a: a @ a, a, modes=("eager", "jax.jit"), min_time=0.01)
        found: Any = [t.share_of_peak for t in report.timings]
        assert max(found) == pytest.approx(1) if peak == 1 else all(0 < s < 1 for s in found), found
        best = report.rooflines[FORWARD]
        assert found == [pytest.approx(2e6 / best.operations_per_second / t.steady.median) for t in report.timings]


def test_peaks_are_measured():
    peak = roofline_module.peak_operations("float32")
    assert 1e7 < peak < 1e16
    assert roofline_module.peak_operations("float32") is peak
    assert 1e7 < roofline_module.peak_bytes(1 << 16) < 1e16


# --- sizes, plots, command line


def made(size: int) -> tuple[Any, tuple[Any, ...]]:
    return loss, (torch.ones(size, size), torch.ones(size, size))


def _timed(mode: str, seconds: float) -> Timing:
    return Timing(mode, FORWARD, 1.0, {}, Interval(seconds, seconds, seconds), 9)


def test_exponent_and_crossover():
    def at(size: int) -> BenchReport:
        return BenchReport("f", True, (_timed("eager", size**3 * 1e-9), _timed("compiled", 1e-5 + size**2 * 1e-9)))

    report = ScalingReport({size: at(size) for size in (1, 10, 100, 1000)})
    assert report.exponent("eager") == pytest.approx(3.0)
    assert report.exponent("compiled") < 2.01
    assert report.crossover("compiled") == 100
    assert ScalingReport({1: at(1)}).crossover("compiled") is None
    assert "never" in str(ScalingReport({1: at(1)}))


@pytest.mark.parametrize(("low", "high", "line", "advice"), [
    (2.0, 9.0, "compiled is 6x forward", "compiling pays after 40 calls"),
    (0.5, 0.9, "compiled is 0.7x forward", "compiling does not pay, however often"),
    (0.9, 1.1, "compiled is 0.9x to 1.1x forward", "take about the same time"),
    (0.6, 9.0, "compiled is 0.6x to 9x forward", "these timings do not tell"),
])  # fmt: skip
def test_a_speed_is_named_only_where_it_is_known(low: float, high: float, line: str, advice: str):
    ratio = Interval({2.0: 6.0, 0.5: 0.7}.get(low, low), low, high)
    timing = replace(_timed("compiled", 1.0), ratio=ratio, break_even=Interval(40.0, 40.0, 40.0))
    report = BenchReport("f", True, (_timed("eager", 1.0), timing))
    assert line in repr(report) and advice in report.advice()[0]


def test_scaling_has_a_report_for_each_size():
    report = compare.scaling(made, (16, 4), modes=("eager", "compiled"), min_time=0.0)
    assert list(report.reports) == [4, 16]
    assert [r["size"] for r in json.loads(report.to_json())["sizes"]] == [4, 16]
    with pytest.raises(ValueError, match="at least one size"):
        compare.scaling(made, ())


def test_plots_are_written(report: BenchReport, tmp_path: Path):
    pytest.importorskip("matplotlib")
    figure = report.plot(str(tmp_path / "times.svg"))
    assert (tmp_path / "times.svg").read_text(encoding="utf-8").count("<svg") == 1
    labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert labels == [f"{t.mode}\n{t.what}" for t in report.timings]
    ScalingReport({1: report, 2: report}).plot(str(tmp_path / "sizes.png"))
    assert (tmp_path / "sizes.png").stat().st_size > 1000


def test_command_line_over_sizes(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    program = tmp_path / "program.py"
    program.write_text("import eager as torch\ndef make(size):\n    return torch.exp, (torch.ones(size),)\n")
    options = ["--sizes", "2,4", "--min-time", "0", "--modes", "eager,compiled"]
    assert main(["bench", f"{program}:make", *options, "--json"]) == 0
    assert [r["size"] for r in json.loads(capsys.readouterr().out)["sizes"]] == [2, 4]


@pytest.mark.parametrize(("seconds", "text"), [(2.0, "2 s"), (0.0123, "12.3 ms"), (4.5e-6, "4.5 us"), (3e-9, "3 ns")])
def test_seconds_text(seconds: float, text: str):
    assert seconds_text(seconds) == text


@pytest.mark.parametrize(("count", "text"), [(12, "12 B"), (1536, "1.54 kB"), (4e6, "4 MB"), (2.5e9, "2.5 GB")])
def test_bytes_text(count: float, text: str):
    assert bytes_text(count) == text


def test_a_row_that_cannot_run_the_function_says_so():
    def f(w):
        w.detach().mul_(0.5)
        return (w * w).sum()

    w = torch.ones(3, requires_grad=True)
    with pytest.raises(
        ValueError, match=r"'jax.jit' has no gradients for leaves that the program writes. Remedy: modes="
    ):
        compare.bench(f, w, min_time=0.001)
    assert compare.bench(f, w, modes=["eager", "compiled"], min_time=0.001).agree
