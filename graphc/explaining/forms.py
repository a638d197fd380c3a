"""The forms of sums of products that were tried, and what each would cost: found by searching once more."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, final

from graphc.explaining.expressions import names_in, written
from graphc.ir import Graph, Node
from graphc.normal.bounds import BOUNDS, WIDER, Bounds
from graphc.normal.find import Region
from graphc.normal.regions import promising, rewrite_regions
from graphc.normal.trial import Trial
from graphc.passes import Settings
from graphc.passes.settings import WIDE


class Form(NamedTuple):
    """An expression, and what the region would cost by it, as rules count (graphc.rewrite.cost)."""

    text: str
    units: float


class Tried(NamedTuple):
    """A region of sums of products: its nodes, what it costs as written, and other forms, the cheapest first.

    shared  what is read elsewhere as well, if the forms are those that there would be without that
    """

    members: tuple[int, ...]
    where: str
    written: str
    units: float
    forms: tuple[Form, ...]
    shared: tuple[str, ...] = ()


@final
class _Forms:
    """The forms of regions that a search tries, by region."""

    def __init__(self, graph: Graph):
        self._graph = graph
        self._names = names_in(graph)
        self.of: dict[Region, dict[str, float]] = {}

    def watch(self, region: Region, price: float, nodes: Mapping[int, Node], roots: tuple[int, ...]) -> None:
        """See `graphc.normal.trial.Watch`."""
        every = {**self._graph.nodes, **nodes}
        text = written(every, nodes.keys(), [id for id in roots if id in nodes], self._names)
        forms = self.of.setdefault(region, {})
        forms[text] = min(price, forms.get(text, price))

    def tried(self, region: Region, units: float, shared: Sequence[int] = ()) -> Tried:
        """What was tried for a region."""
        nodes, names = self._graph.nodes, self._names
        dearest = max(region.members, key=lambda id: nodes[id].size)
        forms = [Form(text, price) for text, price in self.of[region].items()]
        found = [written(nodes, _below(nodes, id, region.members), [id], names) for id in shared]
        text = written(nodes, region.members, region.roots, names)
        forms.sort(key=lambda form: form.units)
        return Tried(region.members, nodes[dearest].where, text, units, tuple(forms), tuple(found))


def tried(graph: Graph, settings: Settings) -> list[Tried]:
    """The regions of `graph` for which other forms were tried, as the pass "sums of products" finds them, or would be
    if less were enough to be saved."""
    forms, users = _Forms(graph), graph.users()
    bounds = bounds_for(settings)
    rewrite_regions(graph, bounds._replace(enough=1 - bounds.worth), forms.watch)
    trial = Trial(graph, users)
    return [forms.tried(region, trial.price(region.members)) for region in forms.of]


def hindered(graph: Graph, settings: Settings) -> list[Tried]:
    """The regions of `graph` that would have a cheaper form, were not something inside them read elsewhere as well."""
    forms, users, bounds = _Forms(graph), graph.users(), bounds_for(settings)
    trial = Trial(graph, users, bounds, forms.watch)
    found: list[Tried] = []
    for region in promising(graph, users):
        inner = {i for id in region.members for i in graph.nodes[id].inputs}
        shared = [id for id in region.roots if id in inner and not graph.nodes[id].op.view]
        alone = region._replace(roots=tuple([id for id in region.roots if id not in shared]))
        if not shared or not alone.roots:
            continue
        units = trial.price(region.members)
        best = trial.best(alone, bounds.hopeful * units)
        if best is not None and best[0] <= bounds.enough * units:
            found.append(forms.tried(alone, units, shared))
    return found


def bounds_for(settings: Settings) -> Bounds:
    """How far the pass searches."""
    return WIDER if settings.level >= WIDE else BOUNDS


def _below(nodes: Mapping[int, Node], id: int, members: Collection[int]) -> set[int]:
    """The members that a node is computed from, itself included."""
    found: set[int] = set()
    stack = [id]
    while stack:
        k = stack.pop()
        if k in members and k not in found:
            found.add(k)
            stack += nodes[k].inputs
    return found
