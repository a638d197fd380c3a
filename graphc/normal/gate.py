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
from graphc.normal.lift import forms_of, is_lifted
from graphc.ops import Op, Trait
from graphc.rewrite.cost import operations


def adds_up(node: Node) -> bool:
    """Whether a node adds up many elements."""
    return _adds_up(node.op)


def multiplies(node: Node) -> bool:
    """Whether a node adds up products."""
    return _multiplies(node.op)


def copies(node: Node) -> bool:
    """Whether a node's elements are elements of its operands, at other places."""
    return node.op.moves and Trait.LINEAR in node.op.traits


FEW_COLUMNS = 32  # of a thin product
MOST_PARTS = 16  # of an array, that are looked for in others


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
    added      the most elements of a sum of arrays, or of some side by side
    computed   whether anything is computed
    composed   whether it is an array that is scaled, or added to one that has a structure
    number     whether it is one number in every place, not zero
    parts      the arrays that are added, scaled, or laid side by side
    thin       whether it has a product of few columns and rows: writing it, for a sum over it, may be most of the work;
               or one that is scaled by what it multiplies
    """

    sums: frozenset[int] = frozenset()
    structure: bool = False
    zeros: bool = False
    outer: bool = False
    scaled: bool = False
    added: int = 0
    computed: bool = False
    composed: bool = False
    number: bool = False
    parts: frozenset[int] = frozenset()
    thin: bool = False


def may_gain(members: Sequence[int], nodes: Mapping[int, Node], users: Mapping[int, list[int]]) -> dict[int, bool]:
    """The nodes of a region, whose members are given in order, with which it may cost less in another form.

    True: they may themselves; False: they are products that need not wait until what they read is put together.
    """
    flows: dict[int, _Flow] = {}
    factors: dict[frozenset[int], int] = {}  # that products multiply, and the product
    found: dict[int, bool] = {}

    def flow(id: int) -> _Flow:
        if id not in flows:  # views of atoms, and numbers: few
            node = nodes[id]
            below = node.op.view or not node.inputs
            flows[id] = _Flow(parts=frozenset([_base(id, nodes)]))
            if below and is_lifted(node, nodes):
                given = [flow(i) for i in node.inputs]
                flows[id] = _through(node, nodes, given, _sums(given))
        return flows[id]

    for id in members:
        node = nodes[id]
        below = [flows.get(i) or flow(i) for i in node.inputs]
        sums = _sums(below)
        if adds_up(node):
            itself = any(multiplies(nodes[k]) for k in sums)
            if multiplies(node):
                itself = itself or any(f.structure for f in below) or _has_orders(node, nodes)
                for pair in _pairs(below):
                    twin = factors.setdefault(pair, id)
                    if twin != id:
                        found[twin] = itself = True
                if itself or any(f.composed for f in below) or sum([f.added for f in below]) > 2 * node.size:
                    found[id] = itself
            elif itself or any(f.outer or f.scaled or f.zeros or f.thin for f in below):
                found[id] = True
            thin = multiplies(node) and len(users.get(id, ())) == 1 and _is_thin(node, nodes)
            flows[id] = _Flow(frozenset([id]), computed=True, parts=frozenset([id]), thin=thin)
            continue
        joins, several = _joins(node), len(node.inputs) > 1
        adds = several and not node.op.bilinear and (node.op.pointwise or joins)
        if (
            (
                node.op.view
                and below[0].computed
                and node.size < nodes[node.inputs[0]].size
                and _parts_only(node.inputs[0], nodes, users)
            )
            # pieces of one array, perhaps in its order
            or (joins and len(node.inputs) > 2 and _alike(node, nodes))
            or (several and (node.op.pointwise or joins) and all(f.outer for f in below))
            or (adds and _have_a_common_factor([f.sums for f in below], nodes))
        ):
            found[id] = True
        flows[id] = _through(node, nodes, below, sums)
        if flows[id].thin and len(users.get(id, ())) > 1:  # written for others
            flows[id] = flows[id]._replace(thin=False)
    return found


def _pairs(below: Sequence[_Flow]) -> list[frozenset[int]]:
    """What a product multiplies with each other, if it is written for the parts of its operands."""
    several = itertools.combinations(below, 2)
    pairs = itertools.chain.from_iterable([itertools.product(a.parts, b.parts) for a, b in several])
    return [frozenset(pair) for pair in pairs]


def _alike(node: Node, nodes: Mapping[int, Node]) -> bool:
    """Whether all operands show one array."""
    return len({_base(i, nodes) for i in node.inputs}) == 1


def _is_thin(node: Node, nodes: Mapping[int, Node]) -> bool:
    """Whether a product is larger than its factors, and adds up few products for each element."""
    larger = node.size > max([nodes[i].size for i in node.inputs])
    return larger and operations(node, nodes) <= 2 * FEW_COLUMNS * node.size


def _is_quadratic(product: int, node: Node, nodes: Mapping[int, Node]) -> bool:
    """Whether a node scales a product by what that multiplies: a sum over (X A) * X is one over (X'X) * A."""
    read = {_base(i, nodes) for i in nodes[product].inputs} if multiplies(nodes[product]) else set[int]()
    return any(_base(i, nodes) in read for i in node.inputs)


def _has_orders(node: Node, nodes: Mapping[int, Node]) -> bool:
    """Whether a node multiplies more than two arrays with each other."""
    if len(node.inputs) < 3:
        return False
    form = forms_of({node.id: node}, nodes)[node.id]
    return any(len(term.factors) > 2 for term in form.terms)


def _sums(below: Sequence[_Flow]) -> frozenset[int]:
    """The nodes that add up in any of these."""
    found = [f.sums for f in below if f.sums]
    return found[0].union(*found[1:]) if found else frozenset()


def _joins(node: Node) -> bool:
    """Whether a node lays several arrays side by side."""
    return len(node.inputs) > 1 and node.op.moves


def _through(node: Node, nodes: Mapping[int, Node], below: Sequence[_Flow], sums: frozenset[int]) -> _Flow:
    """What is above a node that adds nothing up, but has `sums` below it."""
    own = frozenset([node.id])
    if not node.inputs:
        one_number = node.size > 1 and _is_one_number(node, nodes)
        return _Flow(structure=node.size > 1, zeros=node.size > 1 and not one_number, number=one_number, parts=own)
    op = node.op
    if len(below) == 1 and op.pointwise:
        return below[0] if below[0].computed else below[0]._replace(computed=True)
    sizes = [1 if f.number else nodes[i].size for f, i in zip(below, node.inputs, strict=True)]
    parts = below[0].parts.union(*[f.parts for f in below[1:]])
    many = len(parts) > MOST_PARTS
    found = _Flow(
        sums,
        many or any(f.structure and not (f.number and op.bilinear) for f in below),
        any(f.zeros for f in below),
        any(f.outer for f in below),
        len(below) == 1 and below[0].scaled,
        max(f.added for f in below),
        not op.view or any(f.computed for f in below),
        any(f.composed for f in below),
        False,
        frozenset() if many else parts,
        any(f.thin for f in below),
    )
    if not op.pointwise:
        larger = node.size > sum(sizes)
        zeros = found.zeros or (larger and not op.view)
        if _joins(node):
            again = len({_base(i, nodes) for i in node.inputs}) < len(node.inputs)
            structure = found.structure or larger or again
            return found._replace(structure=structure, zeros=zeros, outer=True, added=max(found.added, node.size))
        turned = op.moves and not op.view and node.size == sum(sizes)  # which no sum need see
        return found._replace(structure=found.structure or larger or turned, zeros=zeros, outer=found.outer or turned)
    if not op.bilinear:
        doubled = len({*node.inputs}) < len(node.inputs)  # x + x is x, scaled
        composed = found.composed or doubled or found.structure
        # of a sum with an array of no structure, a product is no less than the one with that
        structure = many or all(f.structure or n < node.size for f, n in zip(below, sizes, strict=True))
        outer = found.outer or max(sizes) < node.size
        added = max(found.added, node.size)
        return found._replace(added=added, composed=composed, structure=structure, outer=outer)
    if max(sizes) < node.size:
        return found._replace(structure=True, outer=True, parts=own)
    if min(sizes) == node.size:  # by an array of the same size: no order of sums goes past it, but by an outer product
        kept = found.zeros or found.outer
        above = sums if all(f.sums for f in below) else frozenset[int]()
        thin = found.thin or any(_is_quadratic(k, node, nodes) for k in sums)
        return _Flow(above, kept, found.zeros, found.outer, computed=True, parts=own, thin=thin)
    place = sizes.index(max(sizes))
    there = _is_there(node.inputs[place], nodes)
    scaled, composed = there or below[place].scaled, there or found.composed
    return found._replace(scaled=scaled, composed=composed, parts=below[place].parts)


def _is_one_number(node: Node, nodes: Mapping[int, Node]) -> bool:
    """Whether an array that reads none has one number, that is not zero, in every place."""
    terms = forms_of({node.id: node}, nodes)[node.id].terms
    return len(terms) == 1 and not terms[0].factors and terms[0].elements() == node.size and bool(terms[0].coefficient)


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
