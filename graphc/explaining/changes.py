"""What differs between a graph and what a pass has made of it: regions, as written before and as they are now.

Passes keep the numbers of the nodes that they leave alone. So what has gone is the nodes of the graph before that are
not in the one after, what has come is the others, and what reads both tells which belong together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from graphc.explaining.expressions import names_in, written
from graphc.ir import Graph, Node, Ref
from graphc.ir.graph import INPUT
from graphc.rewrite.cost import node_cost, operations


class Cost(NamedTuple):
    """Of some nodes. operations: of scalars; bytes: read and written; units: as rules count (graphc.rewrite.cost)."""

    operations: float
    bytes: float
    units: float


class Change(NamedTuple):
    """A region that is another now.

    where          the user's line of its dearest node
    gone, come     the nodes of the graph before that are no more, and those of the one after that are new
    roots          (before, after): the nodes that are read by what is left
    written, plan  the expressions before and after
    before, after  what they cost
    """

    where: str
    gone: tuple[int, ...]
    come: tuple[int, ...]
    roots: tuple[tuple[int, ...], tuple[int, ...]]
    written: str
    plan: str
    before: Cost
    after: Cost


def cost_of(ids: Iterable[int], nodes: Mapping[int, Node]) -> Cost:
    """What these nodes cost, each by itself; views and numbers cost nothing."""
    own = [nodes[id] for id in ids]
    dear = [n for n in own if n.inputs and not n.op.view and not n.op.several and not n.op.structured]
    moved = sum(aval.nbytes for n in dear for one in (n, *(nodes[i] for i in n.inputs)) for aval in one.results)
    return Cost(sum(operations(n, nodes) for n in dear), moved, sum(node_cost(n, nodes) for n in dear))


def changes(before: Graph, after: Graph) -> list[Change]:
    """The regions in which two graphs differ, of which a pass has made the second from the first; in order."""
    old, new = before.nodes, after.nodes
    group: dict[tuple[str, int], tuple[str, int]] = {}

    def leader(key: tuple[str, int]) -> tuple[str, int]:
        while group.setdefault(key, key) != key:
            key = group[key]
        return key

    def join(a: tuple[str, int], b: tuple[str, int]) -> None:
        group[leader(a)] = leader(b)

    gone = {id for id, node in old.items() if id not in new or not _is_same(node, new[id])}
    come = {id for id, node in new.items() if id not in old or id in gone}
    pairs = [(a, b) for a, b in zip(before.outputs, after.outputs, strict=True) if a != b]
    for id in new.keys() - come:
        pairs += [(a, b) for a, b in zip(old[id].inputs, new[id].inputs, strict=True) if a != b]
    pairs += [(id, id) for id in gone & come]
    for side, some, nodes in (("gone", gone, old), ("come", come, new)):
        for id in some:
            leader((side, id))
            for i in nodes[id].inputs:
                if i in some:
                    join((side, id), (side, i))
    for a, b in pairs:
        if a in gone and b in come:
            join(("gone", a), ("come", b))
    regions: dict[Any, tuple[list[int], list[int]]] = {}
    for id in sorted(gone):
        regions.setdefault(leader(("gone", id)), ([], []))[0].append(id)
    for id in sorted(come):
        regions.setdefault(leader(("come", id)), ([], []))[1].append(id)
    names = names_in(before, after)
    return [_change(before, after, parts, pairs, names) for parts in regions.values()]


def _is_same(a: Node, b: Node) -> bool:
    """Whether a node is the same operation, perhaps on what its operands are now."""
    return a is b or (a.op is b.op and a.results == b.results and a.key(()) == b.key(()))


def _change(
    before: Graph, after: Graph, parts: tuple[list[int], list[int]], pairs: Sequence[tuple[int, int]],
    names: Mapping[int, str],
) -> Change:  # fmt: skip
    gone, come = parts
    old, new = before.nodes, after.nodes
    started = _read_elsewhere(before, gone)
    ended = _read_elsewhere(after, come) or [b for a, b in pairs if a in gone]
    dearest = max([*(old[id] for id in gone)] or [new[id] for id in come], key=lambda n: n.size * len(n.inputs))
    return Change(
        dearest.where or next((old[id].where for id in reversed(gone) if old[id].where), ""),
        tuple(gone), tuple(come), (tuple(started), tuple(dict.fromkeys(ended))),
        written(old, gone, started or gone[-1:], names), written(new, come, ended, names),
        cost_of(gone, old), cost_of(come, new),
    )  # fmt: skip


def _read_elsewhere(graph: Graph, some: Sequence[int]) -> list[int]:
    """The nodes of `some` that others, or the result, read."""
    inside, outputs = set(some), set(graph.outputs)
    found = {i for id, node in graph.nodes.items() if id not in inside for i in node.inputs if i in inside}
    return [id for id in some if id in found or id in outputs]


def part_of(graph: Graph, inside: Sequence[int], roots: Sequence[int]) -> Graph | None:
    """A graph of its own, in which the nodes `inside` compute `roots` from what they read. None if there is nothing."""
    if not inside or not roots:
        return None
    own = set(inside)
    read = dict.fromkeys(i for id in inside for i in graph.nodes[id].inputs if i not in own)
    read.update(dict.fromkeys(id for id in roots if id not in own))
    nodes: dict[int, Node] = {}
    for id in read:
        node = graph.nodes[id]
        nodes[id] = Node(id, INPUT, (), {"name": f"x{id}"}, node.results, node.where)
    nodes |= {id: graph.nodes[id] for id in sorted(own, key=list(graph.nodes).index)}
    return Graph("part", nodes, tuple(read), tuple(map(Ref, roots)))
