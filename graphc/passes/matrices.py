"""What a matrix that a graph computes is made of."""

from __future__ import annotations

from graphc.ir import Node, Symbol
from graphc.ir.matrices import transposes
from graphc.ops import OPS

_MUL, _NEG = OPS["mul"], OPS["neg"]


def node_of(x: Symbol) -> Node:
    """The node whose result it is."""
    return x.builder.nodes[x.id]


def operands(x: Symbol) -> list[Symbol]:
    """What that node reads."""
    return [x.builder.symbol(i) for i in node_of(x).inputs]


def transposed(x: Symbol) -> Symbol | None:
    """What a matrix is the transpose of."""
    return operands(x)[0] if transposes(node_of(x)) else None


def scaled(x: Symbol) -> tuple[Symbol, Symbol] | None:
    """(P, s) with P s the matrix, s one number."""
    node = node_of(x)
    if node.op is _NEG:
        return operands(x)[0], x.builder.constant(-1, x.dtype)
    if node.op is not _MUL:
        return None
    a, b = operands(x)
    for matrix, number in ((a, b), (b, a)):
        if {*number.shape} <= {1} and matrix.shape == x.shape and matrix.dtype == x.dtype == number.dtype:
            return matrix, number if number.shape == () else x.builder.language.reshape(number, shape=())
    return None


def is_one_matrix(x: Symbol) -> bool:
    """Whether it is a matrix, no stack of some, of a known size."""
    return len(x.shape) == 2 and x.shape[0] > 0 and all(type(n) is int for n in x.shape)
