"""What surrounds the graph of a captured program: random draws, and the reading and writing of state.

They are at fault where a mode parts from eager and no op, pass or rule does, of those in the graph or behind it.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

import numpy as np

from compare.cases.case import Case
from compare.cases.outcome import Outcome
from compare.judging.tolerance import Verdict, judge
from compare.judging.yardstick import stand_in
from compare.locating.composites import in_composites
from compare.locating.culprit import Culprit
from compare.locating.layouts import in_layouts
from eager.rng.generator import Generator
from graphc.capture import Draw
from graphc.ops.aval import aval_of
from graphc.scoped import attribute


class Repeated(Protocol):
    """What is asked of a mode here: to run a case, and once more if it `repeats`."""

    repeats: bool

    def run(self, case: Case) -> Outcome: ...


RANDOM = "random numbers"
STALE = "program of an earlier call"  # which a guard should have kept from running
STATE = "functionalization"  # what is captured, written back, shared in memory, differentiated


def without_chance() -> AbstractContextManager[None]:
    """A context in which all random bits are the same: draws in another order, or fewer of them, make no difference.

    Uniform numbers are 1/8, and the cosines and sines of normal ones alike: weights that are zero would hide whatever
    else is wrong.
    """
    return attribute(
        Generator, "bits", lambda self, count, wide=False: np.full(count, 2**50 if wide else 2**21, np.uint64)
    )


def in_surroundings(case: Case, mode: Repeated) -> Culprit:
    """`RANDOM`, if the mode agrees with eager where there is no chance; an op that no graph shows; or `STATE`."""
    if case.program is None or not any(isinstance(source, Draw) for source in case.program.sources):
        return _hidden(case)
    with without_chance():
        other = type(case)(case.fn, case.args, case.kwargs, case.seed)
        reference = other.observe(other.fn)
        agree = all(_agree(mode.run(other), reference) for _ in range(1 + mode.repeats))
    return Culprit(RANDOM) if agree else _hidden(case)


def _hidden(case: Case) -> Culprit:
    return in_layouts(case) or in_composites() or Culprit(STATE)


def _agree(found: Outcome, expected: Outcome) -> bool:
    if found.error is not None or expected.error is not None:
        return type(found.error) is type(expected.error)
    a, b = found.arrays(), expected.arrays()
    return a.keys() == b.keys() and all(_close(a[label], b[label]) for label in a)


def _close(found: np.ndarray, expected: np.ndarray) -> bool:
    same = aval_of(found) == aval_of(expected)
    return same and judge(found, expected, *stand_in(expected)).verdict is not Verdict.BUG
