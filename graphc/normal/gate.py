"""Which regions are worth a look: in one pass over their nodes, without forms.

A region can become cheaper where sums meet: a sum of a sum, whose order may be another; a sum over what has a structure
(numbers, zeros around, an outer product, something scaled); a sum of which a part is read; two with a factor in common.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from graphc.ir import Node
from graphc.ir.graph import INPUT
from graphc.normal.lift import is_lifted
from graphc.ops import Trait


def adds_up(node: Node) -> bool:
    """Whether a node adds up many elements."""
    traits = node.op.traits
    linear = bool(traits & Trait.LINEAR) and not traits & Trait.MOVES and not node.op.pointwise
    return linear or multiplies(node)


def multiplies(node: Node) -> bool:
    """Whether a node adds up products."""
    return node.op.flops is not None and bool(node.op.traits & Trait.CONTRACTS or node.op.lifting is not None)


class _Flow(NamedTuple):
    """What reaches a node through others that add nothing up.

    sums       nodes that add up
    structure  whether there is any that helps a sum above
    zeros      whether that is zeros, which stay what they are in a product
    outer      whether it is larger than what it is made of: an outer product, arrays side by side, or a sum of some
    added      the most elements of a sum of arrays
    computed   whether anything is computed
    """

    sums: frozenset[int] = frozenset()
    structure: bool = False
    zeros: bool = False
    outer: bool = False
    added: int = 0
    computed: bool = False


def may_gain(members: Sequence[int], nodes: Mapping[int, Node], users: Mapping[int, list[int]]) -> bool:
    """Whether the nodes of a region, in order, may cost less in another form."""
    flows: dict[int, _Flow] = {}
    pairs: set[frozenset[int]] = set()

    def flow(id: int) -> _Flow:
        if id not in flows:  # views of atoms, and numbers: few
            node = nodes[id]
            below = node.op.view or not node.inputs
            flows[id] = (
                _through(node, nodes, [flow(i) for i in node.inputs]) if below and is_lifted(node, nodes) else _Flow()
            )
        return flows[id]

    for id in members:
        node = nodes[id]
        below = [flow(i) for i in node.inputs]
        sums = frozenset[int]().union(*[f.sums for f in below])
        if adds_up(node):
            helped = any(f.structure or f.added > 2 * node.size if multiplies(node) else f.outer for f in below)
            if helped or any(multiplies(nodes[k]) for k in sums):
                return True
            if multiplies(node):
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
        adds = several and not node.op.traits & Trait.BILINEAR and (node.op.pointwise or joins)
        if adds and _have_a_common_factor([f.sums for f in below], nodes):
            return True
        flows[id] = _through(node, nodes, below)
    return False


def _joins(node: Node) -> bool:
    """Whether a node lays several arrays side by side."""
    return len(node.inputs) > 1 and bool(node.op.traits & Trait.MOVES)


def _through(node: Node, nodes: Mapping[int, Node], below: Sequence[_Flow]) -> _Flow:
    """What is above a node that adds nothing up."""
    if not node.inputs:
        return _Flow(structure=node.size > 1, zeros=node.size > 1)
    found = _Flow(
        frozenset[int]().union(*[f.sums for f in below]),
        any(f.structure for f in below),
        any(f.zeros for f in below),
        any(f.outer for f in below),
        max(f.added for f in below),
        not node.op.view or any(f.computed for f in below),
    )
    sizes = [nodes[i].size for i in node.inputs]
    if not node.op.pointwise:
        larger = node.size > sum(sizes)
        zeros = found.zeros or (larger and not node.op.view)
        joins = _joins(node)
        return found._replace(structure=found.structure or larger or joins, zeros=zeros, outer=found.outer or joins)
    if not node.op.traits & Trait.BILINEAR:
        return found._replace(added=max(found.added, node.size)) if len(sizes) > 1 else found
    if len(sizes) == 1:
        return found
    if max(sizes) < node.size:
        return found._replace(structure=True, outer=True)
    if min(sizes) == node.size:  # by an array of the same size: no order of sums goes past it
        sums = found.sums if all(f.sums for f in below) else frozenset[int]()
        return _Flow(sums, found.zeros, found.zeros, computed=True)
    large = node.inputs[sizes.index(max(sizes))]
    return found._replace(structure=found.structure or _is_there(large, nodes))


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
