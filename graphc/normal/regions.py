"""Regions of a graph that are sums of products, written anew where the plans of their forms cost less.

A region is what is multilinear between atoms below and roots above, which something else reads. What the forms of its
roots are depends on which of its nodes are atoms as well: each choice is written and what that costs counted, of all
roots together; the cheapest is taken if it saves enough.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from graphc.ir import Builder, Graph, Node
from graphc.normal.bounds import BOUNDS, Bounds
from graphc.normal.find import Region, regions_of
from graphc.normal.gate import may_gain, may_start_gain
from graphc.normal.plan import Memory
from graphc.normal.trial import Choice, Trial, Watch
from graphc.normal.write import Writer, lifted_below
from graphc.rewrite.cost import node_cost

# nodes of regions for which nothing cheaper was found, and whether they were at stake: see `at_stake`
Vain = dict[int, tuple[Node, bool]]


class Rewritten(NamedTuple):
    """A region that was: the user's line of its dearest node, what it cost and costs now, in scalar operations."""

    where: str
    before: float
    after: float

    def __str__(self) -> str:
        return f"sum of products at {self.where or 'unknown line'}: {self.before:,.0f} -> {self.after:,.0f} operations"


def rewrite_regions(
    graph: Graph, bounds: Bounds = BOUNDS, watch: Watch | None = None, vain: Vain | None = None
) -> tuple[Graph, list[Rewritten]]:
    """`graph` with its regions in their cheapest forms, and those that changed. Rounds differently.

    watch  is told of each form that is tried, see `Watch`
    vain   what was searched in vain in this graph as it was before; what is in this search is added
    """
    vain = {} if vain is None else vain
    nodes = graph.nodes
    users = graph.users()
    regions = promising(graph, users)
    if not regions:
        return graph, []
    trial = Trial(graph, users, bounds, watch)
    least = bounds.worth * trial.total
    chosen: dict[int, tuple[Region, Choice]] = {}
    found: list[Rewritten] = []
    alike: dict[Any, _Better | None] = {}  # of regions like this one
    for region, points in regions.items():
        if sum([node_cost(nodes[id], nodes) for id in region.members]) < least:
            continue
        key = _key(region, nodes)
        if key not in alike:
            alike[key] = _better(region, points, least, trial, vain)
        better = alike[key]
        if better is not None:
            part = _part(region, [region.members[k] for k in better.members], users)
            choice = Choice(frozenset([region.members[k] for k in better.atoms]), better.hopes)
            chosen.update(dict.fromkeys(part.roots, (part, choice)))
            where = max(region.members, key=lambda id: node_cost(nodes[id], nodes))
            found.append(Rewritten(nodes[where].where, better.before, better.after))
    return (_rewritten(graph, chosen, users) if found else graph), found


class _Better(NamedTuple):
    """A cheaper form: what the region costs and would cost, the places among its members of those written anew, and of
    their atoms; see `Choice`."""

    before: float
    after: float
    members: list[int]
    atoms: list[int]
    hopes: bool


def _better(region: Region, points: Mapping[int, bool], least: float, trial: Trial, vain: Vain) -> _Better | None:
    """The cheapest form that is found; None if it saves too little. points: what `may_gain` finds.

    A region is not searched again if little is new: its nodes that are, and what is at stake only now or because of
    them, cost less than must be saved.
    """
    bounds, nodes, users = trial.bounds, trial.nodes, trial.users
    before = trial.price(region.members)
    enough = max(before - bounds.enough * before, least)  # to be saved
    stake = frozenset(at_stake(points, region, nodes, users))

    def is_known(id: int) -> bool:
        node, was_at_stake = vain.get(id, (None, False))
        return node is nodes[id] and (was_at_stake or id not in stake)

    new = {id: gains for id, gains in points.items() if not is_known(id)}
    other = {id for id in region.members if not is_known(id)}.union(at_stake(new, region, nodes, users))
    most = min(trial.price(other), trial.price(stake))
    if not most or most < enough:
        return None
    part = _up_to(points, region, nodes, users)
    own = trial.price(part.members)
    share = trial.price(_with_what_is_theirs(stake, nodes, users)) / trial.total
    best = trial.best(part, own - (1 - bounds.hopeful) * before, share)
    if best is None or best[0] > own - enough:
        vain.update({id: (nodes[id], id in stake) for id in region.members})
        return None
    after = before - own + best[0]
    # what is above may be less in the same forms, or one with them
    whole = trial.cost(region, best[1]) if part.members != region.members else None
    if whole is not None and whole <= after:
        part, after = region, whole
    place = {id: k for k, id in enumerate(region.members)}
    members, atoms = ([place[id] for id in ids] for ids in (part.members, best[1].atoms))
    return _Better(before, after, members, atoms, best[1].hopes)


