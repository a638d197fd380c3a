"""Hunting a planted fault: its trials first, then random programs, until something is found."""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from compare.checking.findings import Report
from compare.fuzzing import fuzz
from compare.judging.tolerance import Verdict
from compare.locating.culprit import Culprit
from compare.selftest.fault import Fault
from graphc.lowering.cache import uncached
from graphc.lowering.timing import unannounced
from graphc.ops import OPS

TRIES = 400  # random programs for a fault that nothing else finds
MODES = ("graph", "compiled", "jax.grad")  # of random programs
BATCH = 8


class Catch(NamedTuple):
    """What has become of a hunt.

    how       the trial that found the fault; "" if none did
    culprit   what its report names first
    localized whether that is at fault
    seconds   that the hunt took
    evidence  the first finding that is a bug
    """

    fault: Fault
    how: str
    culprit: Culprit | None
    localized: bool
    seconds: float
    evidence: str = ""

    @property
    def found(self) -> bool:
        return bool(self.how)

    def to_dict(self) -> dict[str, Any]:
        """For `json`."""
        named = None if self.culprit is None else str(self.culprit)
        return {
            "name": self.fault.name, "layer": self.fault.layer, "found": self.found, "how": self.how,
            "localized": self.localized, "expected": str(self.fault.culprit), "named": named,
            "seconds": round(self.seconds, 3), "evidence": self.evidence,
        }  # fmt: skip


def hunt(fault: Fault, seconds: float | None = None, tries: int = TRIES) -> Catch:
    """Plant `fault`, and look for it: its own trials, then `tries` random programs, for at most `seconds` if given.

    A random program finds it only if it is no bug without it.
    """
    start = time.perf_counter()
    with _planted(fault):
        for how, report in fault.trials():
            if report.verdict is Verdict.BUG:
                return _caught(fault, how, report, start)
    report = _at_random(fault, tries, None if seconds is None else start + seconds)
    if report is not None:
        return _caught(fault, "random program", report, start)
    return Catch(fault, "", None, False, time.perf_counter() - start)


@contextlib.contextmanager
def _planted(fault: Fault) -> Iterator[None]:
    with uncached(), fault.plant(), warnings.catch_warnings(), unannounced():  # a wrong program must not be kept
        warnings.simplefilter("ignore")  # wrong kernels leave their domains
        yield


def _at_random(fault: Fault, tries: int, until: float | None) -> Report | None:
    """The report of the first random program, of the fault's op alone or of any ops, that is a bug with the fault and
    none without it; None after so many, or at the time `until`."""
    others: Collection[str] = [name for name in OPS if name != fault.op] if fault.op else ()
    for seed in range(0, tries, BATCH):
        if until is not None and time.perf_counter() >= until:
            break
        with _planted(fault):
            found = fuzz(BATCH, seed=seed, modes=MODES, batch=BATCH, without=others)
        for failure in found.failures:
            if failure.report.verdict is Verdict.BUG and fuzz(1, seed=failure.seed, modes=MODES, without=others).ok:
                return failure.report
    return None


def _caught(fault: Fault, how: str, report: Report, start: float) -> Catch:
    finding = next((f for f in report.findings if f.verdict is Verdict.BUG and f.culprit is not None), None)
    evidence = next(str(f) for f in report.findings if f.verdict is Verdict.BUG)
    culprit = None if finding is None else finding.culprit
    named = culprit is not None and fault.culprit.is_named_by(culprit)
    return Catch(fault, how, culprit, named, time.perf_counter() - start, evidence)
