"""Convolutions of which the channels, images or places need not be told apart: each is fewer products, not a form.

    sum over o of conv(x, w)[n, o] = conv(x, sum over o of w)        conv(x, w) + conv(x, v) = conv(x, w + v)
    of an operand that is the same for all o, there is one o: the other operand is summed over o, or the result spread

What dims run together is what `Op.dims` declares; so gradients of convolutions are no special cases.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, final

from graphc.ir import Builder, Graph, Node, Symbol
from graphc.ops import OPS, Trait
from graphc.ops.dtypes import is_inexact
from graphc.ops.labels import Words, words
from graphc.passes.replacing import replaced
from graphc.passes.taps import of_what_is_everywhere, sum_over_space

_SLIDING = Trait.CONTRACTS | Trait.PADS
_SUM, _MEAN, _ADD, _SUB, _SPREAD = (OPS[name] for name in ("sum", "mean", "add", "sub", "broadcast_to"))


def join_channels(graph: Graph) -> Graph:
    """`graph` with its convolutions summed up before, not afterwards. Rounds differently."""
    if not any(op.traits & _SLIDING == _SLIDING for op in graph.ops):
        return graph
    builder = Builder.beside(graph.nodes)
    return replaced(graph, builder, _Channels(graph, builder).instead)


@final
class _Channels:
    """What reads and sums up channels that need not be told apart."""

    def __init__(self, graph: Graph, builder: Builder):
        self._uses = graph.uses()
        self._builder = builder

    def instead(self, node: Node) -> Symbol | None:
        """The same as a node, with fewer products."""
        return self._without_spread(node) or self._summed(node) or self._added(node)

    def _words(self, node: Node) -> Words | None:
        """The words of the dims of a convolution, or of a gradient of one."""
        op = node.op
        if op.traits & _SLIDING != _SLIDING or op.dims is None or not is_inexact(node.dtype):
            return None
        if node.params.get("groups", 1) != 1:
            return None
        shapes = [self._builder.nodes[i].shape for i in node.inputs]
        if not all(type(n) is int for shape in (*shapes, node.shape) for n in shape):
            return None
        return words(op.dims, shapes, [node.shape], node.params)

    def _convolved(self, node: Node, operands: list[Symbol], shape: tuple[int, ...]) -> Symbol:
        """The same of other operands, of this shape."""
        params: dict[str, Any] = dict(node.params)
        if "shape" in params:
            params["shape"] = shape
        return getattr(self._builder.language, node.op.name)(*operands, **params)

    def _without_spread(self, node: Node) -> Symbol | None:
        """A convolution with an operand that is the same in all channels, or images."""
        found = self._words(node)
        if found is None:
            return None
        F, builder = self._builder.language, self._builder
        for k, i in enumerate(node.inputs):
            given = builder.nodes[i]
            if given.op is not _SPREAD or given.params.get("shape") != given.shape:
                continue
            below = builder.symbol(given.inputs[0])
            if len(below.shape) != len(given.shape):
                continue
            own = found.operands[k]
            everywhere = (*given.shape[:2], *[1] * (len(given.shape) - 2))
            if below.shape == everywhere and k == 0:
                summed = of_what_is_everywhere(builder, node, below)
                if summed is not None:
                    return summed
            same = [d for d, (a, b) in enumerate(zip(below.shape, given.shape, strict=True)) if a < b and own[d]]
            if not same:
                continue
            kept = tuple([1 if d in same else n for d, n in enumerate(given.shape)])
            operands = [builder.symbol(j) for j in node.inputs]
            operands[k] = below if below.shape == kept else F.broadcast_to(below, shape=kept)
            other, names = 1 - k, {own[d] for d in same}
            over = tuple([d for d, name in enumerate(found.operands[other]) if name in names])
            spread = [name in names for name in found.results[0]]
            if len(over) + sum(spread) != len(same):
                continue
            if over:
                operands[other] = F.sum(operands[other], axis=over, keepdims=True)
            shape = tuple([1 if one else n for one, n in zip(spread, node.shape, strict=True)])
            result = self._convolved(node, operands, shape)
            return result if result.shape == node.shape else F.broadcast_to(result, shape=node.shape)
        return None

    def _summed(self, node: Node) -> Symbol | None:
        """A sum or a mean over channels, or images, of a convolution that nothing else reads."""
        if node.op not in (_SUM, _MEAN) or self._uses.get(node.inputs[0], 2) != 1:
            return None
        inner = self._builder.nodes[node.inputs[0]]
        F = self._builder.language
        axes = {d % inner.aval.ndim for d in node.params["axis"]}
        over = self._over_space(inner, axes, node.op is _MEAN)
        if over is not None:
            rest = tuple(sorted(axes & {0, 1}))
            over = getattr(F, node.op.name)(over, axis=rest, keepdims=True) if rest else over
            return F.reshape(over, shape=node.shape)
        found = self._words(inner)
        if found is None:
            return None
        operands = [self._builder.symbol(i) for i in inner.inputs]
        shape = list(inner.shape)
        for d in sorted(axes):
            name = found.results[0][d]
            ways = [(k, own.index(name)) for k, own in enumerate(found.operands) if name is not None and name in own]
            if len(ways) == 1 and shape[d] > 1:
                (k, axis), shape[d] = ways[0], 1
                operands[k] = getattr(F, node.op.name)(operands[k], axis=(axis,), keepdims=True)
        if tuple(shape) == inner.shape:
            return None
        return getattr(F, node.op.name)(self._convolved(inner, operands, tuple(shape)), **_chosen(node.params))

    def _over_space(self, node: Node, axes: set[int], mean: bool) -> Symbol | None:
        """The sum, or the mean, over all of space, of a convolution or of that and a bias."""
        if not {*range(2, node.aval.ndim)} <= axes:
            return None
        if node.op is _ADD:
            for x, y in (node.inputs, node.inputs[::-1]):
                bias = self._builder.symbol(y)
                if self._uses.get(x, 2) == 1 and {*bias.shape[max(len(bias.shape) - node.aval.ndim + 2, 0) :]} == {1}:
                    over = self._over_space(self._builder.nodes[x], axes, mean)
                    count = 1 if mean else math.prod(node.shape[2:])
                    return None if over is None else over + (bias * count if count > 1 else bias)
        over = None if self._words(node) is None else sum_over_space(self._builder, node)
        return over * (1 / math.prod(node.shape[2:])) if over is not None and mean else over

    def _added(self, node: Node) -> Symbol | None:
        """The sum of two convolutions that have an operand in common, which nothing else reads."""
        if node.op not in (_ADD, _SUB) or len(node.inputs) != 2 or node.inputs[0] == node.inputs[1]:
            return None
        a, b = (self._builder.nodes[i] for i in node.inputs)
        if a.op is not b.op or a.shape != b.shape or a.params != b.params or self._words(a) is None:
            return None
        if any(self._uses.get(i, 2) != 1 for i in node.inputs):
            return None
        for k in range(2):
            first, second = (self._builder.symbol(x.inputs[1 - k]) for x in (a, b))
            if a.inputs[k] == b.inputs[k] and first.shape == second.shape:
                operands = [self._builder.symbol(i) for i in a.inputs]
                operands[1 - k] = first + second if node.op is _ADD else first - second
                return self._convolved(a, operands, a.shape)
        return None


def _chosen(params: Mapping[str, Any]) -> dict[str, Any]:
    return {name: params[name] for name in ("axis", "keepdims")}
