"""Constant folding: operations on constants are carried out now, by the NumPy kernels."""

from __future__ import annotations

import numpy as np

from graphc.ir import Graph, Node
from graphc.ops import OPS, Literal
from graphc.ops.interpret import run_kernel

LARGEST = 1024  # elements; larger results stay computations, so that graphs stay small

_CONSTANT = OPS["constant"]
_FULL = OPS["full"]


def fold_constants(graph: Graph) -> Graph:
    """`graph` with every pure operation on constants replaced by its value, up to `LARGEST` elements.

    An operation whose run-time check fails is left alone: it must raise when the program runs.
    """
    known: dict[int, np.ndarray] = {}
    nodes: dict[int, Node] = {}
    folded = False
    for id, node in graph.nodes.items():
        if node.op is _CONSTANT:
            known[id] = node.params["value"].array
        elif _foldable(node, known):
            arrays = [known[i] for i in node.inputs]
            if node.op.check is None or node.op.check.ok(np, *arrays, **node.params):
                known[id] = value = run_kernel(node.op, arrays, node.params)
                node = _constant(node, value)
                folded = True
        nodes[id] = node
    return graph.replace(nodes, graph.result) if folded else graph


def _constant(node: Node, value: np.ndarray) -> Node:
    """`node` replaced by its value; an array with one number in every place stays a single number."""
    if value.ndim and value.size and value.tobytes() == value.flat[0].tobytes() * value.size:
        op, params = _FULL, {"shape": value.shape, "value": value.flat[0].item(), "dtype": value.dtype}
    else:
        op, params = _CONSTANT, {"value": Literal(value)}
    return Node(node.id, op, (), params, node.aval, node.where, node.scope)


def _foldable(node: Node, known: dict[int, np.ndarray]) -> bool:
    for i in node.inputs:
        if i not in known:
            return False
    if not node.inputs and (node.op is not _FULL or node.shape):
        return False
    return not node.op.impure and node.aval.size <= LARGEST
