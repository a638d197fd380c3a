"""Sums of what is summed up already, and sums over what is centred.

    sum(x, (0, 1)) = sum(sum(x, 0))        sum(P * (x + c), 0) = sum(P * x, 0)  if P adds up to 0 along axis 0, and c is
                                           the same along it

as in distance covariances and other products of arrays without the means of their rows and columns. Of sums of
differences see `differences.py`.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import final

from graphc.facts.known import Facts
from graphc.ir import Builder, Graph, Node, Symbol
from graphc.normal.form import tidy
from graphc.normal.lift import is_lifted
from graphc.ops import OPS
from graphc.ops.dtypes import is_inexact
from graphc.passes.cse import eliminate_common_subexpressions
from graphc.passes.differences import differences
from graphc.passes.replacing import replaced

_SUM, _MEAN, _MUL, _ADD, _SUB, _SPREAD = (OPS[name] for name in ("sum", "mean", "mul", "add", "sub", "broadcast_to"))
ADDED = 24  # nodes of a sum that are looked at
SMALLEST = 4  # bytes of an element: sums of shorter ones may overflow in another order


def join_sums(graph: Graph) -> Graph:
    """`graph` with fewer and shorter sums. Rounds differently."""
    sums = [node for node in graph.nodes.values() if _adds_up(node)]
    if not sums:
        return graph
    builder = Builder.beside(graph.nodes)
    return eliminate_common_subexpressions(replaced(graph, builder, _Sums(graph, sums, builder).instead))


def vanishes(id: int, axes: tuple[int, ...], nodes: Mapping[int, Node], facts: Facts) -> bool:
    """Whether what an array adds up to along these axes is 0, whatever its atoms are: x - mean(x), but for rounding."""
    form = facts.near_form(id, ADDED) if _takes_sums(id, nodes) else None
    totals: dict[object, object] = {}
    for t in () if form is None else form.terms:
        left = tidy(t.coefficient, t.factors, [p for k, p in enumerate(t.places) if k not in axes], t.sizes)
        if left is not None:
            totals[left[1:]] = totals.get(left[1:], 0) + left.coefficient
    return bool(totals) and not any(totals.values())


def _takes_sums(id: int, nodes: Mapping[int, Node]) -> bool:
    """Whether each atom of a sum is an atom of a sum or a mean that is added as well: of others no form is asked."""
    near = _near([id], nodes, lambda node: node.op is not _SUM and node.op is not _MEAN)
    sums = [k for k in near if nodes[k].op is _SUM or nodes[k].op is _MEAN]
    below = _near([i for k in sums for i in nodes[k].inputs], nodes, lambda node: True) if sums else set[int]()
    return bool(sums) and all(is_lifted(nodes[k], nodes) or k in below for k in near)


def _near(ids: Sequence[int], nodes: Mapping[int, Node], through: Callable[[Node], bool]) -> set[int]:
    """These nodes, and what they are forms of, as far as it goes `through` nodes."""
    found, queue = set[int](), deque(ids)
    while queue and len(found) < ADDED:
        node = nodes[queue.popleft()]
        if node.id not in found and is_lifted(node, nodes) and through(node):
            queue += node.inputs
        found.add(node.id)
    return found


def _adds_up(node: Node) -> bool:
    """Whether it is a sum or a mean that may be taken in another order."""
    if node.op is not _SUM and node.op is not _MEAN:
        return False
    return is_inexact(node.dtype) and node.dtype.itemsize >= SMALLEST and bool(node.params["axis"])


@final
class _Sums:
    def __init__(self, graph: Graph, sums: list[Node], builder: Builder):
        self._graph = graph
        self._builder = builder
        self._facts = Facts(builder.nodes)
        self._of: dict[int, list[Node]] = {}  # the sums of each array
        for node in sums:
            self._of.setdefault(node.inputs[0], []).append(node)

    def instead(self, node: Node) -> Symbol | None:
        """The same as a sum."""
        if not _adds_up(node) or not all(type(n) is int and n for n in self._builder.nodes[node.inputs[0]].shape):
            return None
        return self._of_part(node) or self._without_constants(node) or differences(node, self._builder)

    def _of_part(self, node: Node) -> Symbol | None:
        """As a sum of another sum of the same array."""
        F, whole, axes = self._builder.language, self._builder.nodes[node.inputs[0]].shape, {*node.params["axis"]}
        others = [n for n in self._of[self._graph.nodes[node.id].inputs[0]] if {*n.params["axis"]} < axes]
        if not others:
            return None
        other = min(others, key=lambda n: n.size)
        done = other.params["axis"]
        part = self._builder.emit(other.op, [self._builder.symbol(node.inputs[0])], other.params)
        part = F.reshape(part, shape=tuple([1 if k in done else n for k, n in enumerate(whole)]))
        total = self._builder.emit(node.op, [part], node.params)
        if node.op is other.op:
            return total
        count = math.prod([whole[k] for k in done])
        return total * (float(count) if node.op is _SUM else 1 / count)

    def _without_constants(self, node: Node) -> Symbol | None:
        """Without what is added to one factor and adds up to nothing with the other."""
        nodes, builder = self._builder.nodes, self._builder
        product = nodes[node.inputs[0]]
        if product.op is not _MUL or len({*product.inputs}) < 2:
            return None
        for centred, other in (product.inputs, product.inputs[::-1]):
            if any(nodes[k].op not in (_ADD, _SUB) or nodes[k].shape != product.shape for k in (centred, other)):
                continue
            axes = [k for k in node.params["axis"] if vanishes(centred, (k,), nodes, self._facts)]
            left = self._stripped(other, axes) if axes else other
            if left != other:
                given = [builder.symbol(k if k == centred else left) for k in product.inputs]
                return builder.emit(node.op, [builder.emit(_MUL, given, {})], node.params)
        return None

    def _stripped(self, id: int, axes: list[int]) -> int:
        """An array without what is added to it that is the same along one of the axes."""
        node, nodes = self._builder.nodes[id], self._builder.nodes
        if node.op is not _ADD and node.op is not _SUB:
            return id
        x, y = node.inputs
        if nodes[x].shape == node.shape and any(self._is_same_along(y, k, node) for k in axes):
            return self._stripped(x, axes)
        if node.op is _ADD and nodes[y].shape == node.shape and any(self._is_same_along(x, k, node) for k in axes):
            return self._stripped(y, axes)
        left = [self._stripped(k, axes) if nodes[k].shape == node.shape else k for k in (x, y)]
        return id if left == [x, y] else self._builder.emit(node.op, [*map(self._builder.symbol, left)], {}).id

    def _is_same_along(self, id: int, axis: int, of: Node) -> bool:
        node = self._builder.nodes[id]
        node = self._builder.nodes[node.inputs[0]] if node.op is _SPREAD else node
        ahead = of.aval.ndim - node.aval.ndim
        return axis < ahead or node.shape[axis - ahead] == 1
