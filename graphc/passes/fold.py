"""Constant folding: operations on constants are carried out now, by the NumPy kernels."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphc.ir import Graph, Node
from graphc.ops import OPS, Literal
from graphc.ops.aval import aval_of
from graphc.ops.interpret import run_kernel
from graphc.passes.settled import settling

LARGEST = 1024  # elements; larger results stay computations, so that graphs stay small
MODEST = 1 << 20

_CONSTANT = OPS["constant"]
_FULL = OPS["full"]


@settling
def fold_constants(graph: Graph) -> Graph:
    """`graph` with every pure operation on constants replaced by its value, up to `LARGEST` elements.

    An operation that fails, in its run-time check or in its kernel, is left alone: it must raise when the program runs.
    """
    known: dict[int, np.ndarray] = {}
    nodes: dict[int, Node] = {}
    folded = False
    for id, node in graph.nodes.items():
        if node.op is _CONSTANT:
            known[id] = node.params["value"].array
        elif _foldable(node, known):
            value = _value(node, [known[i] for i in node.inputs])
            if value is not None:
                known[id] = value
                node = _constant(node, value)
                folded = True
        nodes[id] = node
    return graph.replace(nodes, graph.result) if folded else graph


def _value(node: Node, arrays: list[np.ndarray]) -> np.ndarray | None:
    try:
        if node.check is not None and not node.check.ok(np, *arrays, **node.params):
            return None
        value = run_kernel(node.op, arrays, node.params)
    except Exception:  # kernels raise what NumPy and SciPy raise
        return None
    return value if aval_of(value) == node.aval else None


def _constant(node: Node, value: np.ndarray) -> Node:
    """`node` replaced by its value; an array with one number in every place stays a single number."""
    if value.ndim and value.size and value.tobytes() == value.flat[0].tobytes() * value.size:
        op, params = _FULL, {"shape": value.shape, "value": value.flat[0].item(), "dtype": value.dtype}
    else:
        op, params = _CONSTANT, {"value": Literal(value)}
    return Node(node.id, op, (), params, node.results, node.where, node.scope)


def _foldable(node: Node, known: dict[int, np.ndarray]) -> bool:
    for i in node.inputs:
        if i not in known:
            return False
    if not node.inputs and (node.op is not _FULL or node.shape):
        return False
    return (
        not node.op.impure
        and not (node.op.structured or node.op.several)
        and node.size <= LARGEST
        and all(map(_is_modest, node.params.values()))
    )


def _is_modest(value: Any) -> bool:
    """Whether a parameter is free of numbers that may ask for much more memory than the result has (a padding)."""
    if isinstance(value, tuple):
        return all(map(_is_modest, value))
    return type(value) is not int or abs(value) <= MODEST
