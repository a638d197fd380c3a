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
    outer      whether it is an outer product, or a sum of some
    """

    sums: frozenset[int] = frozenset()
    structure: bool = False
    zeros: bool = False
    outer: bool = False


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
            helped = any(f.structure if multiplies(node) else f.outer or f.zeros for f in below)
            if helped or any(multiplies(nodes[k]) for k in sums):
                return True
            if multiplies(node):
                pair = frozenset([_base(i, nodes) for i in node.inputs])
                if pair in pairs:
                    return True
                pairs.add(pair)
            flows[id] = _Flow(frozenset([id]))
            continue
        if (
            node.op.view
            and (sums or _is_computed(node.inputs[0], nodes))
            and node.size < nodes[node.inputs[0]].size
            and _parts_only(node.inputs[0], nodes, users)
        ):
            return True
        joins = len(node.inputs) > 1 and bool(node.op.traits & Trait.MOVES)
        if joins and len(node.inputs) > 2 and len({_base(i, nodes) for i in node.inputs}) == 1:
            return True  # pieces of one array, perhaps in its order
        adds = len(node.inputs) > 1 and not node.op.traits & Trait.BILINEAR and (node.op.pointwise or joins)
        if adds and (all(f.outer for f in below) or _have_a_common_factor([f.sums for f in below], nodes)):
            return True
        flows[id] = _through(node, nodes, below)
    return False


def _through(node: Node, nodes: Mapping[int, Node], below: Sequence[_Flow]) -> _Flow:
    """What is above a node that adds nothing up."""
    if not node.inputs:
        return _Flow(structure=node.size > 1, zeros=node.size > 1)
    sums = frozenset[int]().union(*[f.sums for f in below])
    structure, zeros = any(f.structure for f in below), any(f.zeros for f in below)
    sizes = [nodes[i].size for i in node.inputs]
    if not node.op.pointwise:
        larger = node.size > sum(sizes)
        return _Flow(sums, structure or larger, zeros or (larger and not node.op.view))
    if not node.op.traits & Trait.BILINEAR:
        structure |= len({*node.inputs}) < len(node.inputs)  # x + x is x, scaled
        return _Flow(sums, structure, zeros, any(f.outer for f in below))
    if len(sizes) == 1 or max(sizes) < node.size:
        return _Flow(sums, structure or len(sizes) > 1, zeros, len(sizes) > 1)
    if min(sizes) == node.size:  # by an array of the same size: no order of sums goes past it
        return _Flow(sums if all(f.sums for f in below) else frozenset(), zeros, zeros)
    large = node.inputs[sizes.index(max(sizes))]
    return _Flow(sums, structure or _is_there(large, nodes), zeros)


def _base(id: int, nodes: Mapping[int, Node]) -> int:
    """The array that a view shows."""
    while nodes[id].op.view:
        id = nodes[id].inputs[0]
    return id


def _is_computed(id: int, nodes: Mapping[int, Node]) -> bool:
    """Whether a loop computes what is shown: parts of it may be computed without the rest."""
    node = nodes[_base(id, nodes)]
    return bool(node.inputs) and not adds_up(node)


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
