"""Campaigns outlive programs that hang, take all memory, or bring their process down; each is a finding of its own."""

from __future__ import annotations

import ctypes
import faulthandler
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compare.command_line import main
from compare.fuzzing import batches, fuzz, generate
from compare.fuzzing.batches import Result, Settings, checked
from compare.fuzzing.program import Program
from compare.fuzzing.seeds import seed_of_code
from compare.fuzzing.workers import HANG, MEMORY, MIB, PROCESS, Ended, Limits, Worker, usage
from tests.compare.test_fuzz import KNOWN

HANGS, GROWS, CRASHES, OVERFLOWS, UNMADE = 501, 503, 504, 508, 511


def grow() -> None:
    held: list[Any] = []
    while True:
        held.append(np.ones(1 << 20))


def hostile(settings: Settings, numbers: Sequence[int]) -> Result:
    """Programs that do what no `except` catches."""
    if HANGS in numbers:
        while True:
            pass
    if GROWS in numbers:
        grow()
    if CRASHES in numbers:
        ctypes.string_at(0)
    if OVERFLOWS in numbers:
        faulthandler._stack_overflow()  # type: ignore[attr-defined]  # as XLA's recursion does
    return checked(settings, [n for n in numbers if n != UNMADE])


def never_made(number: int, *args: Any) -> Program:
    while number == UNMADE:
        time.sleep(1)
    return generate(number, *args)


@pytest.mark.deep
@pytest.mark.parametrize("workers", [1, 2])
def test_a_campaign_with_all_of_them_at_once(workers: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setattr(batches, "checked", hostile)
    report = fuzz(
        12, seed=500, modes=["graph"], size=2, batch=3, without=KNOWN, workers=workers, corpus=tmp_path,
        time_limit=20, memory_limit=1500,
    )  # fmt: skip
    found = {f.seed: [finding.what for finding in f.report.findings] for f in report.failures}
    assert found == {HANGS: [HANG], GROWS: [MEMORY], CRASHES: [PROCESS], OVERFLOWS: [PROCESS]}
    assert report.verdicts.total() == report.count == 11  # UNMADE is left out above
    assert not report.crashes and not report.ok
    assert all((tmp_path / f"{seed}.py").exists() for seed in found)
    assert "def program501(" in str(report) and "SIGSEGV" in str(report)


def spin(seconds: float) -> float:
    while time.process_time() < seconds:
        pass
    return seconds


def answer(value: int) -> int:
    return value


def fail() -> None:
    raise ZeroDivisionError("planted")


@pytest.mark.parametrize(
    ("fn", "args", "kind"),
    [
        (ctypes.string_at, (0,), PROCESS),
        pytest.param(spin, (1e9,), HANG, marks=pytest.mark.deep),
        pytest.param(grow, (), MEMORY, marks=pytest.mark.deep),
    ],
)
def test_a_worker_goes_on_after_each_end(fn: Any, args: Any, kind: str):
    worker = Worker(Limits(seconds=1.0 if kind == HANG else 100.0, memory=1500 * MIB), "compare.fuzzing.batches")
    try:
        assert worker.call(answer, 3) == 3
        with pytest.raises(Ended) as end:
            worker.call(fn, *args)
        assert end.value.kind == kind, str(end.value)
        assert worker.call(answer, 4) == 4
        with pytest.raises(RuntimeError, match="ZeroDivisionError: planted"):
            worker.call(fail)
    finally:
        worker.end()


@pytest.mark.deep
def test_who_waits_for_ever_hangs_as_well(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("compare.fuzzing.workers.IDLE", 1.0)
    worker = Worker(Limits(seconds=0.5), "compare.fuzzing.batches")
    try:
        with pytest.raises(Ended, match="still waiting"):
            worker.call(time.sleep, 10_000)
    finally:
        worker.end()


@pytest.mark.deep
def test_a_program_that_cannot_be_made_is_a_failure(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(batches, "generate", never_made)
    monkeypatch.setattr("compare.fuzzing.workers.IDLE", 1.0)
    worker = Worker(Limits(seconds=1.0), "compare.fuzzing.batches")
    try:
        found = batches._one(worker, Settings(("eager", "graph"), 2, KNOWN), UNMADE)
    finally:
        worker.end()
    assert [f.report.findings[0].what for f in found.failures] == [HANG]
    assert found.failures[0].program.source.startswith(f"def program{UNMADE}(")


def test_what_a_process_uses_is_known():
    used = usage(os.getpid())
    assert used is not None and used.seconds > 0 and used.memory > 10 * MIB
    assert usage(2**22 + 1) is None


def test_limits_that_make_no_sense():
    for wrong in ({"time_limit": 0}, {"memory_limit": -1}, {"time_limit": float("nan")}):
        with pytest.raises(ValueError, match="limit above 0"):
            fuzz(1, **wrong)


def test_clean_campaigns_begin_where_the_code_says(capsys: pytest.CaptureFixture[str]):
    first = seed_of_code()
    assert first == seed_of_code.__wrapped__() and fuzz(0).first == first
    assert main(["fuzz", "--count", "0", "--quiet"]) == 0
    assert f"from seed {first}" in capsys.readouterr().out


@pytest.mark.deep
def test_programs_of_this_state_of_the_code():
    """Other programs after each change."""
    report = fuzz(48, without=KNOWN)
    assert report.ok and not report.failures, str(report)
