"""The memory that single operations take besides their operands and results."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from graphc.ir import Node
from graphc.lowering.windows import copies
from graphc.ops.aval import Aval


class Copy(NamedTuple):
    """What is made of an operand before an operation begins: arrays of these bytes, each of the one before."""

    operand: int
    sizes: tuple[int, ...]


def size_of(avals: Sequence[Aval]) -> int:
    """The bytes of arrays."""
    return sum([aval.size * aval.dtype.itemsize for aval in avals])


def copies_of(node: Node, nodes: Mapping[int, Node]) -> list[Copy]:
    """The copies of its operands that `node` reads in their place."""
    if node.op.structured or node.op.several:
        return []
    avals = [nodes[i].aval for i in node.inputs]
    made = copies(node.op.name, avals, node.params)
    width = node.dtype.itemsize
    return [Copy(node.inputs[k], tuple(count * width for count in counts)) for k, *counts in made]


def scratch_of(node: Node, nodes: Mapping[int, Node]) -> int:
    """Bytes that `node` needs while it runs."""
    if node.op.structured:
        return _of_bodies(node)
    if "reverse" in node.op.params:  # a scan along an axis, which XLA does in blocks
        return size_of(node.results)
    return 0


def _of_bodies(node: Node) -> int:
    from graphc.footprint.liveness import liveness  # a body is a program
    from graphc.ir.structure import bodies

    inside = [liveness(body) for body in bodies(node)]
    return max([found.temporaries + found.outputs for found in inside], default=0)
