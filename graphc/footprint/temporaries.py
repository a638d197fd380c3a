"""The memory that single operations take while they run, besides operands and results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from graphc.ir import Node
from graphc.ir.structure import SCAN, SWITCH, WHILE, bodies
from graphc.ops.aval import Aval
from graphc.ops.dtypes import is_inexact


def size_of(avals: Sequence[Aval]) -> int:
    """The bytes of arrays."""
    return sum([aval.size * aval.dtype.itemsize for aval in avals])


def scratch_of(node: Node, nodes: Mapping[int, Node]) -> int:
    """Bytes of temporaries of `node`."""
    op = node.op
    if op.structured:
        return _of_bodies(node, nodes)
    return 0


def _of_bodies(node: Node, nodes: Mapping[int, Node]) -> int:
    from graphc.footprint.liveness import liveness  # a body is a program

    inside = [liveness(body) for body in bodies(node)]
    return max([found.temporaries + found.outputs for found in inside], default=0)
