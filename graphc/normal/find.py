"""Where sums of products begin and end in a graph: regions between atoms below and roots above."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from typing import NamedTuple

from graphc.ir import Graph, Node
from graphc.normal.gate import adds_up, multiplies
from graphc.normal.lift import is_lifted

MOST_NODES = 200  # of a region


class Region(NamedTuple):
    """The members in order, and those of them that are read by what is no member."""

    members: tuple[int, ...]
    roots: tuple[int, ...]


def regions_of(graph: Graph, users: Mapping[int, list[int]], seeds: Set[int]) -> list[Region]:
    """The regions with any of the nodes `seeds`, each with all roots that share something dear."""
    nodes, outputs = graph.nodes, set(graph.outputs)
    lifted = {id for id, node in nodes.items() if is_lifted(node, nodes)}
    group: dict[int, int] = {}

    def leader(id: int) -> int:
        while group[id] != id:
            group[id] = id = group[group[id]]
        return id

    dear = {id for id in lifted if nodes[id].inputs and not nodes[id].op.view}
    for id in nodes:  # views of what is dear are with it; those of atoms are with all that read them
        if id in lifted:
            below = [i for i in nodes[id].inputs if i in group]
            if id in dear or below:
                group[id] = id
                for i in below:
                    group[leader(i)] = id
    _join_sharers(nodes, group, leader)
    leaders = {leader(id) for id in seeds if id in group}
    members: dict[int, list[int]] = {}
    for id in group if leaders else ():
        if (first := leader(id)) in leaders:
            members.setdefault(first, []).append(id)
    found: list[Region] = []
    for own in members.values():
        if len(own) <= MOST_NODES:
            found.append(Region(tuple(own), tuple([id for id in own if _is_root(id, lifted, users, outputs)])))
        else:
            found += [piece for piece in _pieces(own, users, outputs) if not seeds.isdisjoint(piece.members)]
    return found


def _join_sharers(nodes: Mapping[int, Node], group: dict[int, int], leader: Callable[[int], int]) -> None:
    """Unite groups that add up products of the same arrays: what one computes, x'A in x'Ax, the other may need.

    (D B) A and B A meet in the product B A, which the first may have as well.
    """
    first: dict[frozenset[int], int] = {}
    pairs: list[tuple[int, int]] = []
    for id in group:
        if adds_up(nodes[id]):
            arrays = [_array_of(i, nodes) for i in nodes[id].inputs]
            for read in (frozenset(arrays), *_inner_pairs(arrays, group, nodes)):
                if leader(first.setdefault(read, id)) != leader(id):
                    pairs.append((first[read], id))
    sizes = Counter([leader(id) for id in group]) if pairs else Counter[int]()
    for a, b in pairs:
        a, b = leader(a), leader(b)
        if a != b and sizes[a] + sizes[b] <= MOST_NODES:
            group[a] = b
            sizes[b] += sizes[a]


def _inner_pairs(arrays: Sequence[int], group: Collection[int], nodes: Mapping[int, Node]) -> list[frozenset[int]]:
    """What a product of two multiplies in another order, where one of them is a product itself."""
    if len(arrays) != 2:
        return []
    ends = [
        [_array_of(i, nodes) for i in nodes[a].inputs] if a in group and multiplies(nodes[a]) else [] for a in arrays
    ]
    return [frozenset([a, arrays[1 - k]]) for k, own in enumerate(ends) for a in own]


def _array_of(id: int, nodes: Mapping[int, Node]) -> int:
    """The array that a sum reads: beneath views, and products with what is smaller."""
    while True:
        node = nodes[id]
        if node.op.view:
            id = node.inputs[0]
        elif node.op.pointwise and node.op.bilinear and len(node.inputs) == 2:
            larger, smaller = sorted(node.inputs, key=lambda i: -nodes[i].size)
            if nodes[smaller].size == nodes[larger].size or nodes[larger].size < node.size:
                return id
            id = larger
        else:
            return id


def _is_root(id: int, inside: Collection[int], users: Mapping[int, list[int]], outputs: Collection[int]) -> bool:
    return id in outputs or any(k not in inside for k in users.get(id, ()))


def _pieces(members: Sequence[int], users: Mapping[int, list[int]], outputs: Collection[int]) -> list[Region]:
    """A large region, cut where a node has several users."""
    top: dict[int, int] = {}  # the root of each
    for id in reversed(members):
        readers = users.get(id, [])
        alone = len(readers) == 1 and id not in outputs and readers[0] in top
        top[id] = top[readers[0]] if alone else id
    pieces: dict[int, list[int]] = {}
    for id in members:
        pieces.setdefault(top[id], []).append(id)
    return [Region(tuple(own), (root,)) for root, own in pieces.items() if 1 < len(own) <= MOST_NODES]
