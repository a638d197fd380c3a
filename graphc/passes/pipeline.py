"""`optimize`: the one ordered list of passes, and the record of what each did."""

from __future__ import annotations

import functools
import time
from collections import Counter
from collections.abc import Callable, Collection, Container, Sequence
from functools import partial
from typing import Any, NamedTuple, final

from graphc import logs
from graphc.ir import Graph
from graphc.ir.definitions import without_composites
from graphc.ir.garbage_collection import without_collector
from graphc.ir.structure import map_bodies
from graphc.normal.bounds import BOUNDS, WIDER
from graphc.normal.regions import Vain, rewrite_regions
from graphc.passes.assumptions import drop_proven
from graphc.passes.bands import split_bands
from graphc.passes.batching import batch_products
from graphc.passes.causal import split_triangles
from graphc.passes.channels import join_channels
from graphc.passes.cse import eliminate_common_subexpressions
from graphc.passes.dce import eliminate_dead_code
from graphc.passes.demand import narrow
from graphc.passes.exponentials import part_exponentials
from graphc.passes.extremes import single_extremes
from graphc.passes.fold import fold_constants
from graphc.passes.halves import halve_solutions
from graphc.passes.inverses import expand_inverses
from graphc.passes.maps import batch_rows
from graphc.passes.monomials import collect_terms
from graphc.passes.nans import fold_numbers
from graphc.passes.opaque import without_rules
from graphc.passes.pairs import triangles_of_pairs
from graphc.passes.places import regular_places
from graphc.passes.quotients import cancel_quotients
from graphc.passes.repeats import FEWEST
from graphc.passes.rolling import MANY, roll_repeats
from graphc.passes.rules import ALL, cumulation, linalg, scattering
from graphc.passes.scaled_sums import take_out_factors
from graphc.passes.settings import DEFAULT, LOWERING, USUAL, VERSIONS, WIDE, Settings, settings_of
from graphc.passes.settled import Pass, settling
from graphc.passes.slices import batch_slices
from graphc.passes.solves import solve_systems
from graphc.passes.spectra import without_spectra
from graphc.passes.spelling import as_before, multilinear
from graphc.passes.structured import hoist_invariants, trim_control_flow
from graphc.passes.sums import join_pads, shorten_sums
from graphc.passes.sums_of_sums import join_sums
from graphc.passes.support import shrink
from graphc.passes.transforms import by_transforms
from graphc.passes.versions import in_versions
from graphc.passes.windows import join_windows
from graphc.passes.written import add_what_is_written
from graphc.rewrite import EXACT, REASSOCIATES, Firing, Licence, RewriteRule, RuleIndex, changed, rewrite

MUCH = 0.8  # of what a region cost, left at most: then forms are looked for again
SWEEPS = 8  # simplification stops by itself long before


class Origin(NamedTuple):
    """What `optimize` was given, so that what it did can be told in detail (`graphc.explaining`) when somebody asks."""

    graph: Graph
    settings: Settings
    passes: Sequence[tuple[str, Pass]] | None


class Record(NamedTuple):
    """What one pass did: its name, the number of nodes before and after, the rules that fired, other things to tell;
    with the first record of a run, where it came from."""

    name: str
    before: int
    after: int
    firings: tuple[Firing, ...] = ()
    notes: tuple[str, ...] = ()
    origin: Origin | None = None


@final
class Simplify:
    """The pass that applies `rules` until none fires: what `simplify` returns."""

    def __init__(self, rules: Sequence[RewriteRule], most: int | None = None, firings: list[Firing] | None = None):
        self.rules = tuple(rules)
        self._table = _index(self.rules)
        self._most = most
        self._done: list[Firing] = [] if firings is None else firings

    def __call__(self, graph: Graph, where: Container[int] | None = None) -> Graph:
        """where: the nodes at which rules are tried; None: all"""
        most, done = self._most, self._done
        for _ in range(SWEEPS):
            rewritten, fired = rewrite(graph, self._table, where, None if most is None else most - len(done))
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


