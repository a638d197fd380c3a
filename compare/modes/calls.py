"""The modes that call something in place of the function: it itself, and what `graphc.compile` makes of it."""

from __future__ import annotations

from typing import Any, final

import graphc
from compare.cases.case import Case
from compare.cases.outcome import Outcome
from compare.judging import dtypes
from compare.locating import stages
from compare.locating.batching import watched
from compare.locating.culprit import Culprit
from compare.locating.gradient_rules import in_gradient_rules
from compare.locating.lowerings import in_host, in_lowering
from compare.locating.partition import in_partition
from compare.locating.passes import in_passes
from compare.modes.tape import behind_the_graph


@final
class Eager:
    """Define by run: the reference."""

    name, wide, repeats, foreign = "eager", False, True, False

    def run(self, case: Case) -> Outcome:
        with watched() as ops, dtypes.watched() as promotions:
            found = case.observe(case.fn)
        case.batched |= ops
        case.promoted |= promotions
        return found

    def locate(self, case: Case, label: str, outcome: Outcome) -> Culprit | None:
        return in_gradient_rules(case)


@final
class Compiled:
    """`graphc.compile` with these options, gradients through the tape."""

    wide, repeats = False, True

    def __init__(self, name: str = "compiled", **options: Any):
        self.name, self._options = name, options

    def run(self, case: Case) -> Outcome:
        return case.observe(case.compiled(**self._options))

    def locate(self, case: Case, label: str, outcome: Outcome) -> Culprit | None:
        lowered = in_host(case) if self.name == "numpy" else in_lowering(case)
        by_stage = lowered or in_passes(case, label) or stages.in_graph(case, label, outcome)
        found = by_stage or in_partition(case, label, outcome) or stages.in_traceback(outcome.error)
        return found or behind_the_graph(case, self, label, outcome)


@final
class Microbatched:
    """`graphc.compile(microbatches=count)`: the batch is computed a part at a time."""

    wide, repeats = False, False

    def __init__(self, count: int):
        self.name = f"{count} microbatches"
        self._count = count

    def run(self, case: Case) -> Outcome:
        return case.observe(graphc.compile(case.fn, microbatches=self._count))

    def locate(self, case: Case, label: str, outcome: Outcome) -> Culprit | None:
        return Compiled().locate(case, label, outcome)
