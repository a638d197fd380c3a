"""Which regions are worth a look: in one pass over their nodes, without forms.

A region can become cheaper where sums meet: a sum of a sum, whose order may be another; a sum over what has a structure
(numbers, zeros around, an outer product, something scaled); a sum of which a part is read; two with a factor in common.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from graphc.ir import Node
from graphc.ir.graph import INPUT
from graphc.normal.lift import is_lifted
from graphc.ops import Op, Trait


def adds_up(node: Node) -> bool:
    """Whether a node adds up many elements."""
    return _adds_up(node.op)


def multiplies(node: Node) -> bool:
    """Whether a node adds up products."""
    return _multiplies(node.op)


@functools.cache
def _adds_up(op: Op) -> bool:
    return (bool(op.traits & Trait.LINEAR) and not op.moves and not op.pointwise) or _multiplies(op)


@functools.cache
def _multiplies(op: Op) -> bool:
    return op.flops is not None and (bool(op.traits & Trait.CONTRACTS) or op.lifting is not None)


def may_start_gain(node: Node, nodes: Mapping[int, Node]) -> bool:
    """Whether a node is such that a region with it may gain: without one, nothing adds up, no pieces are put together,
    nothing that is computed is read in part, and products are of arrays of their own size."""
    op = node.op
    if not op.pointwise:
        return _adds_up(op) or _joins(node) or (op.view and node.size < nodes[node.inputs[0]].size)
    return op.bilinear and len(node.inputs) > 1 and node.size > max([nodes[i].size for i in node.inputs])


class _Flow(NamedTuple):
    """What reaches a node through others that add nothing up.

    sums       nodes that add up
    structure  whether there is any that helps a sum above
    zeros      whether that is zeros, which stay what they are in a product
    outer      whether it is larger than what it is made of: an outer product, arrays side by side, or a sum of some
    scaled     whether it is an array in memory times a smaller one: what a product reads and adds up at once
    added      the most elements of a sum of arrays
    computed   whether anything is computed
    """

    sums: frozenset[int] = frozenset()
    structure: bool = False
    zeros: bool = False
    outer: bool = False
    scaled: bool = False
    added: int = 0
    computed: bool = False


_NOTHING = _Flow()


def may_gain(members: Sequence[int], nodes: Mapping[int, Node], users: Mapping[int, list[int]]) -> bool:
    """Whether the nodes of a region, in order, may cost less in another form."""
    flows: dict[int, _Flow] = {}
    pairs: set[frozenset[int]] = set()

    def flow(id: int) -> _Flow:
        if id not in flows:  # views of atoms, and numbers: few
            node = nodes[id]
            below = node.op.view or not node.inputs
            flows[id] = _NOTHING
            if below and is_lifted(node, nodes):
                found = [flow(i) for i in node.inputs]
                flows[id] = _through(node, nodes, found, _sums(found))
        return flows[id]

    for id in members:
        node = nodes[id]
        below = [flows.get(i) or flow(i) for i in node.inputs]
        sums = _sums(below)
        if adds_up(node):
            if multiplies(node):
                helped = any(f.structure or f.added > 2 * node.size for f in below)
            else:
                helped = any(f.outer or f.scaled or f.zeros for f in below)
            if helped or any(multiplies(nodes[k]) for k in sums):
                return True
            if multiplies(node):
                if len(node.inputs) > 2:
                    return True  # in one order or another
                pair = frozenset([_base(i, nodes) for i in node.inputs])
                if pair in pairs:
                    return True
                pairs.add(pair)
            flows[id] = _Flow(frozenset([id]), computed=True)
            continue
        if (
            node.op.view
            and below[0].computed
            and node.size < nodes[node.inputs[0]].size
            and _parts_only(node.inputs[0], nodes, users)
        ):
            return True
        joins = _joins(node)
        if joins and len(node.inputs) > 2 and len({_base(i, nodes) for i in node.inputs}) == 1:
            return True  # pieces of one array, perhaps in its order
        several = len(node.inputs) > 1
        if several and (node.op.pointwise or joins) and all(f.outer for f in below):
            return True
        adds = several and not node.op.bilinear and (node.op.pointwise or joins)
        if adds and _have_a_common_factor([f.sums for f in below], nodes):
            return True
        flows[id] = _through(node, nodes, below, sums)
    return False


def _sums(below: Sequence[_Flow]) -> frozenset[int]:
    """The nodes that add up in any of these."""
    found = [f.sums for f in below if f.sums]
    return found[0].union(*found[1:]) if found else frozenset()


def _joins(node: Node) -> bool:
    """Whether a node lays several arrays side by side."""
    return len(node.inputs) > 1 and node.op.moves


def _through(node: Node, nodes: Mapping[int, Node], below: Sequence[_Flow], sums: frozenset[int]) -> _Flow:
    """What is above a node that adds nothing up, but has `sums` below it."""
    if not node.inputs:
        return _Flow(structure=node.size > 1, zeros=node.size > 1)
    op = node.op
    if len(below) == 1 and op.pointwise:
        return below[0] if below[0].computed else below[0]._replace(computed=True)
    sizes = [nodes[i].size for i in node.inputs]
    found = _Flow(
        sums,
        any(f.structure for f in below),
        any(f.zeros for f in below),
        any(f.outer for f in below),
        len(below) == 1 and below[0].scaled,
        max(f.added for f in below),
        not op.view or any(f.computed for f in below),
    )
    if not op.pointwise:
        larger = node.size > sum(sizes)
        zeros = found.zeros or (larger and not op.view)
        joins = _joins(node)
        return found._replace(structure=found.structure or larger or joins, zeros=zeros, outer=found.outer or joins)
    if not op.bilinear:
        doubled = len({*node.inputs}) < len(node.inputs)  # x + x is x, scaled
        return found._replace(added=max(found.added, node.size), structure=found.structure or doubled)
    if max(sizes) < node.size:
        return found._replace(structure=True, outer=True)
    if min(sizes) == node.size:  # by an array of the same size: no order of sums goes past it, but by an outer product
        kept = found.zeros or found.outer
        own = sums if all(f.sums for f in below) else frozenset[int]()
        return _Flow(own, kept, found.zeros, found.outer, computed=True)
    place = sizes.index(max(sizes))
    there = _is_there(node.inputs[place], nodes)
    return found._replace(structure=found.structure or there, scaled=there or below[place].scaled)


def _base(id: int, nodes: Mapping[int, Node]) -> int:
    """The array that a view shows."""
    while nodes[id].op.view:
        id = nodes[id].inputs[0]
    return id


def _is_there(id: int, nodes: Mapping[int, Node]) -> bool:
    """Whether an array is in memory: not something that a loop computes on the way."""
    node = nodes[_base(id, nodes)]
    return node.op is INPUT or multiplies(node)


def _parts_only(id: int, nodes: Mapping[int, Node], users: Mapping[int, list[int]]) -> bool:
    """Whether all that read a node are views of a part of it, which are not all of it together."""
    readers = [nodes[k] for k in users.get(id, ())]
    return all(r.op.view for r in readers) and sum([r.size for r in readers]) < nodes[id].size


def _have_a_common_factor(sums: Sequence[Collection[int]], nodes: Mapping[int, Node]) -> bool:
    """Whether products that are added have an operand in common."""
    factors = [{_base(i, nodes) for k in own if multiplies(nodes[k]) for i in nodes[k].inputs} for own in sums]
    return any(a & b for a, b in itertools.combinations(factors, 2))
