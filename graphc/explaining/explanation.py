"""`explain`: what the passes did to a graph; in detail, region by region, and what they left as it was."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, final

from graphc.display import Block, Displayed, Remark, Section, plain
from graphc.explaining.changes import Change, Cost, changes
from graphc.explaining.forms import Form, tried
from graphc.explaining.kept import Kept, kept_in
from graphc.explaining.steps import Step, steps
from graphc.ir import Graph
from graphc.passes import Record, settings_for
from graphc.passes.pipeline import Origin
from graphc.passes.settings import USUAL

MOST_FORMS = 4  # considered, in the text; `to_dict()` has all


class Region(NamedTuple):
    """A region that a mechanism has changed.

    mechanism      the pass or the rule
    where, inside  the user's line; the loop or branch that the region is in
    written, plan  the expressions before and after
    before, after  what they cost
    considered     other forms, the cheapest first
    predicted, measured  seconds before and after, if they were asked for
    """

    mechanism: str
    where: str
    inside: str
    written: str
    plan: str
    before: Cost
    after: Cost
    considered: tuple[Form, ...] = ()
    predicted: tuple[float, float] | None = None
    measured: tuple[float, float] | None = None


@final
@dataclass(frozen=True, repr=False)
class Both(Displayed):
    """What a compiled function says of its programs, and the explanation of the latest one's graph."""

    programs: Displayed
    latest: Displayed

    __str__ = Displayed.text

    def blocks(self) -> Iterator[Block]:
        """One after the other."""
        yield from self.programs.blocks()
        yield from self.latest.blocks()

    def to_dict(self) -> dict[str, Any]:
        """programs, latest: those of the two."""
        return {"programs": self.programs.to_dict(), "latest": self.latest.to_dict()}


@final
@dataclass(frozen=True, repr=False)
class Explanation(Displayed):
    """What was done to a graph.

    nodes    before the passes, and after them
    records  what each pass did
    regions, kept  what changed and what did not, if details were asked for
    """

    name: str
    nodes: tuple[int, int]
    records: tuple[Record, ...]
    regions: tuple[Region, ...] = ()
    kept: tuple[Kept, ...] = ()

    @classmethod
    def of(cls, graph: Graph, regions: Sequence[Region] = (), kept: Sequence[Kept] = ()) -> Explanation:
        """What `graph` has been through."""
        before = graph.history[0].before if graph.history else len(graph)
        return cls(graph.name, (before, len(graph)), graph.history, tuple(regions), tuple(kept))

    def __str__(self) -> str:
        return self.text() if self.regions or self.kept else super().__str__()  # who asks for details wants them

    def to_dict(self) -> dict[str, Any]:
        """name, nodes: [before, after], passes, regions, kept."""
        passes = [
            {"name": r.name, "nodes": [r.before, r.after], "notes": [*r.notes], "rules": plain(r.firings)}
            for r in self.records
        ]
        regions, kept = plain(self.regions), plain(self.kept)
        return {"name": self.name, "nodes": [*self.nodes], "passes": passes, "regions": regions, "kept": kept}

    def blocks(self) -> Iterator[Block]:
        """The passes with the rules that fired; the regions; what was kept."""
        if not self.records:
            yield Remark(f"{self.name}: no pass has changed this graph ({self.nodes[1]} nodes)")
        else:
            title = Remark(f"{self.name}: {self.nodes[0]} -> {self.nodes[1]} nodes")
            yield Section(title, [*map(_of_record, self.records)])
        if self.regions:
            yield Section(Remark("regions:"), [*map(_of_region, self.regions)])
        if self.kept:
            kept = [Section(Remark(f"{k.form} at {k.where or 'unknown line'}"),
                            [Remark(f"not {k.instead}: {k.reason}")]) for k in self.kept]  # fmt: skip
            yield Section(Remark("kept:"), kept)


