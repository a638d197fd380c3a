"""What `check` returns: findings with verdicts, readable and as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, final

from compare.judging.tolerance import Verdict
from compare.locating.culprit import Culprit
from graphc.display import Displayed


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
        text = f"{self.mode}: {self.what}: {self.verdict}"
        if self.detail:
            text += f"\n      {self.detail}"
        if self.culprit is not None:
            text += f"\n      first parts at the {self.culprit}"
        return text


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

    def __str__(self) -> str:
        raised = f"; {'every mode' if self.ok else 'eager'} raises {self.raised}" if self.raised else ""
        lines = [f"{self.name}: {self.verdict} (seed {self.seed}){raised}"]
        width = max(map(len, self.modes), default=0)
        for mode in self.modes:
            ours = [f for f in self.findings if f.mode == mode]
            worst = self.verdict_of(mode)
            notes = sorted({f.detail for f in ours if f.verdict is worst and worst is Verdict.NO_OPINION})
            compared = f"{len(ours)} compared" if ours and worst is not Verdict.NO_OPINION else "; ".join(notes)
            lines.append(f"  {mode:<{width}}  {worst!s:<16} {compared}".rstrip())
        lines += [
            f"  {f}" for f in self.findings if f.verdict in (Verdict.CONVENTION, Verdict.UNSUPPORTED, Verdict.BUG)
        ]
        return "\n".join(lines)

    def to_json(self) -> str:
        """The report as JSON text."""
        return json.dumps(self.as_dict(), indent=2)

    def as_dict(self) -> dict[str, Any]:
        """The report as plain values."""
        findings = [{**asdict(f), "verdict": str(f.verdict)} for f in self.findings]
        head = {"name": self.name, "ok": self.ok, "verdict": str(self.verdict), "seed": self.seed}
        head |= {"raised": self.raised} if self.raised else {}
        return {**head, "modes": list(self.modes), "findings": findings}


class DisagreementError(RuntimeError):
    """The modes do not agree, so what was asked for has no meaning. `report` says where they part."""

    def __init__(self, report: Report, refused: str):
        super().__init__(f"the modes do not agree, so {refused}:\n{report}")
        self.report = report
