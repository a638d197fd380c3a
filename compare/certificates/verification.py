"""`verify`: replay a certificate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from compare.cases.case import Case
from compare.certificates.certificate import AGREEING, Certificate, CertificateFileError, TamperedError, record
from compare.checking.equivalence import check
from compare.checking.findings import Report
from compare.judging.tolerance import Verdict
from compare.modes import modes_named
from graphc.display import Block, Displayed, Remark, Section, plain

CHANGING = ("time", "load average")  # in an environment, what no result depends on


@final
@dataclass(frozen=True, repr=False)
class Verification(Displayed):
    """What became of a certificate when it was replayed.

    reasons  why it does not hold; empty if it does
    notes    what is different here and does not speak against it
    report   of the replay; None if there was no point in it
    """

    name: str
    reasons: tuple[str, ...]
    notes: tuple[str, ...] = ()
    report: Report | None = None

    @property
    def ok(self) -> bool:
        """Whether the certificate holds."""
        return not self.reasons

    def to_dict(self) -> dict[str, Any]:
        """The outcome as plain values."""
        report = None if self.report is None else self.report.to_dict()
        return {**plain(self), "ok": self.ok, "report": report}

    def blocks(self) -> Iterator[Block]:
        """Whether it holds, and why not."""
        head = f"{self.name}: the certificate {'holds' if self.ok else 'does not hold'}"
        notes = [Remark(f"note: {n}", "note") for n in self.notes]
        yield Section(Remark(head, "good" if self.ok else "bad"), [*map(Remark, self.reasons), *notes])


def verify(path: str | Path, fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Verification:
    """Whether the certificate in the file `path` holds for `fn(*args, **kwargs)`, here and now.

    It does if the file is as it was written, the captured graph and the values of all its inputs are the same, and
    `check` in the same modes with the same seed has the same verdicts. In another environment (versions, processor),
    which is a note and no reason, rounding may differ: there the modes must agree wherever they did.

    The digest shows damage and careless editing. It is no signature: it does not say who has written the file.

    Raises CertificateError for a file that is no certificate, or that names a mode which is not known here.
    """
    try:
        certified = Certificate.read(path)
    except TamperedError as error:
        return Verification(Path(path).name, (str(error),))
    try:
        modes_named(certified.modes)
    except ValueError as error:
        raise CertificateFileError(str(error), file=str(path), place="modes") from None
    case = Case(fn, args, kwargs, certified.seed)
    if case.program is None:
        return Verification(certified.name, (f"the function can no longer be captured: {case.failure}",))
    now = record(Report(case.name, (), (), certified.seed), case, certified.modes)
    notes = tuple(_notes(certified, now))
    if reasons := tuple(_other_program(certified, now)):
        return Verification(certified.name, reasons, notes)
    report = check(fn, *args, modes=certified.modes, seed=certified.seed, **kwargs)
    exactly = _lasting(certified.environment) == _lasting(now.environment)
    return Verification(certified.name, tuple(_other_verdicts(certified, report, exactly)), notes, report)


def _other_program(certified: Certificate, now: Certificate) -> Iterator[str]:
    if now.graph != certified.graph:
        yield f"the function has another graph: {now.graph}, certified is {certified.graph}"
    for name in certified.inputs.keys() | now.inputs.keys():
        before, after = certified.inputs.get(name), now.inputs.get(name)
        if before is None or after is None:
            yield f"input '{name}' {'is new' if before is None else 'is missing'}"
        else:
            for what, value in before.items():
                if after.get(what) != value:
                    yield f"input '{name}' has other {what}: {after.get(what)}, certified is {value}"


def _other_verdicts(certified: Certificate, report: Report, exactly: bool) -> Iterator[str]:
    found = {(f.mode, f.what): f.verdict for f in report.findings}
    for entry in certified.verdicts:
        place = f"{entry['mode']}: {entry['what']}"
        verdict, before = found.get((entry["mode"], entry["what"])), AGREEING[entry["verdict"]]
        if verdict is None:
            yield f"{place} was not compared"
        elif verdict is not before and (exactly or not _agrees(verdict)):
            yield f"{place} is {verdict}, certified is {entry['verdict']}"
    named = {(entry["mode"], entry["what"]) for entry in certified.verdicts}
    for (mode, what), verdict in found.items():
        if (mode, what) not in named and not _agrees(verdict):
            yield f"{mode}: {what} is {verdict}, and was not there"


def _agrees(verdict: Verdict) -> bool:
    return verdict < Verdict.UNSUPPORTED


def _lasting(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name not in CHANGING}


def _notes(certified: Certificate, now: Certificate) -> Iterator[str]:
    before, after = _lasting(certified.environment), _lasting(now.environment)
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            yield f"{name}: {after.get(name, 'none')}, certified in {before.get(name, 'none')}"
    if certified.tolerances != now.tolerances:
        yield "the table of rounding errors has changed"
