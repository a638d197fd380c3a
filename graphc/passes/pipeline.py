"""`optimize`: the one ordered list of passes, and the record of what each did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from graphc.ir import Graph
from graphc.ir.memory import without_collector
from graphc.ir.structure import map_bodies
from graphc.normal.regions import rewrite_regions
from graphc.passes.batching import batch_products
from graphc.passes.cse import eliminate_common_subexpressions
from graphc.passes.dce import eliminate_dead_code
from graphc.passes.demand import narrow
from graphc.passes.fold import fold_constants
from graphc.passes.inverses import expand_inverses
from graphc.passes.monomials import collect_terms
from graphc.passes.numbers import fold_numbers
from graphc.passes.opaque import without_rules
from graphc.passes.quotients import cancel_quotients
from graphc.passes.rolling import roll_repeats
from graphc.passes.rules import ALL
from graphc.passes.solves import solve_systems
from graphc.passes.structured import hoist_invariants, trim_control_flow
from graphc.passes.sums import join_pads, shorten_sums
from graphc.rewrite import EXACT, REASSOCIATES, Firing, Licence, RewriteRule, RuleIndex, changed, rewrite

Pass = Callable[[Graph], Graph]
SWEEPS = 8  # simplification stops by itself long before


class Record(NamedTuple):
    """What one pass did: its name, the number of nodes before and after, the rules that fired, other things to tell."""

    name: str
    before: int
    after: int
    firings: tuple[Firing, ...] = ()
    notes: tuple[str, ...] = ()


def simplify(rules: Sequence[RewriteRule], *, most: int | None = None, firings: list[Firing] | None = None) -> Pass:
    """A pass that applies `rules` until none fires.

    most     how often rules may fire in all graphs that the pass is given; None: as often as they match
    firings  a list for what they have done, in order (the harness finds the first that is wrong by bisection)
    """
    table = RuleIndex(rules)
    done = [] if firings is None else firings

    def run(graph: Graph) -> Graph:
        where = None
        for _ in range(SWEEPS):
            rewritten, fired = rewrite(graph, table, where, None if most is None else most - len(done))
            if most is not None:
                done.extend(fired)
            if not fired:
                break
            clean = eliminate_dead_code(eliminate_common_subexpressions(folded(rewritten)))
            before = graph
            graph = _recorded(clean, Record("simplify", len(graph), len(clean), tuple(fired)))
            where = changed(before, clean)  # what rules have made, and what other passes have merged
            if not where:
                break
        return graph

    return run


def folded(graph: Graph) -> Graph:
    """`graph` with constants folded, and what is a constant but for nan."""
    return fold_numbers(fold_constants(graph))


def rules_for(licence: Licence) -> list[RewriteRule]:
    """The rules that claim no more than `licence`."""
    return [rule for rule in ALL if rule.licence <= licence]


def default_passes(licence: Licence = REASSOCIATES) -> tuple[tuple[str, Pass], ...]:
    """The passes, in order."""
    once = (("common subexpressions", eliminate_common_subexpressions), ("constant folding", folded))
    trim, hoist = ("control flow", trim_control_flow), ("loop invariants", hoist_invariants)
    rules = "simplify", simplify(rules_for(licence))
    first = ("gradient rules", without_rules), ("dead code", eliminate_dead_code)
    last = ("dead code", eliminate_dead_code), trim
    if licence < REASSOCIATES:
        return (*first, trim, hoist, trim, *once, rules, *last)
    # before these nothing is computed twice
    algebra = (*once, ("demand", narrow), ("sums of products", sums_of_products))
    return (
        *first,
        ("inverses", expand_inverses),
        ("pads", join_pads),
        *algebra,
        ("repeats", repeats),
        trim,
        hoist,
        ("products of scans", batch_products),
        ("sums", shorten_sums),
        trim,
        *algebra,
        ("systems", solve_systems),
        ("quotients", cancel_quotients),
        rules,
        ("like terms", like_terms),
        ("demand", narrow),  # of what rules have moved a slice to
        *last,
    )


def sums_of_products(graph: Graph) -> Graph:
    """`graph` with its products in their cheapest order and structure."""
    rewritten, found = rewrite_regions(graph)
    if not found:
        return graph
    clean = eliminate_dead_code(eliminate_common_subexpressions(fold_constants(rewritten)))
    clean = _recorded(clean, Record("sums of products", len(graph), len(clean), notes=tuple(_counted(found))))
    narrowed = narrow(clean)  # of what products read parts only now
    return clean if narrowed is clean else sums_of_products(eliminate_common_subexpressions(narrowed))


def like_terms(graph: Graph) -> Graph:
    """`graph` with like terms collected, and simplified again if there were any."""
    collected = collect_terms(graph)
    return graph if collected is graph else simplify(rules_for(REASSOCIATES))(eliminate_dead_code(collected))


def _counted(found: Sequence[Any]) -> list[str]:
    """A line for each, those that are equal once."""
    return [f"{line}, {n} times" if n > 1 else line for line, n in Counter(map(str, found)).items()]


def repeats(graph: Graph) -> Graph:
    """`graph` with its repeated structure as loops."""
    rolled, loops = roll_repeats(graph, optimize)
    if not loops:
        return graph
    return _recorded(rolled, Record("repeats", len(graph), len(rolled), notes=tuple(map(str, loops))))


def _recorded(graph: Graph, record: Record) -> Graph:
    return Graph(graph.name, graph.nodes, graph.inputs, graph.result, (*graph.history, record), graph.call)


@without_collector
def optimize(
    graph: Graph, *, strict: bool = False, passes: Sequence[tuple[str, Pass]] | None = None,
    after_each: Callable[[str, Graph], Any] | None = None,
) -> Graph:  # fmt: skip
    """An equivalent graph that costs no more.

    strict      apply only rules that give the same bits (licence EXACT)
    passes      another list of (name, pass); by default `default_passes()`
    after_each  called with the name of each pass and its result (the harness compares values there)

    >>> import eager as torch, graphc
    >>> g = graphc.trace(lambda x: (-(-x)) * 1.0 + 2.0 * 3.0, torch.zeros(3))
    >>> print(graphc.optimize(g))
    def lambda_(x: f32[3]):
        v5: f32 = constant(value=6.0)  # ...
        v6: f32[3] = add(x, v5)  # ...
        return v6
    <BLANKLINE>
    """
    inner: dict[int, Graph] = {}  # a body that several operations have in common is optimized once

    def optimized(body: Graph) -> Graph:
        if id(body) not in inner:
            inner[id(body)] = optimize(body, strict=strict, passes=passes)
        return inner[id(body)]

    if any(op.structured for op in graph.ops):
        graph = map_bodies(graph, optimized)
    for name, run in default_passes(EXACT if strict else REASSOCIATES) if passes is None else passes:
        before = graph
        graph = run(graph)
        if len(graph.history) == len(before.history) and graph is not before:
            graph = _recorded(graph, Record(name, len(before), len(graph)))
        if after_each is not None:
            after_each(name, graph)
    return graph


def explain(graph: Any) -> str:
    """What the passes did to an optimized graph: nodes before and after each, which rule fired where, what it saved.

    For a compiled function, its signatures and their programs (see `graphc.compile`).
    """
    if hasattr(graph, "explain"):
        return graph.explain()
    if not graph.history:
        return f"{graph.name}: no pass has changed this graph ({len(graph)} nodes)"
    lines = [f"{graph.name}: {graph.history[0].before} -> {len(graph)} nodes"]
    for record in graph.history:
        lines.append(f"  {record.name}: {record.before} -> {record.after} nodes")
        lines += [f"    {note}" for note in record.notes]
        for (rule, where), times in Counter((f.rule, f.where) for f in record.firings).items():
            saved = sum(f.saved for f in record.firings if (f.rule, f.where) == (rule, where))
            count = f" x{times}" if times > 1 else ""
            lines.append(f"    {rule}{count} at {where or 'unknown line'}, saves {saved:,.0f} operations")
    return "\n".join(lines)
