"""`torch.utils.benchmark`: texts as PyTorch writes them for the same times; what is measured."""

from __future__ import annotations

import itertools

import pytest

import eager as torch
import graphc
from eager.utils import benchmark
from eager.utils.benchmark.timer import AWAIT, awaited
from tests.oracle import asked_of_torch

TIMES = {
    "one": [2.5e-3],
    "three": [1e-6, 2e-6, 3e-6],
    "steady": [1.23456e-4, 1.23457e-4, 1.23458e-4, 1.23459e-4, 1.2346e-4],
    "varying": [1e-3, 1.1e-3, 1.3e-3, 1.4e-3, 2e-3],
    "wild": [1e-9, 4e-9, 9e-9, 3e-8],
    "seconds": [3.5, 3.6, 3.7, 3.6, 3.5],
}
SPECS = {
    "plain": {"stmt": "x + y", "setup": "pass"},
    "labels": {"stmt": "f(x)", "setup": "x = 1", "label": "add", "sub_label": "4x8", "description": "ours"},
    "long": {"stmt": "a = 1\nb = 2", "setup": "c = 3\nd = 4", "sub_label": "two", "num_threads": 2, "env": "fork"},
}


def measurement(package, times, spec, number=10):
    from importlib import import_module

    made = import_module(f"{package}.utils.benchmark")
    spec_of = made.TaskSpec
    return made.Measurement(number, [t * number for t in TIMES[times]], spec_of(**SPECS[spec]))


def lines(text):
    """A text without the address of an object, or the package."""
    return [line.rstrip() for line in str(text).splitlines() if " object at 0x" not in line]


@asked_of_torch(("times", "spec"), list(itertools.product(TIMES, SPECS)))
def test_measurements_as_pytorch_shows_them(times, spec):
    ours, theirs = (measurement(package, times, spec) for package in ("eager", "torch"))
    assert lines(ours) == lines(theirs)
    assert ours.significant_figures == theirs.significant_figures
    assert (ours.title, ours.as_row_name, ours.has_warnings) == (theirs.title, theirs.as_row_name, theirs.has_warnings)
    for name in ("median", "mean", "iqr"):
        assert getattr(ours, name) == pytest.approx(getattr(theirs, name))


@asked_of_torch("settings", ["", "trim_significant_figures", "colorize", "colorize rowwise", "highlight_warnings"])
@asked_of_torch("envs", [False, True])
def test_tables_as_pytorch_shows_them(settings, envs):
    def table(package):
        from importlib import import_module

        made, results = import_module(f"{package}.utils.benchmark"), []
        cells = itertools.product(("add", "mul"), ("small", "large"), ("ours", "theirs", "a third"), (1, 4))
        for i, (label, sub, description, threads) in enumerate(cells):
            if i in (3, 8):
                continue
            env = f"branch {'long' * (i % 2)}" if envs else None
            spec = made.TaskSpec(stmt="f(x)", setup="pass", label=label, sub_label=sub, description=description,
                                 num_threads=threads, env=env)  # fmt: skip
            times = [t * (i % 5 + 1) ** 2 for t in TIMES["varying" if i % 2 else "steady"]]
            results += [made.Measurement(1, times[k:], spec) for k in (0, 1)]
        compare = made.Compare(results)
        name, *arguments = settings.split() or [""]
        if name:
            getattr(compare, name)(*(bool(a) for a in arguments))
        return [line.rstrip() for line in str(compare).splitlines()]

    assert table("eager") == table("torch")


def test_a_timer_runs_the_statement_as_often_as_it_says():
    runs = []
    timer = benchmark.Timer("runs.append(torch.ones(1))", globals={"runs": runs}, num_threads=1)
    measured = timer.timeit(50)
    assert (measured.number_per_run, len(measured.raw_times), len(runs)) == (50, 1, 52)
    blocks = []
    measured = timer.blocked_autorange(callback=lambda number, seconds: blocks.append(number), min_run_time=1e-3)
    assert len(measured.raw_times) == len(blocks)
    assert set(blocks) == {measured.number_per_run}
    assert timer.adaptive_autorange(10, min_run_time=1e-4, max_run_time=1e-2).median > 0
    assert benchmark.Measurement.merge([measured, measured])[0].times == measured.times * 2


def test_results_of_programs_are_awaited():
    assert awaited("f(x)") == f"{AWAIT}(f(x))"
    assert awaited("y = f(x)\nz = y") == f"y = f(x)\nz = y\n{AWAIT}(z)"
    assert awaited("if x:\n    f(x)") == "if x:\n    f(x)"
    waits = []

    class Array:
        def block_until_ready(self):
            waits.append(1)

    from eager.core.stand_ins import Deferred
    from eager.core.tensor import Tensor

    late = Tensor._wrap(Deferred(Array(), (1,), torch.ones(1).numpy().dtype))
    benchmark.Timer("[late, (late, 3)]", globals={"late": late}).timeit(2)
    assert len(waits) == 2 * (2 + 2)
    step = graphc.compile(lambda x: x @ x)
    assert benchmark.Timer("f(x)", globals={"f": step, "x": torch.ones(4, 4)}).timeit(3).median > 0


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"stmt": 3}, ValueError, "only a `str` stmt"),
        ({"language": "rust"}, ValueError, "Invalid language `rust`"),
        ({"language": "c++"}, NotImplementedError, "measures Python"),
        ({"global_setup": "x"}, ValueError, "C\\+\\+ only, got `x`"),
    ],
)
def test_errors(arguments, error, message):
    with pytest.raises(error, match=message):
        benchmark.Timer(**arguments)
    with pytest.raises(ValueError, match="Expected an instance of `Measurement`"):
        benchmark.Compare([1])
