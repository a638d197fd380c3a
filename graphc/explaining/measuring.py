"""How long a region took as it was written, and takes now: both alone, in turns, compiled for this machine."""

from __future__ import annotations

import statistics
from typing import Any, NamedTuple

import numpy as np

from graphc.explaining.changes import Change, part_of
from graphc.ir import Graph
from graphc.lowering import lower
from graphc.lowering.machine import machine, seconds_of
from graphc.ops.aval import Aval

TURNS = 5


class Seconds(NamedTuple):
    """Of a region before and after; what was predicted (graphc.lowering.machine), and the medians of what was
    measured, those with the time that a call takes by itself."""

    predicted: tuple[float, float]
    measured: tuple[float, float]


def measure(before: Graph, after: Graph, change: Change) -> Seconds | None:
    """The seconds of a change; None where there is nothing to run on one side. Inputs are random numbers."""
    parts = part_of(before, change.gone, change.roots[0]), part_of(after, change.come, change.roots[1])
    if parts[0] is None or parts[1] is None:
        return None
    runs = [_prepared(part) for part in parts if part is not None]
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(TURNS):
        for run, own in zip(runs, times, strict=True):
            own.append(seconds_of(run, rounds=3))
    figures, call = machine(), machine().call
    one, other = (figures.run(part) - figures.least(part) + call for part in parts if part is not None)
    return Seconds((one, other), (statistics.median(times[0]), statistics.median(times[1])))


def _prepared(part: Graph) -> Any:
    rng = np.random.default_rng(0)
    program = lower(part)
    arrays = [_array(aval, rng) for aval in part.input_avals()]
    program(*arrays)
    return lambda: [np.asarray(a) for a in program(*arrays)]


def _array(aval: Aval, rng: np.random.Generator) -> np.ndarray:
    """Numbers that an op takes: indices are 0; square matrices are regular."""
    if aval.dtype.kind not in "fc":
        return np.zeros(aval.shape, aval.dtype)
    made = rng.uniform(0.5, 1.5, aval.shape).astype(aval.dtype)
    if len(aval.shape) > 1 and aval.shape[-1] == aval.shape[-2]:
        made += aval.shape[-1] * np.eye(aval.shape[-1], dtype=aval.dtype)
    return made
