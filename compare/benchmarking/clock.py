"""Timing on a machine that others use, too: rounds of all contenders in turn, compared within a round."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

ROUND = 1e-3  # seconds that one contender is timed for in one round, at least
LEAST_ROUNDS = 9


class Samples(NamedTuple):
    """Seconds: of the first call, and of a call in each round, in which `loop` calls were made one after the other."""

    first: float
    rounds: list[float]
    loop: int


def interleaved(calls: Sequence[Callable[[], Any]], min_time: float) -> list[Samples]:
    """Time `calls`, which await their results, for `min_time` seconds each, and for `LEAST_ROUNDS` rounds."""
    firsts = [_seconds(call, 1) for call in calls]
    # a compiled function takes its shortest way from the third call on
    loops = [max(1, math.ceil(ROUND / max(min(_seconds(call, 1) for _ in range(3)), 1e-9))) for call in calls]
    rounds: list[list[float]] = [[] for _ in calls]
    spent = 0.0
    while len(rounds[-1]) < LEAST_ROUNDS or spent < min_time * len(calls):
        start = len(rounds[-1])
        for k in range(len(calls)):
            turn = (k + start) % len(calls)  # nobody always runs after the same neighbour
            calls[turn]()  # not timed: takes state that another mode has written back to where this one keeps it
            taken = _seconds(calls[turn], loops[turn])
            spent += taken
            rounds[turn].append(taken / loops[turn])
    return [Samples(*each) for each in zip(firsts, rounds, loops, strict=True)]


def least(call: Callable[[], Any], min_time: float) -> float:
    """Seconds of the quickest of the calls that fill `min_time` seconds, after one that is not timed."""
    call()
    end = time.perf_counter() + min_time
    quickest = _seconds(call, 1)
    while time.perf_counter() < end:
        quickest = min(quickest, _seconds(call, 1))
    return quickest


def _seconds(call: Callable[[], Any], times: int) -> float:
    start = time.perf_counter()
    for _ in range(times):
        call()
    return time.perf_counter() - start
