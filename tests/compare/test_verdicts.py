"""The labelled set: what `check` says of differences whose nature is known."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import compare
from compare.cases.case import Case
from compare.judging.tolerance import Verdict
from tests.compare.verdicts import CASES
from tests.depth import one_in


class Instead:
    """A mode that runs another function."""

    wide, repeats = False, False

    def __init__(self, fn: Any):
        self.name, self._fn = "instead", fn

    def run(self, case: Case) -> Any:
        return case.observe(self._fn)

    def locate(self, case: Case, label: str, outcome: Any) -> None:
        return None


@pytest.mark.parametrize("case", one_in(2, CASES, lambda case: case.name))
def test_the_verdict(case):
    modes: Any = case.modes if case.other is None else [Instead(case.other)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report = compare.check(case.fn, *case.args(), modes=modes, locate=False)
    assert report.verdict is case.verdict, str(report)


def test_the_set_has_every_verdict_often():
    assert len(CASES) >= 60
    for verdict in (v for v in Verdict if v is not Verdict.NO_OPINION):
        assert sum(case.verdict is verdict for case in CASES) >= 4
