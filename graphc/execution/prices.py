"""What it costs to keep a value until it is read again, and to compute it a second time.

Prices are in scalar operations (graphc.rewrite.cost). What is computed again is by default only what XLA fuses into its
readers, and no long chains of that; a budget of memory asks for more (see `graphc.execution.budget`).
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Mapping
from typing import NamedTuple

from graphc.ir import INPUT, Node
from graphc.ir.cut import NEVER, Price
from graphc.ops import Op, Trait
from graphc.ops.aval import Aval
from graphc.rewrite.cost import work


class Recomputation(NamedTuple):
    """What may be computed again, to save memory.

    byte      what a byte is worth that is written, kept and read again
    chain     the most operations an element, one after the other, between what is kept
    products  whether also what XLA does not fuse: products, convolutions, sums, sorts
    """

    # a float32 that costs one exponential is not kept, one that costs two is
    byte: int = 3
    chain: float = 24
    products: bool = False


USUAL = Recomputation()


def movable(node: Node) -> bool:
    """Whether nobody can tell where, or whether, or how often, `node` is computed."""
    return not (node.op.impure or node.check is not None)


def repeatable(node: Node, again: Recomputation) -> bool:
    """Whether `node` may be computed twice."""
    if not movable(node):
        return False
    return _cheap(node.op) or (again.products and not node.op.several and not node.op.structured)


@functools.cache
def _cheap(op: Op) -> bool:
    """Whether XLA fuses `op` into what reads it: pointwise operations, and linear ones that move or sum elements."""
    fused = op.pointwise or op.view or bool(op.traits & Trait.LINEAR)
    return fused and op.flops is None and not op.impure


def prices(
    nodes: Mapping[int, Node],
    early: Mapping[int, Collection[int]],
    first: Collection[int],
    results: Collection[int],
    read: Collection[int],
    again: Recomputation = USUAL,
) -> dict[int, Price]:
    """The prices of the values `early`, by node, with their operands.

    first    the values that the first part computes anyway
    results  those that it returns: they cost little to keep
    read     the inputs that the second part has anyway
    """
    found: dict[int, Price] = {}
    chains: dict[int, float] = {}  # operations an element that computing a value again takes, and those before it
    for id in early:
        node = nodes[id]
        if node.op is INPUT:
            found[id] = Price(0 if id in read else _held(node, again), NEVER)
            continue
        if not node.inputs:
            found[id] = Price(0, 0)  # constants are repeated
            continue
        hand_over = NEVER if node.op.several else _held(node, again)
        # what forward has no use for is computed once, in either part; if it makes no difference, when it is needed
        compute = 0
        hand_over += id not in first
        chain = max([chains.get(i, 0.0) for i in node.inputs])
        if id in first:
            cost = work(node, nodes) if repeatable(node, again) else NEVER
            chain += cost / max(node.size, 1)
            compute = int(cost) if chain <= again.chain else NEVER
        chains[id] = 0.0 if compute >= NEVER else chain
        found[id] = Price(-(-hand_over // 4) if id in results else hand_over, compute)
    return found


def _held(node: Node, again: Recomputation) -> int:
    """The price of keeping a value: never 0, not even of an empty one, for that would say that it is there anyway."""
    return max(again.byte * size_of(node.aval), 1)


def size_of(aval: Aval) -> int:
    """The bytes of an array."""
    return aval.size * aval.dtype.itemsize
