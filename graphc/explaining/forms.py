"""The forms of sums of products that were tried, and what each would cost: found by searching once more."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from graphc.explaining.expressions import names_in, written
from graphc.ir import Graph, Node
from graphc.normal.bounds import BOUNDS, WIDER
from graphc.normal.find import Region
from graphc.normal.regions import rewrite_regions
from graphc.normal.trial import Trial
from graphc.passes import Settings
from graphc.passes.settings import WIDE


class Form(NamedTuple):
    """An expression, and what the region would cost by it, as rules count (graphc.rewrite.cost)."""

    text: str
    units: float


class Tried(NamedTuple):
    """A region of sums of products: its nodes, what it costs as written, and other forms, the cheapest first.

    shared  expressions in it that are read elsewhere as well, and so stay
    """

    members: tuple[int, ...]
    where: str
    written: str
    units: float
    forms: tuple[Form, ...]
    shared: tuple[str, ...]


def tried(graph: Graph, settings: Settings) -> list[Tried]:
    """The regions of `graph` for which other forms were tried, as the pass "sums of products" finds them."""
    names = names_in(graph)
    found: dict[Region, dict[str, float]] = {}

    def watch(region: Region, price: float, nodes: Mapping[int, Node], roots: tuple[int, ...]) -> None:
        every = {**graph.nodes, **nodes}
        text = written(every, nodes.keys(), [id for id in roots if id in nodes], names)
        forms = found.setdefault(region, {})
        forms[text] = min(price, forms.get(text, price))

    rewrite_regions(graph, WIDER if settings.level >= WIDE else BOUNDS, watch)
    trial, uses = Trial(graph, graph.users()), graph.users()
    result: list[Tried] = []
    for region, forms in found.items():
        members = set(region.members)
        dearest = max(region.members, key=lambda id: graph.nodes[id].size)
        inner = {i for id in region.members for i in graph.nodes[id].inputs if i in members}
        shared = [id for id in region.roots if id in inner and not graph.nodes[id].op.view]
        result.append(
            Tried(
                region.members,
                graph.nodes[dearest].where,
                written(graph.nodes, region.members, region.roots, names),
                trial.price(region.members),
                tuple(sorted([Form(text, price) for text, price in forms.items()], key=lambda form: form.units)),
                tuple([written(graph.nodes, _below(graph, id, members), [id], names) for id in shared if uses[id]]),
            )
        )
    return result


def _below(graph: Graph, id: int, members: set[int]) -> set[int]:
    """The members that a node is computed from, itself included."""
    found: set[int] = set()
    stack = [id]
    while stack:
        k = stack.pop()
        if k in members and k not in found:
            found.add(k)
            stack += graph.nodes[k].inputs
    return found
