"""Sums of products with what is the same for all that is added taken out: sum(x * c) = sum(x) * c.

The gradients of a normalization have the same sums several times, each scaled otherwise: written like this they are
one. Factors are those of trees of products and signs. What is centred adds up to nothing: sum(x - mean(x)) = 0.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from graphc.facts.known import Facts
from graphc.ir import Builder, Graph, Node, Symbol
from graphc.ops import OPS
from graphc.ops.dtypes import is_inexact
from graphc.passes.dce import eliminate_dead_code
from graphc.passes.sums_of_sums import vanishes
from graphc.rewrite.rule import held_number

_SUM, _MEAN, _MUL, _NEG, _ADD, _SUB, _SPREAD = (
    OPS[name] for name in ("sum", "mean", "mul", "neg", "add", "sub", "broadcast_to")
)
FACTORS = 12  # of a product; with more it stays as it is
SMALLEST = 4  # bytes of an element: sums of shorter ones may be too large for their dtype before they are scaled
LARGEST = 2.0**64  # number that is taken out; and its reciprocal is the smallest


class _Scaled(NamedTuple):
    """A sum or mean over `axes` of an array of `shape`, as number * the product of the nodes `small` * that of the
    product of the nodes `summed`. alone: whether nothing else reads the products that this takes apart."""

    number: float | complex
    small: list[int]
    summed: tuple[int, ...]
    axes: tuple[int, ...]
    shape: tuple[int, ...]
    alone: bool

    @property
    def key(self) -> object:
        return self.summed, self.axes, self.shape


def take_out_factors(graph: Graph) -> Graph:
    """`graph` with the factors of its sums taken out that are the same for all they add. Rounds differently."""
    if _SUM not in graph.ops and _MEAN not in graph.ops:
        return graph
    alike: dict[object, dict[int, _Scaled]] = defaultdict(dict)
    uses, facts = graph.uses(), Facts(graph.nodes)
    for id, node in graph.nodes.items():
        if (node.op is _SUM or node.op is _MEAN) and is_inexact(node.dtype) and node.dtype.itemsize >= SMALLEST:
            scaled = _scaled(node, graph.nodes, uses)
            if scaled is not None:
                alike[scaled.key][id] = scaled
    chosen: dict[int, _Scaled] = {}
    for sums in alike.values():
        first = next(iter(sums.values()))
        centred = _is_centred(first, graph.nodes, facts)
        # what others read scaled is not computed, or written, another time without its factors
        written = len(first.summed) == 1 and not graph.nodes[first.summed[0]].op.pointwise
        if centred or any((s.small or s.number != 1) and (written or len(sums) > 1 or s.alone) for s in sums.values()):
            chosen |= {id: s._replace(number=0) for id, s in sums.items()} if centred else sums
    return _written(graph, chosen) if chosen else graph


def _scaled(node: Node, nodes: Mapping[int, Node], uses: Mapping[int, int]) -> _Scaled | None:
    """A sum in this form; None if it adds nothing up, or has too many factors."""
    operand, axes = nodes[node.inputs[0]], node.params["axis"]
    if math.prod([operand.shape[axis] for axis in axes]) < 2:
        return None
    number: float | complex = 1
    small, summed, stack, alone = list[int](), list[int](), [operand.id], True
    while stack:
        if len(stack) + len(small) + len(summed) > FACTORS:
            return None
        id = stack.pop()
        factor = nodes[id]
        held = held_number(id, nodes)
        if isinstance(held, (float, complex)) and 1 / LARGEST < abs(number * held) < LARGEST:
            number *= held
        elif factor.aval == operand.aval and (factor.op is _MUL or factor.op is _NEG):
            number = -number if factor.op is _NEG else number
            alone = alone and uses[id] == 1
            stack += factor.inputs
        else:
            part = nodes[factor.inputs[0]] if factor.op is _SPREAD else factor
            kept = part.dtype == node.dtype and all(_padded(part.shape, len(operand.shape))[axis] == 1 for axis in axes)
            (small if kept else summed).append(part.id if kept else id)
    if not summed:
        return None
    return _Scaled(number, sorted(small), tuple(sorted(summed)), axes, operand.shape, alone)


def _padded(shape: Sequence[int], rank: int) -> tuple[int, ...]:
    return (*[1] * (rank - len(shape)), *shape)


def _is_centred(scaled: _Scaled, nodes: Mapping[int, Node], facts: Facts) -> bool:
    """Whether what is added up is an array without its mean, whatever else has been taken from it."""
    id = scaled.summed[0]
    if len(scaled.summed) > 1 or (nodes[id].op is not _SUB and nodes[id].op is not _ADD):
        return False
    ahead = len(scaled.shape) - nodes[id].aval.ndim  # dims of what is added up that this has not
    return vanishes(id, tuple([axis - ahead for axis in scaled.axes if axis >= ahead]), nodes, facts)


def _written(graph: Graph, chosen: Mapping[int, _Scaled]) -> Graph:
    """`graph` with the sums `chosen` in these forms; 0 times a sum is 0."""
    nodes = graph.nodes
    builder = Builder.beside(nodes)
    means = {s.key for id, s in chosen.items() if nodes[id].op is _MEAN}
    means -= {s.key for id, s in chosen.items() if nodes[id].op is _SUM}
    sums: dict[object, Symbol] = {}
    new: dict[int, int] = {}

    def product(ids: Sequence[int], start: Symbol | None, rank: int) -> Symbol | None:
        for i in ids:
            factor = builder.symbol(new.get(i, i))
            if len(factor.shape) < rank:
                factor = builder.language.reshape(factor, shape=_padded(factor.shape, rank))
            start = factor if start is None else start * factor
        return start

    for id, node in nodes.items():
        builder.copy(node, tuple([new.get(i, i) for i in node.inputs]))
        if id not in chosen:
            continue
        scaled, F = chosen[id], builder.language
        builder.where, builder.scope = node.where, node.scope
        if not scaled.number:
            new[id] = F.full(shape=node.shape, value=0, dtype=node.dtype).id
            continue
        rank = len(scaled.shape)
        if scaled.key not in sums:
            summed = product(scaled.summed, None, rank)
            assert summed is not None
            if scaled.key in means:
                sums[scaled.key] = F.mean(summed, axis=scaled.axes, keepdims=True)
            else:
                times = math.prod([scaled.shape[axis] for axis in scaled.axes if summed.shape[axis] == 1])
                total = F.sum(summed, axis=scaled.axes, keepdims=True)
                sums[scaled.key] = total if times == 1 else total * float(times)
        number = scaled.number
        if node.op is _MEAN and scaled.key not in means:
            number /= math.prod([scaled.shape[axis] for axis in scaled.axes])
        total = product(scaled.small, sums[scaled.key] if number == 1 else sums[scaled.key] * number, rank)
        assert total is not None
        kept = tuple([1 if axis in scaled.axes else n for axis, n in enumerate(scaled.shape)])
        total = total if total.shape == kept else F.broadcast_to(total, shape=kept)
        new[id] = (total if kept == node.shape else F.reshape(total, shape=node.shape)).id
    return eliminate_dead_code(graph.rewired(builder.nodes, new))
