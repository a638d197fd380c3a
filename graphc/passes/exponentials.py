"""Sums of exponentials of outer sums: each part is summed by itself.

    logsumexp(a_i + b_j) = logsumexp(a_i) + logsumexp(b_j)          sum_j exp(a_i + b_j) = exp(a_i + logsumexp(b_j))

What is added up is as good as before: the exponential of a sum has the rounding of the sum. Where a is large and b is
small, exp(a) and exp(b) by themselves would overflow; logarithms of their sums do not.
"""

from __future__ import annotations

import functools
import math
import operator
from typing import NamedTuple, final

from graphc.ir import Builder, Graph, Node, Symbol
from graphc.ops import OPS
from graphc.ops.dtypes import is_floating, is_half
from graphc.passes.replacing import replaced

MOST = 8  # terms
ENOUGH = 0.5  # of the elements, at most, that the largest part has
_SUM, _LSE, _EXP, _ADD, _SUB, _MUL = (OPS[name] for name in ("sum", "logsumexp", "exp", "add", "sub", "mul"))
_RESHAPE, _SPREAD = OPS["reshape"], OPS["broadcast_to"]


class _Term(NamedTuple):
    """A term of a sum, an array of as many axes; and its sign."""

    value: Symbol
    sign: int


def part_exponentials(graph: Graph) -> Graph:
    """`graph` with sums of exponentials of outer sums as those of their parts. Rounds differently."""
    if graph.ops.isdisjoint((_EXP, _LSE)) or graph.ops.isdisjoint((_ADD, _SUB)):
        return graph
    builder = Builder.beside(graph.nodes)
    return replaced(graph, builder, _Exponentials(builder).instead)


@final
class _Exponentials:
    """Writes sums of exponentials by parts."""

    def __init__(self, builder: Builder):
        self._builder = builder

    def instead(self, node: Node) -> Symbol | None:
        """The same as a sum of exponentials, or its logarithm."""
        F, nodes = self._builder.language, self._builder.nodes
        if node.op not in (_SUM, _LSE) or not node.params["axis"] or not is_floating(node.dtype) or is_half(node.dtype):
            return None
        x = nodes[node.inputs[0]]
        if not all(type(n) is int and n for n in x.shape):
            return None
        shape, axes, below = x.shape, tuple(node.params["axis"]), x
        times: list[Symbol] = []
        if node.op is _SUM:
            below = self._scaled(self._stripped(x), times)
            if below.op is not _EXP:
                return None
            below = nodes[below.inputs[0]]
        if len(axes) == len(shape):  # of all elements, in whatever shape they are
            shape = self._stripped(below).shape
            axes = tuple(range(len(shape)))
        terms = self._terms(below.id, shape, 1)
        parts = [] if len(terms) < 2 else _parts(terms, axes)
        if not parts or max(math.prod(_joint(part)) for part in parts) > ENOUGH * math.prod(shape):
            return None
        found = functools.reduce(operator.add, [self._logarithm(part, axes) for part in parts])
        kept = [axis for axis in axes if all(t.value.shape[axis] == 1 for t in terms)]
        if kept:
            found = found + math.log(math.prod([shape[axis] for axis in kept]))
        found = functools.reduce(operator.mul, times, F.exp(found) if node.op is _SUM else found)
        whole = tuple([1 if axis in axes else n for axis, n in enumerate(shape)])
        found = found if found.shape == whole else F.broadcast_to(found, shape=whole)
        return F.reshape(found, shape=node.shape)

    def _stripped(self, node: Node) -> Node:
        while node.op is _RESHAPE:
            node = self._builder.nodes[node.inputs[0]]
        return node

    def _scaled(self, node: Node, times: list[Symbol]) -> Node:
        """What is multiplied by single numbers, which `times` gets: a gradient that arrives is one."""
        while node.op is _MUL:
            a, b = (self._before_spread(self._builder.nodes[i], node.shape) for i in node.inputs)
            if 1 not in (a.size, b.size):
                break
            number, rest = (a, b) if a.size == 1 else (b, a)
            times.append(self._builder.language.reshape(self._builder.symbol(number.id), shape=()))
            node = self._stripped(rest)
        return node

    def _before_spread(self, node: Node, shape: tuple[int, ...]) -> Node:
        """What an array of this shape, or of one number, is the same as along some axes."""
        below = self._builder.nodes[node.inputs[0]] if node.op is _SPREAD else node
        return below if node.shape == shape or below.size == 1 else node

    def _terms(self, id: int, shape: tuple[int, ...], sign: int, depth: int = 0) -> list[_Term]:
        """The terms of a sum that has this shape, or of which a reshaping has it."""
        node, F = self._builder.nodes[id], self._builder.language
        size = math.prod(shape)
        if node.size == size and node.op is _RESHAPE and node.shape != shape:
            return self._terms(node.inputs[0], shape, sign, depth)
        if node.op in (_ADD, _SUB) and node.size == size and depth < MOST:
            given = [self._before_spread(self._builder.nodes[i], shape) for i in node.inputs]
            if node.shape == shape or all(n.size in (1, size) for n in given):
                signs = sign, -sign if node.op is _SUB else sign
                return [t for n, s in zip(given, signs, strict=True) for t in self._terms(n.id, shape, s, depth + 1)]
        x = self._builder.symbol(id)
        if node.size == 1:
            padded = (1,) * len(shape)
        else:
            padded = shape if node.size == size else (1,) * (len(shape) - len(node.shape)) + node.shape
        return [_Term(x if x.shape == padded else F.reshape(x, shape=padded), sign)]

    def _logarithm(self, part: list[_Term], axes: tuple[int, ...]) -> Symbol:
        """The logarithm of the sum of the exponentials of the terms' sum."""
        values = [t.value if t.sign > 0 else self._builder.language.neg(t.value) for t in part]
        total = functools.reduce(operator.add, values)
        along = tuple([axis for axis in axes if total.shape[axis] > 1])
        return self._builder.language.logsumexp(total, axis=along, keepdims=True) if along else total


def _parts(terms: list[_Term], axes: tuple[int, ...]) -> list[list[_Term]]:
    """The terms in groups, of which no two have one of the axes in common."""
    groups: list[tuple[set[int], list[_Term]]] = []
    for t in terms:
        own, together = {axis for axis in axes if t.value.shape[axis] > 1}, [t]
        for other in [g for g in groups if g[0] & own or (not g[0] and not own)]:
            groups.remove(other)
            own, together = own | other[0], other[1] + together
        groups.append((own, together))
    return [group for _, group in groups]


def _joint(part: list[_Term]) -> list[int]:
    """The shape of the sum of terms."""
    return [max(sizes) for sizes in zip(*[t.value.shape for t in part], strict=True)]