def simplify(rules: Sequence[RewriteRule], *, most: int | None = None, firings: list[Firing] | None = None) -> Simplify:
    """A pass that applies `rules` until none fires.

    most     how often rules may fire in all graphs that the pass is given; None: as often as they match
    firings  a list for what they have done, in order (the harness finds the first that is wrong by bisection)
    """
    return Simplify(rules, most, firings)


@settling
def folded(graph: Graph) -> Graph:
    """`graph` with constants folded, and what is a constant but for nan."""
    return fold_numbers(fold_constants(graph))


DISTRIBUTING = frozenset(("factors of sums", "sums of products", "like terms"))  # passes that take factors out of sums

# by name, as rules are taken from ALL: what is put in a rule's place there, a planted fault say, reaches this pass too
_PICKED = frozenset([rule.name for rule in (*linalg.RULES, *scattering.RULES, *cumulation.RULES)])


@functools.lru_cache(maxsize=16)
def _index(rules: tuple[RewriteRule, ...]) -> RuleIndex:
    """What has been looked up for one graph is known for the next."""
    return RuleIndex(rules)


def rules_for(licence: Licence, without: Collection[str] = ()) -> list[RewriteRule]:
    """The rules that claim no more than `licence`, but those `without`."""
    return [rule for rule in ALL if rule.licence <= licence and rule.name not in without]


def default_passes(settings: Settings = DEFAULT) -> tuple[tuple[str, Pass], ...]:
    """The passes, in order; those that `settings` allow."""
    return tuple([(name, run) for name, licence, run in _passes(settings) if settings.allow(name, licence)])


def _passes(settings: Settings) -> tuple[tuple[str, Licence, Pass], ...]:
    """All passes, in order, each with the licence that it claims."""
    # in this order, for constants that are equal when folded are one
    once = (("constant folding", EXACT, folded), ("common subexpressions", EXACT, eliminate_common_subexpressions))
    dead, trim = ("dead code", EXACT, eliminate_dead_code), ("control flow", EXACT, trim_control_flow)
    demand = "demand", REASSOCIATES, narrow
    # before these nothing is computed twice; arrays of zeros but for some elements are for sums of products to see
    picked = simplify([rule for rule in ALL if rule.name in _PICKED and rule.name not in settings.without])
    rows = "rows of products", REASSOCIATES, picked
    bands = "bands", REASSOCIATES, split_bands
    algebra = (
        *once,
        ("extremes", REASSOCIATES, single_extremes),
        bands,
        ("support", REASSOCIATES, shrink),
        demand,
        rows,
        ("windows", REASSOCIATES, join_windows),
        ("sums of sums", REASSOCIATES, join_sums),
        ("factors of sums", REASSOCIATES, take_out_factors),
        ("exponentials", REASSOCIATES, part_exponentials),
        ("sums of products", REASSOCIATES, partial(sums_of_products, settings=settings, vain={})),
    )
    return (
        ("gradient rules", EXACT, without_rules),
        ("definitions", EXACT, partial(without_composites, exact=settings.licence is EXACT)),
        dead,
        ("assumptions", REASSOCIATES, drop_proven),
        (VERSIONS, REASSOCIATES, partial(versions, settings=settings)),
        ("spectra", REASSOCIATES, without_spectra),
        ("inverses", REASSOCIATES, expand_inverses),
        ("places", REASSOCIATES, regular_places),
        *once,
        ("writes into constants", REASSOCIATES, add_what_is_written),
        ("pairs", REASSOCIATES, triangles_of_pairs),
        ("channels", REASSOCIATES, join_channels),
        ("slices", REASSOCIATES, batch_slices),
        ("pads", REASSOCIATES, join_pads),
        ("triangles", REASSOCIATES, split_triangles),
        *algebra,
        ("repeats", REASSOCIATES, partial(repeats, settings=settings)),
        trim,
        ("loop invariants", EXACT, hoist_invariants),
        ("rows of scans", REASSOCIATES, batch_rows),
        ("products of scans", REASSOCIATES, batch_products),
        ("sums", REASSOCIATES, shorten_sums),
        trim,
        *algebra,
        ("transforms", REASSOCIATES, partial(by_transforms, uneven=settings.level >= WIDE)),
        ("systems", REASSOCIATES, solve_systems),
        ("halves of solutions", REASSOCIATES, halve_solutions),
        ("quotients", REASSOCIATES, cancel_quotients),
        ("simplify", EXACT, simplify(rules_for(settings.licence, settings.without))),
        ("like terms", REASSOCIATES, partial(like_terms, settings=settings)),
        demand,  # of what rules have moved a slice to
        dead,
        trim,
    )


