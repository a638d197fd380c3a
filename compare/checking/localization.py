"""`localize`: the first places where modes part, with what the op was given there and the user's line."""

from __future__ import annotations

import linecache
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, final

from compare.checking.equivalence import check
from compare.checking.findings import Finding, Report
from compare.judging.tolerance import Verdict
from compare.locating.culprit import INHERITED, Culprit
from graphc.display import Block, Displayed, Remark, Section, plain

BLAMED = (Verdict.CONVENTION, Verdict.UNSUPPORTED, Verdict.BUG)  # those that have a culprit


@final
@dataclass(frozen=True, repr=False)
class Divergence(Displayed):
    """One place where modes part, and the findings that it explains; the first of them is the earliest.

    culprit   the op, pass or rule, with the user's line; None if no single one is to blame
    line      the text of the user's line, "" if it is not known
    """

    culprit: Culprit | None
    findings: tuple[Finding, ...]

    @property
    def line(self) -> str:
        return source_line(self.culprit.where) if self.culprit is not None else ""

    @property
    def verdict(self) -> Verdict:
        """The worst of the findings."""
        return max(f.verdict for f in self.findings)

    def blocks(self) -> Iterator[Block]:
        """The culprit; what it was given, the user's line, and where it was seen."""
        first, culprit = self.findings[0], self.culprit
        head = f"{self.verdict}: {culprit or f'in mode {first.mode}, {first.what}: {first.detail}'}"
        lines = [f"given {operand}" for operand in (culprit.operands if culprit is not None else ())]
        if culprit is not None and self.line:
            lines.append(f"{culprit.where}: {self.line}")
        if culprit is not None:
            lines.append(f"first seen in mode {first.mode}, {first.what}: {first.detail}")
        if more := [f"{f.mode}: {f.what}" for f in self.findings[1:]]:
            lines.append(f"also in {', '.join(more[:MORE])}{f' and {len(more) - MORE} more' * (len(more) > MORE)}")
        yield Section(Remark(head, self.verdict.kind), [*map(Remark, lines)])


MORE = 6  # findings that are named besides the first


@final
@dataclass(frozen=True, repr=False)
class Localization(Displayed):
    """Where the modes of one case part.

    report       what `check` has found
    divergences  the places, in the order in which a program passes through them: capture, graph, passes, compiled;
                 then those on which only independent gradients have an opinion
    """

    report: Report
    divergences: tuple[Divergence, ...]

    @property
    def ok(self) -> bool:
        """Whether the modes agree."""
        return self.report.ok

    @property
    def first(self) -> Divergence | None:
        """The first place where the modes part."""
        return self.divergences[0] if self.divergences else None

    def to_dict(self) -> dict[str, Any]:
        """The places as plain values."""
        places = [
            {
                "culprit": None if d.culprit is None else plain(d.culprit),
                "line": d.line,
                "verdict": str(d.verdict),
                "findings": [{"mode": f.mode, "what": f.what, "detail": f.detail} for f in d.findings],
            }
            for d in self.divergences
        ]
        return {"name": self.report.name, "ok": self.ok, "seed": self.report.seed, "divergences": places}

    def blocks(self) -> Iterator[Block]:
        """The verdict, and below it the places."""
        head = f"{self.report.name}: {self.report.verdict} (seed {self.report.seed})"
        places = [block for divergence in self.divergences for block in divergence.blocks()]
        yield Section(Remark(head, self.report.verdict.kind), places)


def localize(
    fn: Callable[..., Any], *args: Any, modes: Sequence[str] | None = None, seed: int = 0, **kwargs: Any
) -> Localization:
    """Where the modes of `fn(*args, **kwargs)` part: the first node, what it was given, the pass or rule, the line.

    modes, seed  as for `check`. A wrong result of a compiled mode is traced back through the passes, by bisection, to
                 a pass, and in that to a rule without which it is right, whether or not the mode "passes" is asked for

    Raises ValueError for an unknown mode.

    >>> import eager as torch, compare
    >>> compare.localize(torch.sin, torch.ones(3), modes=["graph"]).first is None
    True
    """
    return localized(check(fn, *args, modes=modes, seed=seed, **kwargs))


def localized(report: Report) -> Localization:
    """The findings of a report that are not in order, by the place that they blame."""
    places: dict[Any, list[Finding]] = {}
    for finding in report.findings:
        if finding.verdict in BLAMED:
            inherited = finding.culprit is not None and finding.culprit.part == INHERITED and places
            places.setdefault(next(reversed(places)) if inherited else _place(finding), []).append(finding)
    found = [Divergence(findings[0].culprit, tuple(findings)) for findings in places.values()]
    return Localization(report, tuple(found))


def _place(finding: Finding) -> Any:
    """Equal for findings that blame the same; numbers of nodes differ from one graph to another."""
    culprit = finding.culprit
    if culprit is None:
        return finding.what, finding.detail
    return culprit.part, culprit.op, culprit.rule, culprit.where, culprit.pass_name if not culprit.rule else ""


def source_line(where: str) -> str:
    """The text at "file:line", without what it is indented by; "" if there is none.

    >>> source_line("no such file:3")
    ''
    """
    file, _, number = where.rpartition(":")
    return linecache.getline(file, int(number)).strip() if number.isdigit() else ""
