"""Timing that holds on a shared machine: one core, interleaved rounds, medians, ratios within a round."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

WARM = 8  # calls of each before any is counted


def one_core() -> None:
    """Use one core and one thread. Call this before NumPy, JAX or PyTorch is imported."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        os.environ[name] = "1"
    os.environ["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + " --xla_cpu_multi_thread_eigen=false"
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


class Timing(NamedTuple):
    """Seconds a call, by name, and the ratio of each to the first: medians over rounds; and of the quickest round."""

    seconds: dict[str, float]
    ratio: dict[str, float]
    least: dict[str, float]


def interleaved(
    calls: dict[str, Callable[[], object]],
    rounds: int = 25,
    block: float = 0.02,
    clock: Callable[[], float] = time.perf_counter,
) -> Timing:
    """Time `calls` in turn, round after round; each block repeats a call for about `block` seconds.

    On one core, `time.process_time` is a clock that does not count what other processes take.
    """
    repeats = {}
    for name, call in calls.items():
        took = min(_seconds(call, clock) for _ in range(WARM))  # the first calls may still prepare later ones
        repeats[name] = max(1, int(block / max(took, 1e-7)))
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            start = clock()
            for _ in range(repeats[name]):
                call()
            samples[name].append((clock() - start) / repeats[name])
    first = samples[next(iter(samples))]
    return Timing(
        {name: statistics.median(s) for name, s in samples.items()},
        {name: statistics.median(a / b for a, b in zip(s, first, strict=True)) for name, s in samples.items()},
        {name: min(s) for name, s in samples.items()},
    )


def _seconds(call: Callable[[], object], clock: Callable[[], float]) -> float:
    start = clock()
    call()
    return clock() - start


def numbers_of(script: str, *arguments: str, **environment: str) -> list[float]:
    """The numbers in the last line that `script` prints in a process of its own, with these variables set as well."""
    run = subprocess.run(
        [sys.executable, script, *arguments],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return [float(word) for word in run.stdout.splitlines()[-1].split()]


def seconds_of(script: str, *arguments: str, **environment: str) -> float:
    """The last of them, which is in seconds."""
    return numbers_of(script, *arguments, **environment)[-1]


def row(what: str, measured: str, goal: str) -> None:
    """Print one figure beside its goal."""
    print(f"{what:<58} {measured:<48} {goal}", flush=True)