def mechanisms() -> dict[str, str]:
    """What `without=` takes: name -> "pass", "rule" or "lowering", in the order in which they are used.

    >>> import graphc
    >>> [name for name, kind in graphc.mechanisms().items() if kind == "lowering"]
    ['packs', 'channels last', 'shared factorizations', 'transposed operands', 'products by blocks', 'sums by columns']
    """
    passes = dict.fromkeys([name for name, _, _ in _passes(Settings())], "pass")
    return passes | dict.fromkeys([rule.name for rule in ALL], "rule") | dict.fromkeys(LOWERING, "lowering")


def settings_for(strict: bool = False, level: int = USUAL, without: str | Collection[str] = ()) -> Settings:
    """The settings that these keywords of `optimize` stand for. Raises ValueError as `optimize` does."""
    return settings_of(mechanisms() if without else (), strict, level, without)


def sums_of_products(graph: Graph, settings: Settings, vain: Vain, again: bool = False) -> Graph:
    """`graph` with its products in their cheapest order and structure.

    vain   see `rewrite_regions`
    again  whether such a search has just found something, see `Bounds.again`
    """
    spelled = multilinear(graph)
    bounds = WIDER if settings.level >= WIDE else BOUNDS
    rewritten, found = rewrite_regions(spelled, bounds.again() if again else bounds, vain=vain)
    if not found:
        return graph
    clean = eliminate_dead_code(eliminate_common_subexpressions(fold_constants(as_before(rewritten, spelled, graph))))
    clean = _recorded(clean, Record("sums of products", len(graph), len(clean), notes=tuple(_counted(found))))
    narrowed = (
        narrow(clean) if settings.allow("demand", REASSOCIATES) else clean
    )  # of what products read parts only now
    if narrowed is not clean:
        return sums_of_products(eliminate_common_subexpressions(narrowed), settings, vain, again=True)
    # what is much less was a sum that had to be an atom, of which the forms may be known now
    much = any(each.after <= MUCH * each.before for each in found)
    return sums_of_products(clean, settings, vain, again=True) if much else clean


def like_terms(graph: Graph, settings: Settings = DEFAULT) -> Graph:
    """`graph` with like terms collected, and simplified again if there were any."""
    collected = collect_terms(graph)
    if collected is graph:
        return graph
    clean = eliminate_dead_code(collected)
    rules = simplify(rules_for(settings.licence, settings.without))
    return rules(clean, changed(graph, clean)) if settings.allow("simplify") else clean


def _counted(found: Sequence[Any]) -> list[str]:
    """A line for each, those that are equal once."""
    return [f"{line}, {n} times" if n > 1 else line for line, n in Counter(map(str, found)).items()]


def versions(graph: Graph, settings: Settings = DEFAULT) -> Graph:
    """`graph` with a cheaper version for what turns out to be positive."""
    once = settings._replace(without=settings.without | {VERSIONS})
    both, asked = in_versions(graph, partial(optimize, **once._asdict()))
    return _recorded(both, Record(VERSIONS, len(graph), len(both), notes=tuple(map(str, asked)))) if asked else graph


