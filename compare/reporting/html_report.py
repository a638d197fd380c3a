"""The report on one function: verdicts, graph, rewrites, timings, environment; as one HTML file and as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from compare.benchmarking import BOTH, FORWARD, BenchReport
from compare.benchmarking.bench import measure, modes_to_check, rows_named
from compare.benchmarking.rows import optimized
from compare.cases.case import Case
from compare.checking.equivalence import check
from compare.checking.findings import Finding, Report
from compare.checking.localization import source_line
from compare.environment import environment
from compare.judging.tolerance import Verdict
from compare.modes import modes_named
from compare.reporting.chart import timings_chart
from compare.reporting.elements import Marked, details, items, page, paragraph, pre, section, table, text
from graphc.display import Displayed
from graphc.files import writing
from graphc.ir import Graph

BAD = (Verdict.UNSUPPORTED, Verdict.BUG)
DRAWN = 1000  # nodes, above which a drawing shows nothing
TEXT_LINES = 2000  # of a graph's text


@final
@dataclass(frozen=True, repr=False)
class HtmlReport(Displayed):
    """What is known about one function.

    check         whether the modes agree
    bench         the timings; None if they were not taken, because the modes do not agree or the function raises
    before        the captured program, with its gradients where there are any; None if it was not captured
    after         the same, optimized; None if that cannot be done
    environment   see `compare.environment`
    """

    check: Report
    bench: BenchReport | None
    before: Graph | None
    after: Graph | None
    environment: dict[str, str]

    @property
    def ok(self) -> bool:
        """Whether the modes agree."""
        return self.check.ok

    def rewrites(self) -> list[dict[str, Any]]:
        """What the passes did: one entry for each pass that changed the graph, and one for each time a rule fired."""
        if self.after is None:
            return []
        found: list[dict[str, Any]] = []
        for record in self.after.history:
            found.append({"pass": record.name, "nodes_before": record.before, "nodes_after": record.after})
            found += [
                {
                    "pass": record.name,
                    "rule": f.rule,
                    "where": f.where,
                    "line": source_line(f.where),
                    "operations": f.saved,
                }
                for f in record.firings
            ]
        return found

    def as_dict(self) -> dict[str, Any]:
        """The figures as plain values that JSON has."""
        return {
            "check": self.check.as_dict(),
            "bench": None if self.bench is None else self.bench.as_dict(),
            "captured": None if self.before is None else self.before.text(),
            "optimized": None if self.after is None else self.after.text(),
            "rewrites": self.rewrites(),
            "environment": self.environment,
        }

    def to_json(self) -> str:
        """The figures as JSON text."""
        return json.dumps(self.as_dict(), indent=2)

    def __str__(self) -> str:
        return "\n".join(map(str, [self.check, *([self.bench] if self.bench is not None else [])]))

    def _repr_html_(self) -> str:
        return self.html()

    def html(self) -> str:
        """The document: it needs no other file and no network, and carries `to_json` along."""
        parts = [*self._head(), self._verdicts(), self._timings(), self._graphs(), self._rewrites(), self._origin()]
        return page(f"{self.check.name}: graphc compare", parts, self.to_json())

    def write(self, path: str | Path) -> Path:
        """Write the document to `path`, in one step, and return that. Raises OSError."""
        target = Path(path)
        writing.write(target, self.html())
        return target

    def _head(self) -> Iterator[str]:
        verdict = self.check.verdict
        yield f"<h1>{text(self.check.name)}</h1>"
        yield f'<p>Eager and compiled execution: <span class="{_kind(verdict)}">{text(verdict)}</span></p>'

    def _verdicts(self) -> str:
        rows: list[Sequence[object]] = [("mode", "verdict", "compared")]
        for mode in self.check.modes:
            ours = [f for f in self.check.findings if f.mode == mode]
            rows.append((mode, _marked(self.check.verdict_of(mode)), len(ours)))
        noted = [f for f in self.check.findings if f.verdict not in (Verdict.IDENTICAL, *BAD)]
        return section(
            "Do the modes agree?",
            table(rows),
            items([_finding(f) for f in self.check.bugs]),
            details(f"{len(noted)} other findings", items(list(map(_finding, noted)))) if noted else "",
        )

    def _timings(self) -> str:
        if self.bench is None:
            why = "the function raises" if self.ok else "the modes do not agree"
            return section("What does each cost?", paragraph(f"Not timed, because {why}."))
        whats = dict.fromkeys(t.what for t in self.bench.timings)
        charts = [timings_chart(what, [t for t in self.bench.timings if t.what == what]) for what in whats]
        notes = [paragraph(note, "note") for note in self.bench.notes()]
        return section(
            "What does each cost?",
            '<div class="pair">' + "".join(f"<div>{chart}</div>" for chart in charts) + "</div>",
            *map(table, self.bench.tables()),
            *notes,
        )

    def _graphs(self) -> str:
        graphs = {"Captured": self.before, "Optimized": self.after}
        known = {title: graph for title, graph in graphs.items() if graph is not None}
        if not known:
            return section("The graph", paragraph("The program was not captured."))
        drawings = "".join(_drawing(title, graph) for title, graph in known.items())
        return section(
            "The graph",
            paragraph("Point at a box for its operands and the line it comes from. Thick frames are results.", "note"),
            f'<div class="pair">{drawings}</div>',
            *(details(f"{title} graph as text", pre(_cut(str(graph)))) for title, graph in known.items()),
        )

    def _rewrites(self) -> str:
        rows: list[Sequence[object]] = [("pass", "nodes", "rule", "line", "at", "operations saved")]
        for r in self.rewrites():
            if "rule" in r:
                rows.append((r["pass"], "", r["rule"], r["line"], r["where"], f"{r['operations']:,.0f}"))
            else:
                rows.append((r["pass"], f"{r['nodes_before']} to {r['nodes_after']}", "", "", "", ""))
        body = table(rows) if len(rows) > 1 else paragraph("No pass has changed the graph.")
        return section("What the optimizer did", body)

    def _origin(self) -> str:
        return section("Where this ran", table([("what", "value"), *self.environment.items()], long=1))


def report(
    fn: Callable[..., Any],
    *args: Any,
    modes: Sequence[str] | None = None,
    torch_fn: Callable[..., Any] | None = None,
    min_time: float = 0.2,
    seed: int = 0,
    **kwargs: Any,
) -> HtmlReport:
    """Check `fn(*args, **kwargs)` in every mode, time it where the modes agree, and gather what was found.

    modes, torch_fn, min_time  as in `bench`: the rows that are timed

    Raises ValueError for an unknown mode, MissingExtraError for `torch_fn` without PyTorch.

    >>> import eager as torch, compare
    >>> compare.report(torch.tanh, torch.ones(3), modes=["eager"], min_time=0.0).write("report.html")  # doctest: +SKIP
    """
    rows = rows_named(modes, torch_fn)
    checked = {m.name: m for m in [*modes_named(None), *modes_named(modes_to_check(rows))]}
    findings = check(fn, *args, modes=list(checked.values()), seed=seed, **kwargs)
    case = Case(fn, args, kwargs, seed)
    raises = any(f.what == "exception" for f in findings.findings)
    bench = measure(case, rows, True, min_time) if findings.ok and not raises else None
    return HtmlReport(findings, bench, *_programs(case, findings.ok), environment())


def _programs(case: Case, ok: bool) -> tuple[Graph | None, Graph | None]:
    """(captured, optimized) program of a case, None where there is none."""
    if case.program is None:
        return None, None
    try:
        what = BOTH if case.joint.seeded else FORWARD
        return case.joint.graph, optimized(case, what)
    except Exception:
        if ok:
            raise
        return case.program.graph, None  # a finding says what fails


def _finding(finding: Finding) -> str:
    """What was found, and below it the evidence."""
    found = filter(None, (finding.detail, finding.culprit and f"first parts at the {finding.culprit}"))
    verdict = f'<span class="{_kind(finding.verdict)}">{text(finding.verdict)}</span>'
    evidence = "".join(f'<div class="note">{text(line)}</div>' for line in found)
    return f"{verdict} <b>{text(finding.mode)}</b>: {text(finding.what)}{evidence}"


def _kind(verdict: Verdict) -> str:
    if verdict in BAD:
        return "bad"
    return "good" if verdict in (Verdict.IDENTICAL, Verdict.WITHIN_ROUNDING) else "open"


def _marked(verdict: Verdict) -> Marked:
    return Marked(str(verdict), _kind(verdict))


def _drawing(title: str, graph: Graph) -> str:
    heading = f"{title}: {len(graph)} nodes"
    if len(graph) > DRAWN:
        return f"<div><h3>{heading}</h3>{paragraph('Too many to draw; the text below has them.')}</div>"
    svg = graph.to_svg(heading)
    width = re.search(r'viewBox="0 0 (\d+)', svg)
    assert width is not None
    scroll = f'<div class="graph" tabindex="0"><div style="width:{width[1]}px">{svg}</div></div>'
    return f"<div><h3>{heading}</h3>{scroll}</div>"


def _cut(lines: str) -> str:
    every = lines.splitlines()
    more = [f"... {len(every) - TEXT_LINES} more lines"] if len(every) > TEXT_LINES else []
    return "\n".join([*every[:TEXT_LINES], *more])
