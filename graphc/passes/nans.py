"""Numbers but for nan: x - x is 0 wherever it is no nan, and so what is computed from it is a number there.

Such a value and nan never vanish, but functions of it need not be computed: exp(x - x) is 1 - (x - x), and x - x keeps
its nan. It is what gradients of quotients, and of what cancels, are full of. Exact.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from graphc.ir import Builder, Graph, Node, Symbol
from graphc.ops import OPS
from graphc.ops.dtypes import is_floating
from graphc.ops.interpret import run_kernel
from graphc.passes.replacing import replaced
from graphc.rewrite.cost import node_cost
from graphc.rewrite.rule import held_number

_SUB, _DIV, _WHERE = OPS["sub"], OPS["div"], OPS["where"]


class _Number(NamedTuple):
    """What a node is where it is no nan; `mask` is the node that is nan where it is."""

    value: Any
    mask: int


def fold_numbers(graph: Graph) -> Graph:
    """`graph` with functions of one value that is a number but for nan written as that number, with its nan."""
    if not any(_cancels(node) for node in graph.nodes.values()):
        return graph
    builder = Builder.beside(graph.nodes)
    known: dict[int, _Number] = {}

    def cheaper(node: Node) -> Symbol | None:
        found = _number(node, builder.nodes, known)
        if found is None:
            return None
        known[node.id] = found
        if found.mask == node.id:
            return None
        mark = builder.next_id
        symbol = _written(builder, found, known[found.mask].value)
        made = range(mark, builder.next_id)
        if sum(node_cost(builder.nodes[i], builder.nodes) for i in made) < node_cost(node, builder.nodes):
            known[symbol.id] = found
            return symbol
        builder.rollback(mark)
        return None

    return replaced(graph, builder, cheaper)


def _cancels(node: Node) -> bool:
    """x - x or x / x."""
    return node.op in (_SUB, _DIV) and node.inputs[0] == node.inputs[1] and is_floating(node.dtype)


def _number(node: Node, nodes: Mapping[int, Node], known: Mapping[int, _Number]) -> _Number | None:
    """What a node is, if that is a number but for nan."""
    if node.op.several or not node.op.pointwise or not is_floating(node.dtype):
        return None
    masks = {known[i].mask for i in node.inputs if i in known}
    if node.op is _WHERE:  # one number, or nan
        chosen = [known[i].value if i in known else held_number(i, nodes) for i in node.inputs[1:]]
        numbers = {value for value in chosen if value is None or value == value}
        return _Number(numbers.pop(), node.id) if masks and numbers <= {0, 1} and len(numbers) == 1 else None
    if not masks:
        return _Number(float(node.op is _DIV), node.id) if _cancels(node) else None
    if len(masks) > 1 or nodes[min(masks)].aval != node.aval:
        return None
    values = [known[i].value if i in known else held_number(i, nodes) for i in node.inputs]
    if any(value is None or nodes[i].dtype != node.dtype for i, value in zip(node.inputs, values, strict=True)):
        return None
    value = run_kernel(node.op, [np.asarray(v, node.dtype) for v in values], node.params)
    nans = [np.asarray(np.nan if i in known else v, node.dtype) for i, v in zip(node.inputs, values, strict=True)]
    keeps = value.dtype == node.dtype and np.isnan(run_kernel(node.op, nans, node.params))
    return _Number(float(value), min(masks)) if keeps else None


def _written(builder: Builder, number: _Number, own: float) -> Symbol:
    """A number, with the nan of its mask, which is `own` elsewhere: 0 or 1."""
    F, mask = builder.language, builder.symbol(number.mask)
    if number.value == own and np.signbit(number.value) == np.signbit(own):
        return mask
    return F.mul(mask, number.value) if own else F.sub(number.value, mask)
