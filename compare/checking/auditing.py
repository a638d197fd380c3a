"""`audit`: call a compiled function again and again, each time with something changed, and compare with eager."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, final

from compare.cases.case import Case
from compare.cases.outcome import Outcome
from compare.checking.comparison import findings_of
from compare.checking.findings import Finding, Report
from compare.checking.perturbations import Perturbation, perturbations
from compare.judging.tolerance import Verdict, same_bits
from compare.locating.culprit import Culprit
from compare.locating.surroundings import STALE
from compare.modes import COMPILED, EAGER
from graphc.compiling.decorator import compile


def audit(fn: Callable[..., Any], *args: Any, seed: int = 0, **kwargs: Any) -> Report:
    """Whether one `graphc.compile(fn)` follows every change of what it is called with and of what `fn` reaches.

    The same compiled function is called with `fn(*args, **kwargs)`, then again in other ways: several times in a row,
    with another leading size, with arguments of one shape exchanged, identical, or sharing memory, with other numbers,
    and after the tensors, numbers, flags and lists that `fn` reaches by itself have changed. Each call is compared with
    eager's in the same state, and after each the first one is repeated. The report has a row for each way. Everything
    is put back.

    A call that is refused by name (CaptureError) is no bug here. For the parameters see `check`.

    >>> import eager as torch, compare
    >>> scale = [2.0]
    >>> report = compare.audit(lambda x, y: x * y * scale[0], torch.tensor([1.0, 2.0]), torch.tensor([3.0, 4.0]))
    >>> report.ok
    True
    """
    return audited(Case(fn, args, kwargs, seed))


def audited(case: Case) -> Report:
    """The audit of a case."""
    reference = EAGER.run(case)
    first = COMPILED.run(case)
    findings = list(findings_of(case, COMPILED, reference, first))
    names = [COMPILED.name]
    if first.error is not None:  # then there is no program that could be out of date
        return Report(case.name, tuple(names), tuple(findings), case.seed)
    for perturbation in perturbations(case):
        mode = _Replay(perturbation.name, case)
        names.append(mode.name)
        with case.preserved():
            try:
                perturbation.change()
            except Exception as error:  # an attribute that cannot be set: what it is, is no business of the audit
                findings.append(Finding(mode.name, "everything", Verdict.NO_OPINION, f"refused: {error}"))
                continue
            findings += _replayed(mode, case, perturbation)
        back = _Replay(f"{perturbation.name}, and back", case)
        findings += [f for f in findings_of(case, back, reference, back.run(case)) if f.verdict is Verdict.BUG]
    return Report(case.name, tuple(dict.fromkeys([*names, *(f.mode for f in findings)])), tuple(findings), case.seed)


def _replayed(mode: _Replay, case: Case, perturbation: Perturbation) -> Iterator[Finding]:
    other = Case(case.fn, perturbation.args, perturbation.kwargs, case.seed, perturbation.wrap)
    for finding in findings_of(other, mode, EAGER.run(other), mode.run(other)):
        refused = finding.verdict is Verdict.UNSUPPORTED
        yield Finding(mode.name, finding.what, Verdict.NO_OPINION, finding.detail) if refused else finding


@final
class _Replay:
    """The compiled function of the first case, called in another way."""

    wide = repeats = False

    def __init__(self, name: str, first: Case):
        self.name = name
        self._compiled = first.compiled()

    def run(self, case: Case) -> Outcome:
        return case.observe(self._compiled)

    def locate(self, case: Case, label: str, outcome: Outcome) -> Culprit | None:
        fresh = case.observe(compile(case.fn))
        if _differ(fresh, outcome, label):
            return Culprit(STALE, evidence="a newly compiled function gives something else")
        return COMPILED.locate(case, label, outcome)


def _differ(a: Outcome, b: Outcome, label: str) -> bool:
    if a.error is not None or b.error is not None:
        return type(a.error) is not type(b.error)
    left, right = a.arrays().get(label), b.arrays().get(label)
    return left is not None and right is not None and not same_bits(left, right)
