"""`steps`: one pass, or one application of a rule, after the other, each with the graph before and after it."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from graphc.ir import Graph
from graphc.ir.structure import bodies
from graphc.passes import Settings, default_passes, settings_for
from graphc.passes.pipeline import Pass, Simplify, optimize_bodies
from graphc.passes.settings import USUAL
from graphc.rewrite import Firing


class Step(NamedTuple):
    """What one mechanism did. Printed, it is its name and the lines of the graph that changed.

    name    of the pass, or of the rule
    where   the user's line, of a rule
    before, after  the graphs
    inside  the name of the graph, of those that loops and branches run; "" for the whole
    """

    name: str
    where: str
    before: Graph
    after: Graph
    inside: str = ""

    @property
    def lines(self) -> list[str]:
        """The lines of the graph's text that differ, those that are gone with a "-", new ones with a "+"."""
        old, new = (str(graph).splitlines() for graph in (self.before, self.after))
        found = list(difflib.unified_diff(old, new, lineterm="", n=0))[2:]
        return [f"{line[0]} {line[1:].strip()}" for line in found if not line.startswith("@@")]

    def __str__(self) -> str:
        place = f" at {self.where}" if self.where else ""
        inside = f" in {self.inside}" if self.inside else ""
        return "\n".join([f"{self.name}{place}{inside}", *(f"  {line}" for line in self.lines)])


def steps(
    graph: Graph, *, strict: bool = False, level: int = USUAL, without: str | Collection[str] = (),
    passes: Sequence[tuple[str, Pass]] | None = None,
) -> Iterator[Step]:  # fmt: skip
    """What `graphc.optimize` does to `graph`, step by step; arguments are as there. Steps that change nothing are left
    out. The `after` of the last one is what `optimize` returns.

    >>> import eager as torch, graphc
    >>> for step in graphc.steps(graphc.trace(lambda x: (-(-x)) * 1.0, torch.zeros(3))):
    ...     print(step)
    neg_neg at ...
      - v1: f32[3] = neg(x)  # ...
      - v2: f32[3] = neg(v1)  # ...
      - v4: f32[3] = mul(v2, v3)  # ...
      + v4: f32[3] = mul(x, v3)  # ...
    mul_one at ...
      - v3: f32 = constant(value=1.0)  # ...
      - v4: f32[3] = mul(x, v3)  # ...
      - return v4
      + return x
    """
    return _steps(graph, settings_for(strict, level, without), passes, "")


def _steps(
    graph: Graph, settings: Settings, passes: Sequence[tuple[str, Pass]] | None, inside: str
) -> Iterator[Step]:  # fmt: skip
    inner = {id(body): body for node in graph.operations() for body in bodies(node)}
    for body in inner.values():
        yield from _steps(body, settings, passes, f"{inside}/{body.name}" if inside else body.name)
    graph = optimize_bodies(graph, settings, passes)
    for name, run in default_passes(settings) if passes is None else passes:
        after = run(graph)
        if after is graph or after == graph:
            continue
        if isinstance(run, Simplify):
            yield from _firings(graph, run, inside)
        else:
            yield Step(name, "", graph, after, inside)
        graph = after


def _firings(graph: Graph, run: Simplify, inside: str) -> Iterator[Step]:
    """A step for each time that a rule fired: the pass is run until the first, until the second, ..."""
    before, count = graph, 0
    while True:
        done: list[Firing] = []
        after = Simplify(run.rules, count + 1, done)(graph)
        if len(done) <= count:
            return
        count = len(done)
        yield Step(done[-1].rule, done[-1].where, before, after, inside)
        before = after