def promising(graph: Graph, users: Mapping[int, list[int]]) -> dict[Region, dict[int, bool]]:
    """The regions that may have cheaper forms, and the nodes with which: see `may_gain`."""
    nodes = graph.nodes
    seeds = {id for id, node in nodes.items() if may_start_gain(node, nodes)}
    found = regions_of(graph, users, seeds) if seeds else []
    points = [may_gain(region.members, nodes, users) for region in found]
    return {region: own for region, own in zip(found, points, strict=True) if own}


def _up_to(
    points: Collection[int], region: Region, nodes: Mapping[int, Node], users: Mapping[int, list[int]]
) -> Region:
    """The part of a region that its nodes `points` are computed from: what is above stays as it is."""
    below = set(points)
    for id in reversed(region.members):
        if id in below:
            below.update(nodes[id].inputs)
    return _part(region, [id for id in region.members if id in below], users)


def _part(region: Region, members: Sequence[int], users: Mapping[int, list[int]]) -> Region:
    above = frozenset(region.members).difference(members)
    roots = frozenset(region.roots)
    return Region(tuple(members), tuple([id for id in members if id in roots or not above.isdisjoint(users[id])]))


def _key(region: Region, nodes: Mapping[int, Node]) -> Any:
    """What a region is, but for the numbers of its nodes and what it reads."""
    own = [*lifted_below(region, nodes), *region.members]
    number = {id: k for k, id in enumerate(own)}
    read: dict[int, int] = {}
    key: list[Any] = [tuple([number[id] for id in region.roots])]
    for id in own:
        node = nodes[id]
        inputs = tuple([number[i] if i in number else -1 - read.setdefault(i, len(read)) for i in node.inputs])
        key.append((node.key(inputs), node.shape))
    return tuple(key), tuple([nodes[i].aval for i in read])


def _rewritten(graph: Graph, chosen: Mapping[int, tuple[Region, Choice]], users: Mapping[int, list[int]]) -> Graph:
    """`graph` with each root in `chosen` written by its region's forms, so chosen."""
    builder = Builder.beside(graph.nodes)
    new: dict[int, int] = {}
    writers: dict[tuple[int, ...], Writer] = {}
    for id, node in graph.nodes.items():
        builder.copy(node, tuple([new.get(i, i) for i in node.inputs]))
        if id in chosen:
            region, (atoms, hopes) = chosen[id]
            writer = writers.get(region.roots)
            if writer is None:
                memory = Memory(hopes=hopes)
                writer = writers[region.roots] = Writer(builder, graph.nodes, region, atoms, new, users, memory)
            new[id] = writer.symbol(id).id
    return graph.rewired(builder.nodes, new)


def _with_what_is_theirs(some: Collection[int], nodes: Mapping[int, Node], users: Mapping[int, list[int]]) -> set[int]:
    """These nodes, and what nothing else needs: solutions that are added may be one."""
    found = set(some)
    below = [i for id in some for i in nodes[id].inputs]
    while below:
        id = below.pop()
        if id not in found and found.issuperset(users[id]):
            found.add(id)
            below += nodes[id].inputs
    return found


def at_stake(
    points: Mapping[int, bool], region: Region, nodes: Mapping[int, Node], users: Mapping[int, list[int]]
) -> list[int]:
    """The members of a region that there may be less of: no form saves more than these cost.

    points: what `may_gain` finds. What something else reads as well is computed for that.
    """
    found: list[int] = []
    alone = set(points)
    roots = frozenset(region.roots)
    for id in reversed(region.members):
        if points.get(id) or (id not in roots and alone.issuperset(users[id])):
            found.append(id)
            alone.add(id)
    return found
