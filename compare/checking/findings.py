"""What `check` returns: findings with verdicts, readable and as JSON."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, final

from compare.judging.tolerance import Verdict
from compare.locating.culprit import INHERITED, Culprit
from graphc.display import Block, Displayed, Remark, Section, Table, plain

FEW = 2  # rows that are alike and stay apart


@final
@dataclass(frozen=True)
class Finding:
    """One thing that a mode and eager were compared in.

    mode        the mode's name
    what        "result", "gradient of w", "w after the call", "exception", "structure", "shape of result", ...
    detail      the numbers behind the verdict
    culprit     for a bug: where the modes part
    difference  the largest from eager among finite elements; None where no two arrays were compared
    """

    mode: str
    what: str
    verdict: Verdict
    detail: str = ""
    culprit: Culprit | None = None
    difference: float | None = None

    def __str__(self) -> str:
        return self.block().text

    def block(self, mode: str = "") -> Remark:
        """How it shows in a report, with another name for the mode if one is given."""
        text = f"{mode or self.mode}: {self.what}: {self.verdict}"
        if self.detail:
            text += f"\n    {self.detail}"
        if self.culprit is not None:
            text += f"\n    first parts at the {self.culprit}"
        return Remark(text, self.verdict.kind)


@final
@dataclass(frozen=True, repr=False)
class Report(Displayed):
    """The findings of one case.

    name      of the function
    modes     that were run, in order
    findings  one for each mode and thing compared
    seed      of the cotangents and the simulated rounding
    raised    what the function raises in eager mode, and in which line; "" if it returns
    """

    name: str
    modes: tuple[str, ...]
    findings: tuple[Finding, ...]
    seed: int
    raised: str = ""

    @property
    def verdict(self) -> Verdict:
        """The worst of the findings."""
        return max((f.verdict for f in self.findings), default=Verdict.IDENTICAL)

    @property
    def ok(self) -> bool:
        """No bug, and nothing that could not be captured."""
        return self.verdict < Verdict.UNSUPPORTED

    @property
    def bugs(self) -> tuple[Finding, ...]:
        """The findings that make the report not ok."""
        return tuple(f for f in self.findings if f.verdict >= Verdict.UNSUPPORTED)

    def verdict_of(self, mode: str) -> Verdict:
        """The worst finding of one mode."""
        return max((f.verdict for f in self.findings if f.mode == mode), default=Verdict.IDENTICAL)

    def blocks(self) -> Iterator[Block]:
        """The verdict; a row for each mode, those alike together; and what is not in order."""
        raised = f"; {'every mode' if self.ok else 'eager'} raises {self.raised}" if self.raised else ""
        shown = (Verdict.CONVENTION, Verdict.UNSUPPORTED, Verdict.BUG)
        found = list(_inherited_together(f for f in self.findings if f.verdict in shown))
        table = [Table(rows)] if (rows := self.rows()) else []
        head = Remark(f"{self.name}: {self.verdict} (seed {self.seed}){raised}", self.verdict.kind)
        yield Section(head, [*table, *found])

    def rows(self) -> list[tuple[str, Remark, str]]:
        """(mode, verdict, what was compared) of each mode. Neighbours that differ in their names only, by numbers and
        what follows them ("pass 1: ...", "pass 2: ..."), are one row if all else is the same."""
        single = [(mode, *self._row(mode)) for mode in self.modes]
        alike = itertools.groupby(single, lambda row: (_start(row[0]), *row[1:]))
        return [
            (mode, Remark(str(verdict), verdict.kind), note)
            for (_, verdict, note), rows in alike
            for mode in _joined([row[0] for row in rows])
        ]

    def _row(self, mode: str) -> tuple[Verdict, str]:
        ours, worst = [f for f in self.findings if f.mode == mode], self.verdict_of(mode)
        if worst is Verdict.NO_OPINION:
            return worst, "; ".join(sorted({f.detail for f in ours if f.verdict is worst}))
        return worst, f"{len(ours)} compared" if ours else ""

    def to_dict(self) -> dict[str, Any]:
        """The report as plain values."""
        head = {"name": self.name, "ok": self.ok, "verdict": str(self.verdict), "seed": self.seed}
        head |= {"raised": self.raised} if self.raised else {}
        return {**head, "modes": list(self.modes), "findings": plain(self.findings)}


def _inherited_together(findings: Iterable[Finding]) -> Iterator[Remark]:
    """A block for each finding; one for all passes that do no more than hand on what is wrong before them."""
    groups: dict[Any, list[Finding]] = {}
    for finding in findings:
        inherited = finding.culprit is not None and finding.culprit.part == INHERITED
        key = (_start(finding.mode), finding.what, finding.detail) if inherited else id(finding)
        groups.setdefault(key, []).append(finding)
    for group in groups.values():
        yield from map(Finding.block, group, _joined([f.mode for f in group]))


def _start(mode: str) -> str:
    """A mode's name before its number."""
    return re.split(r"\d", mode)[0]


def _joined(modes: list[str]) -> list[str]:
    """The names of `modes`, which are alike but for a number and what follows it; one name if they are many."""
    if len(modes) <= FEW:
        return modes
    first, last = (re.findall(r"\d+", mode)[0] for mode in (modes[0], modes[-1]))
    return [f"{_start(modes[0])}{first} to {last}, x{len(modes)}"]


class DisagreementError(RuntimeError):
    """The modes do not agree, so what was asked for has no meaning. `report` says where they part."""

    def __init__(self, report: Report, refused: str):
        super().__init__(f"the modes do not agree, so {refused}:\n{report}")
        self.report = report
