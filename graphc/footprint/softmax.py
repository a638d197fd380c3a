"""Softmax in the parts that XLA has of it: rows less their maximum, exponentials, their sums, and a product.

Where a loss needs a softmax and its logarithm, as that of labels does, they have the first parts in common.
"""

from __future__ import annotations

from typing import Any

from graphc.ir import Builder, Graph, Node, Symbol
from graphc.ops import OPS

_SHARES, _LOGARITHMS = OPS["softmax"], OPS["log_softmax"]
LESS_MAXIMUM = _LOGARITHMS  # stands for it in a graph that is only looked at


def in_parts(graph: Graph) -> Graph:
    """`graph` with each softmax in its parts, to be looked at, not run."""
    if all(node.op not in (_SHARES, _LOGARITHMS) for node in graph.nodes.values()):
        return graph
    builder = Builder.beside(graph.nodes)
    parts: dict[tuple[int, int], tuple[Symbol, Symbol, Symbol]] = {}
    for node in graph.nodes.values():
        if node.op not in (_SHARES, _LOGARITHMS):
            builder.copy(node, node.inputs)
            continue
        builder.where, builder.scope = node.where, node.scope
        key = node.inputs[0], node.params["axis"]
        if key not in parts:
            parts[key] = _parts(builder, *key)
        less, exponential, total = parts[key]
        f: Any = builder.language
        made = exponential * f.reciprocal(total) if node.op is _SHARES else less - f.log(total)
        last = builder.nodes.pop(made.id)
        builder.nodes[node.id] = Node(node.id, last.op, last.inputs, last.params, last.results, node.where, node.scope)
    return graph.replace(builder.nodes, graph.result)


def _parts(builder: Builder, id: int, axis: int) -> tuple[Symbol, Symbol, Symbol]:
    f: Any = builder.language
    less = builder.emit(LESS_MAXIMUM, (builder.symbol(id),), {"axis": axis})
    exponential = f.exp(less)
    return less, exponential, f.sum(exponential, axis=(axis,), keepdims=True)
