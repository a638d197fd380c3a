"""Matrices that are written into constants, as rotations and eliminations are into identities.

    where a part of K is v:        K with zeros there + v with zeros elsewhere

Nothing cancels: the two have no place in common. As sums, products with them are sums of products of their parts.
"""

from __future__ import annotations

from typing import NamedTuple, final

import numpy as np

from graphc.ir import Builder, Graph, Node, Symbol
from graphc.ir.matrices import transposes
from graphc.normal.gate import multiplies
from graphc.ops import OPS
from graphc.ops.dtypes import is_floating
from graphc.ops.interpret import run_kernel
from graphc.passes.replacing import replaced
from graphc.rewrite.rule import held_array, held_number

MOST = 8  # parts of one matrix
_WHERE, _PUT, _CLONE, _RESHAPE, _PAD = (OPS[name] for name in ("where", "put_slice", "clone", "reshape", "pad_zeros"))


class Part(NamedTuple):
    """What is written: an array, and where it begins."""

    value: Symbol
    start: tuple[int, ...]

    @property
    def box(self) -> tuple[slice, ...]:
        return tuple([slice(a, a + n) for a, n in zip(self.start, self.value.shape, strict=True)])


class _Written(NamedTuple):
    """A constant, zero where the parts lie."""

    constant: np.ndarray
    parts: tuple[Part, ...] = ()

    def over(self, part: Part) -> _Written | None:
        """With a part written; None where that leaves a piece of another."""
        kept: list[Part] = []
        for other in self.parts:
            pairs = list(zip(part.box, other.box, strict=True))
            if all(a.start <= b.start and b.stop <= a.stop for a, b in pairs):
                continue
            if all(a.start < b.stop and b.start < a.stop for a, b in pairs):
                return None
            kept.append(other)
        constant = self.constant.copy()
        constant[part.box] = 0
        return _Written(constant, (*kept, part)) if len(kept) < MOST else None


def add_what_is_written(graph: Graph) -> Graph:
    """`graph` with constants that are written, and then multiplied with, as sums."""
    if graph.ops.isdisjoint((_WHERE, _PUT)):
        return graph
    multiplied = _multiplied(graph)
    if not multiplied:
        return graph
    builder = Builder.beside(graph.nodes)
    return replaced(graph, builder, _Writer(builder, multiplied).instead)


def _multiplied(graph: Graph) -> set[int]:
    """The matrices that are written and become operands of products, whatever is written to them first."""
    nodes, found = graph.nodes, set[int]()
    for id, node in reversed(list(nodes.items())):
        written = node.op in (_WHERE, _PUT)
        if multiplies(node) and not node.op.pointwise:
            found.update(node.inputs)
        elif id in found and (written or node.op in (_CLONE, _RESHAPE) or transposes(node)):
            found.update(node.inputs[1:] if node.op is _WHERE else node.inputs[:1])
    return {id for id in found if graph.nodes[id].op in (_WHERE, _PUT)}


@final
class _Writer:
    def __init__(self, builder: Builder, multiplied: set[int]):
        self._builder = builder
        self._multiplied = multiplied
        self._known: dict[int, _Written] = {}

    def instead(self, node: Node) -> Symbol | None:
        """A sum for a matrix that is written."""
        if node.op is _CLONE or (node.op is _RESHAPE and node.shape == self._shape(node.inputs[0])):
            if node.inputs[0] in self._known:
                self._known[node.id] = self._known[node.inputs[0]]
            return None
        if node.id not in self._multiplied or len(node.shape) != 2 or not is_floating(node.dtype):
            return None
        if node.op is _WHERE and held_number(node.inputs[0], self._builder.nodes) is True:
            return self._builder.symbol(node.inputs[1]) if self._shape(node.inputs[1]) == node.shape else None
        base = self._base(node.inputs[2 if node.op is _WHERE else 0])
        if base is None or base.constant.shape != node.shape:
            return None
        part = self._part(node)
        found = None if part is None else base.over(part)
        if found is None:
            return None
        F = self._builder.language
        total = self._builder.constant(found.constant)
        for value, start in found.parts:
            after = tuple([n - a - m for n, a, m in zip(node.shape, start, value.shape, strict=True)])
            total = total + F.pad_zeros(value, low=start, high=after, interior=(0, 0))
        self._known[total.id] = found
        return total

    def _shape(self, id: int) -> tuple[int, ...]:
        return self._builder.nodes[id].shape

    def _base(self, id: int) -> _Written | None:
        if id in self._known:
            return self._known[id]
        array = self._held(id)
        return None if array is None else _Written(array)

    def _held(self, id: int) -> np.ndarray | None:
        """A constant, or what is one but for zeros around it."""
        node = self._builder.nodes[id]
        if node.op is _PAD:
            inside = self._held(node.inputs[0])
            return None if inside is None else run_kernel(_PAD, [inside], node.params)
        number = held_number(id, self._builder.nodes)
        return held_array(self._builder.symbol(id)) if number is None else np.full(node.shape, number, node.dtype)

    def _part(self, node: Node) -> Part | None:
        """What a node writes, if that is a box."""
        builder = self._builder
        if node.op is _PUT:
            value, start = builder.symbol(node.inputs[1]), node.params["start"]
            known = all(type(n) is int for n in (*start, *value.shape))
            return Part(value, start) if known and set(node.params["step"]) == {1} else None
        mask, value = self._held(node.inputs[0]), builder.nodes[node.inputs[1]]
        if mask is None or mask.shape != node.shape or not mask.any():
            return None
        ends = [(int(at.min()), int(at.max()) + 1) for at in np.nonzero(mask)]
        start = tuple([a for a, _ in ends])
        if not mask[tuple([slice(a, b) for a, b in ends])].all():
            return None
        if value.op is _PAD and value.params["low"] == start and not any(value.params["interior"]):
            inside = builder.symbol(value.inputs[0])
            if inside.shape == tuple([b - a for a, b in ends]):
                return Part(inside, start)
        if value.shape != node.shape:
            return None
        whole = builder.symbol(value.id)
        return Part(builder.language.slice(whole, start=start, stop=tuple([b for _, b in ends]), step=(1, 1)), start)