def layers_of_packs(graph: Graph, settings: Settings) -> Graph:
    """`graph`, whose state lies in packs, with its many layers as loops: they read the packs row by row."""
    return repeats(graph, settings, MANY) if settings.allow("repeats", REASSOCIATES) else graph


def repeats(graph: Graph, settings: Settings = DEFAULT, fewest: int = FEWEST) -> Graph:
    """`graph` with its repeated structure as loops, of at least so many steps."""
    rolled, loops = roll_repeats(graph, partial(optimize, **settings._asdict()), fewest)
    if not loops:
        return graph
    return _recorded(rolled, Record("repeats", len(graph), len(rolled), notes=tuple(map(str, loops))))


def _recorded(graph: Graph, record: Record) -> Graph:
    same = Graph(graph.name, graph.nodes, graph.inputs, graph.result, (*graph.history, record), graph.call)
    same.settled |= graph.settled
    return same


def optimize_bodies(graph: Graph, settings: Settings, passes: Sequence[tuple[str, Pass]] | None = None) -> Graph:
    """`graph` with the graphs that its nodes run optimized; arguments are as for `optimize`."""
    inner: dict[int, Graph] = {}  # a body that several operations have in common is optimized once

    def optimized(body: Graph) -> Graph:
        if id(body) not in inner:
            inner[id(body)] = optimize(body, passes=passes, **settings._asdict())
        return inner[id(body)]

    return map_bodies(graph, optimized) if any(op.structured for op in graph.ops) else graph


PASS_DONE = "%s: %s, %d -> %d nodes, %.0f ms"


@without_collector
def optimize(
    graph: Graph, *, strict: bool = False, level: int = USUAL, without: str | Collection[str] = (),
    passes: Sequence[tuple[str, Pass]] | None = None, after_each: Callable[[str, Graph], Any] | None = None,
) -> Graph:  # fmt: skip
    """An equivalent graph that costs no more.

    strict      apply only what gives the same bits (licence EXACT)
    level       0: nothing; 1: what is exact and cheap: common subexpressions, constants, dead code, exact rules;
                2: all; 3: all, and the search for cheaper sums of products goes on longer; Toeplitz matrices multiply
                by Fourier transforms, in which numbers that are small beside others lose digits
    without     names of passes, rules and choices of the lowering to leave out; `mechanisms()` has them
    passes      another list of (name, pass); by default `default_passes()`
    after_each  called with the name of each pass and its result (the harness compares values there)

    Raises ValueError for another level, or an unknown name.

    >>> import eager as torch, graphc
    >>> g = graphc.trace(lambda x: (-(-x)) * 1.0 + 2.0 * 3.0, torch.zeros(3))
    >>> print(graphc.optimize(g))
    def lambda_(x: f32[3]):
        v5: f32 = constant(value=6.0)  # ...
        v6: f32[3] = add(x, v5)  # ...
        return v6
    <BLANKLINE>
    """
    settings = settings_for(strict, level, without)
    source, told = graph, len(graph.history)
    graph = optimize_bodies(graph, settings, passes)
    idle: dict[Pass, Graph] = {}  # the graph that a pass has found nothing to do in: it is not asked again
    for name, run in default_passes(settings) if passes is None else passes:
        before, start = graph, time.perf_counter()
        if idle.get(run) is not graph:
            graph = run(graph)
            if graph is before:
                idle[run] = graph
        if len(graph.history) == len(before.history) and graph is not before:
            graph = _recorded(graph, Record(name, len(before), len(graph)))
        if graph is not before:
            logs.passes.info(PASS_DONE, graph.name, name, len(before), len(graph), 1000 * (time.perf_counter() - start))
        if after_each is not None:
            after_each(name, graph)
    if len(graph.history) == told:
        return graph
    first = graph.history[told]._replace(origin=Origin(source, settings, passes))
    history = (*graph.history[:told], first, *graph.history[told + 1 :])
    return Graph(graph.name, graph.nodes, graph.inputs, graph.result, history, graph.call)
