"""The modes that call something in place of the function: it itself, and what `graphc.compile` makes of it."""

from __future__ import annotations

from typing import final

from compare.checking.case import Case
from compare.checking.outcome import Outcome
from compare.locating import stages
from compare.locating.culprit import Culprit
from compare.locating.surroundings import in_surroundings


@final
class Eager:
    """Define by run: the reference."""

    name, wide, repeats, foreign = "eager", False, True, False

    def run(self, case: Case) -> Outcome:
        return case.observe(case.fn)

    def locate(self, case: Case, label: str, outcome: Outcome) -> Culprit | None:
        return stages.in_gradient_rules(case)


@final
class Compiled:
    """`graphc.compile`, gradients through the tape; with `strict`, by the rules and the XLA that keep every bit."""

    wide, repeats = False, True

    def __init__(self, strict: bool = False):
        self.name = "strict" if strict else "compiled"
        self._strict = strict

    def run(self, case: Case) -> Outcome:
        return case.observe(case.strictly_compiled if self._strict else case.compiled)

    def locate(self, case: Case, label: str, outcome: Outcome) -> Culprit | None:
        by_stage = stages.in_lowering(case, outcome) or stages.in_passes(case, label)
        return by_stage or stages.in_graph(case, label, outcome) or in_surroundings(case, self)