def explain(
    graph: Any, *, details: bool = False, measured: bool = False, strict: bool = False, level: int = USUAL,
    without: str | Collection[str] = (),
) -> Displayed:  # fmt: skip
    """What the passes did to an optimized graph: nodes before and after each, which rule fired where, what it saved.

    details   also each region as it was written and as it is now, what both cost, which other forms of it were
              considered; and where a tempting form was not taken, and why. The passes run once more for this: nothing
              is recorded before somebody asks.
    measured  also the seconds of each region before and after, predicted and measured
    strict, level, without  of a graph that no pass has changed: what it was optimized with

    Returns an `Explanation`: fields, a text, `to_dict()`, `to_json()`. For a compiled function, what its `explain()`
    says of its programs; and with `details` those of the latest program, too, as `Both`.

    >>> import eager as torch, graphc
    >>> g = graphc.optimize(graphc.trace(lambda a, x: a @ a @ x, torch.ones(90, 90), torch.ones(90)))
    >>> print(graphc.explain(g, details=True))
    lambda_: 4 -> 4 nodes
      sums of products: 4 -> 4 nodes
        sum of products at ...: 206,820 -> 16,740 operations
    regions:
      sums of products at ...
        written: matmul(matmul(a, a), x)
        plan:    einsum(a, einsum(a, x, equation='ab,b->a'), equation='ab,b->a')
        saves:   1,441,800 of 1,474,200 operations, 64,080 of 130,320 bytes; the cost is 206,820 -> 16,740
    """
    if hasattr(graph, "explain"):
        found: Displayed = graph.explain()
        return Both(found, explain(graph.graph, details=True, measured=measured)) if details or measured else found
    if not (details or measured):
        return Explanation.of(graph)
    origins = [record.origin for record in graph.history if record.origin is not None]
    settings = origins[-1].settings if origins else settings_for(strict, level, without)
    regions = [region for origin in origins for region in _regions(origin, measured)]
    return Explanation.of(graph, regions, kept_in(graph, settings))


def _regions(origin: Origin, measured: bool) -> list[Region]:
    """What the passes that began at `origin` changed, in order."""
    found: list[Region] = []
    for step in steps(origin.graph, passes=origin.passes, **origin.settings._asdict()):
        others = tried(step.before, origin.settings) if step.name == "sums of products" else []
        for change in changes(step.before, step.after):
            if change.before.units or change.after.units:
                own = [r for r in others if not set(change.gone).isdisjoint(r.members)]
                forms = [form for r in own for form in r.forms if form.text != change.plan]
                considered = tuple(sorted(forms, key=lambda form: form.units))
                found.append(_region(step, change, considered, measured))
    return found


def _region(step: Step, change: Change, considered: tuple[Form, ...], measured: bool) -> Region:
    region = Region(
        step.name, step.where or change.where, step.inside, change.written, change.plan, change.before, change.after,
        considered,
    )  # fmt: skip
    if not measured:
        return region
    from graphc.explaining.measuring import measure

    seconds = measure(step.before, step.after, change)
    return region if seconds is None else region._replace(**seconds._asdict())


def _of_record(record: Record) -> Block:
    """What one pass did: its notes, and which rule fired how often in which line."""
    lines = [*record.notes]
    for (rule, where), times in Counter((f.rule, f.where) for f in record.firings).items():
        saved = sum(f.saved for f in record.firings if (f.rule, f.where) == (rule, where))
        count = f" x{times}" if times > 1 else ""
        lines.append(f"{rule}{count} at {where or 'unknown line'}, saves {saved:,.0f} operations")
    return Section(Remark(f"{record.name}: {record.before} -> {record.after} nodes"), [*map(Remark, lines)])


def _of_region(r: Region) -> Block:
    inside = f" in {r.inside}" if r.inside else ""
    lines = [
        f"written: {r.written}",
        f"plan:    {r.plan or 'nothing: it is not needed'}",
        f"saves:   {r.before.operations - r.after.operations:,.0f} of {r.before.operations:,.0f} operations, "
        f"{r.before.bytes - r.after.bytes:,.0f} of {r.before.bytes:,.0f} bytes; "
        f"the cost is {r.before.units:,.0f} -> {r.after.units:,.0f}",
    ]
    for name, seconds in (("predicted", r.predicted), ("measured", r.measured)):
        if seconds is not None:
            lines.append(f"{name}: {seconds[0] * 1e6:,.1f} -> {seconds[1] * 1e6:,.1f} us")
    lines += [f"considered: {form.text}, at {form.units:,.0f}" for form in r.considered[:MOST_FORMS]]
    if len(r.considered) > MOST_FORMS:
        lines.append(f"considered: {len(r.considered) - MOST_FORMS} others")
    return Section(Remark(f"{r.mechanism} at {r.where or 'unknown line'}{inside}"), [*map(Remark, lines)])
