"""The report on one function: verdicts, graph, rewrites, timings, environment; as one HTML file and as JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from compare.benchmarking import BOTH, FORWARD, BenchReport
from compare.benchmarking.bench import measure, modes_to_check, rows_named
from compare.benchmarking.plots import timings_svgs
from compare.benchmarking.rows import optimized
from compare.cases.case import Case
from compare.checking.equivalence import check
from compare.checking.findings import Report
from compare.checking.localization import source_line
from compare.environment import environment
from compare.judging.tolerance import Verdict
from compare.modes import modes_named
from graphc.display import Beside, Block, Code, Displayed, Picture, Remark, Section, Table, plural
from graphc.display.as_html import page
from graphc.errors import MissingExtraError
from graphc.files import writing
from graphc.ir import Graph

BAD = Verdict.UNSUPPORTED  # and what is worse
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

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain values that JSON has."""
        return {
            "check": self.check.to_dict(),
            "bench": None if self.bench is None else self.bench.to_dict(),
            "captured": None if self.before is None else self.before.text(),
            "optimized": None if self.after is None else self.after.text(),
            "rewrites": self.rewrites(),
            "environment": self.environment,
        }

    def blocks(self) -> Iterator[Block]:
        """The verdicts, the timings, the graph before and after, what the passes did, and where all this ran."""
        yield Remark(f"{self.check.name}: {self.check.verdict}", self.check.verdict.kind)
        yield Section("Do the modes agree?", [*self._verdicts()])
        yield Section("What does each mode cost?", [*self._timings()])
        yield Section("The graph", [*self._graphs()])
        yield Section("What the optimizer did", [*self._rewrites()])
        yield Section("Where this ran", [Table([*self.environment.items()], ("what", "value"))])

    def html(self) -> str:
        """The document: it needs no other file, no network and no script, and carries `to_json` along."""
        return page(f"{self.check.name}: eager and compiled", self.blocks(), self.to_json())

    def write(self, path: str | Path) -> Path:
        """Write the document to `path`, in one step, and return that. Raises OSError."""
        target = Path(path)
        writing.write(target, self.html())
        return target

    def _verdicts(self) -> Iterator[Block]:
        yield Table(self.check.rows(), ("mode", "verdict", "compared"))
        yield from (f.block() for f in self.check.bugs)
        noted = [f.block() for f in self.check.findings if f.verdict is not Verdict.IDENTICAL and f.verdict < BAD]
        if noted:
            yield Section(plural(len(noted), "other finding"), noted, closed=True)

    def _timings(self) -> Iterator[Block]:
        if self.bench is None:
            yield Remark(f"Not timed, because {'the function raises' if self.ok else 'the modes do not agree'}.")
            return
        title, *tables = self.bench.blocks()
        assert isinstance(title, Remark)  # which the page has
        try:
            charts: list[Block] = [Picture(svg) for svg in timings_svgs(self.bench)]
        except MissingExtraError as error:
            charts = [Remark(f"No charts: {error}", "note")]
        yield Beside(charts)
        yield from tables

    def _graphs(self) -> Iterator[Block]:
        graphs = {"Captured": self.before, "Optimized": self.after}
        known = {title: graph for title, graph in graphs.items() if graph is not None}
        if not known:
            yield Remark("The program was not captured.")
            return
        yield Remark("Point at a box for its operands and the line it comes from. Thick frames are results.", "note")
        yield Beside([picture(graph, f"{title}: {len(graph)} nodes") for title, graph in known.items()])
        for title, graph in known.items():
            yield Section(f"{title} graph as text", [Code(_cut(str(graph)))], closed=True)

    def _rewrites(self) -> Iterator[Block]:
        rows = [
            (r["pass"], "", r["rule"], r["line"], r["where"], f"{r['operations']:,.0f}")
            if "rule" in r
            else (r["pass"], f"{r['nodes_before']} to {r['nodes_after']}", "", "", "", "")
            for r in self.rewrites()
        ]
        if rows:
            yield Table(rows, ("pass", "nodes", "rule", "line", "at", "operations saved"))
        else:
            yield Remark("No pass has changed the graph.")


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


def picture(graph: Graph, title: str) -> Block:
    """The drawing of a graph; words where it is too large for one."""
    if len(graph) > DRAWN:
        return Remark(f"{title}: too many to draw; the text below has them.")
    return Picture(graph.to_svg(title), title, pans=True)


def _cut(lines: str) -> str:
    every = lines.splitlines()
    more = [f"... {len(every) - TEXT_LINES} more lines"] if len(every) > TEXT_LINES else []
    return "\n".join([*every[:TEXT_LINES], *more])
