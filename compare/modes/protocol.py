"""What a mode is."""

from __future__ import annotations

from typing import Protocol

from compare.cases.case import Case
from compare.cases.outcome import Outcome
from compare.locating.culprit import Culprit

NOT_CAPTURED = "the program was not captured"


class Mode(Protocol):
    """A way to run a case.

    name      unique; what findings call it
    wide      whether it computes in float64 (then only gradients are compared, against the float64 graph)
    repeats   whether a second run must be asked for, and must agree
    foreign   whether it computes by another arithmetic than NumPy's: it may flush denormals, and choose other signs
              for eigenvectors. May be left out: then it does
    """

    name: str
    wide: bool
    repeats: bool

    def run(self, case: Case) -> Outcome:
        """What the mode makes of the case. Exceptions of the program go into the outcome."""
        ...

    def locate(self, case: Case, label: str, outcome: Outcome) -> Culprit | None:
        """The first place where this mode parts from eager, for a wrong array `label` (or "" for an exception)."""
        ...


def is_foreign(mode: Mode) -> bool:
    """See `Mode`."""
    return getattr(mode, "foreign", True)
