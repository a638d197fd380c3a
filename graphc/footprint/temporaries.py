"""The memory that single operations take besides their operands and results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from graphc.ir import Graph, Node
from graphc.ir.structure import bodies
from graphc.lowering import factors, orders, windows
from graphc.ops.aval import Aval


class Copy(NamedTuple):
    """What is made of an operand before an operation begins: arrays of these bytes, each of the one before."""

    operand: int
    sizes: tuple[int, ...]


def size_of(avals: Sequence[Aval]) -> int:
    """The bytes of arrays."""
    return sum([aval.nbytes for aval in avals])


def copies_of(node: Node, nodes: Mapping[int, Node]) -> list[Copy]:
    """The copies of its operands that `node` reads in their place."""
    if node.op.structured or node.op.several:
        return []
    avals = [nodes[i].aval for i in node.inputs]
    made = windows.copies(node.op.name, avals, node.params)
    width = node.dtype.itemsize
    return [Copy(node.inputs[k], tuple(count * width for count in counts)) for k, *counts in made]


def ordered_by(node: Node, nodes: Mapping[int, Node]) -> int:
    """The bytes of what `node`, if it sorts, orders in place of its operand, and reads its results off."""
    if node.op.name not in orders.OVERRIDES:
        return 0
    return orders.words(nodes[node.inputs[0]].aval, node.params["axis"], node.params.get("first"))


def multiplies_pixels(node: Node, nodes: Mapping[int, Node]) -> bool:
    """Whether `node` is a convolution that is a product of matrices."""
    return windows.multiplies(node.op.name, [nodes[i].aval for i in node.inputs], node.params)


def scratch_of(node: Node, nodes: Mapping[int, Node], inside: Callable[[Graph], int]) -> int:
    """Bytes that `node` needs while it runs; those of a graph that it runs are `inside(graph)`."""
    if node.op.structured:
        return max([inside(body) for body in bodies(node)], default=0)
    if node.op in factors.FACTORED:  # what its factors are made from, and these
        return 2 * size_of(nodes[node.inputs[0]].results)
    if node.op in factors.BY_COLUMNS and (node.op.several or node.type != nodes[node.inputs[-1]].type):
        return size_of(nodes[node.inputs[0]].results)
    if "reverse" in node.op.params:  # a scan along an axis, which XLA does in blocks
        return size_of(node.results)
    return 0
