"""The same graph in double precision: what the modes are judged against."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphc.ir import INPUT, Graph, Node
from graphc.ir.structure import with_bodies
from graphc.ops import Literal, Op, Rule, Trait
from graphc.ops.aval import Aval
from graphc.ops.dtypes import COMPLEX128, FLOAT64, is_inexact, kind, real_of
from graphc.ops.interpret import run_kernel

_WIDE = {"f": FLOAT64, "c": COMPLEX128}


def wide_dtype(dtype: np.dtype) -> np.dtype:
    """float64 or complex128 for a floating or complex dtype; any other dtype as it is."""
    return _WIDE.get(kind(dtype), dtype)


def widen_array(array: np.ndarray) -> np.ndarray:
    """`array` in double precision; integers and bools unchanged."""
    return array.astype(wide_dtype(array.dtype), copy=False)


def widen(graph: Graph) -> Graph:
    """`graph` with every floating dtype replaced by float64, under the same node ids.

    Numbers that the program holds (constants, parameters) keep the value they have in the narrow dtype, so that the
    two graphs compute on the same data. Raises what an op's rule raises if the graph is not well typed.
    """
    nodes: dict[int, Node] = {}
    for id, node in graph.nodes.items():
        if node.op is INPUT:
            results, params = (Aval(node.shape, wide_dtype(node.dtype)),), node.params
        else:
            node = with_bodies(node, widen) if node.op.structured else node
            if node.op.traits & Trait.BITS and not node.op.vjp:
                node = _in_own_dtype(node, graph)
            dtype = next((aval.dtype for aval in node.results), None)
            params = {name: _widen_parameter(value, dtype) for name, value in node.params.items()}
            inferred = node.op.rule.infer(node.op, [nodes[i].type for i in node.inputs], params)
            results = inferred if node.op.several else (inferred,)
        nodes[id] = Node(id, node.op, node.inputs, params, results, node.where, node.scope)
    return graph.replace(nodes, graph.result)


def _in_own_dtype(node: Node, graph: Graph) -> Node:
    """`node`, which runs on operands of the program's own dtypes and gives its own result, in double precision."""
    op, params, dtypes = node.op, node.params, [graph.nodes[i].dtype for i in node.inputs]

    def kernel(xp: Any, *arrays: np.ndarray) -> np.ndarray:
        narrow = [a.astype(dtype) for a, dtype in zip(arrays, dtypes, strict=True)]
        return widen_array(run_kernel(op, narrow, params))

    aval = Aval(node.shape, wide_dtype(node.dtype))
    rule = Rule(lambda op, avals, params: aval)
    own = Op(op.name, " ".join(op.args), impl=kernel, rule=rule, traits=op.traits)
    return Node(node.id, own, node.inputs, {}, (aval,), node.where, node.scope)


def _widen_parameter(value: Any, dtype: np.dtype | None) -> Any:
    if isinstance(value, np.dtype):
        return wide_dtype(value)
    if isinstance(value, Literal):
        return Literal(widen_array(value.array))
    if isinstance(value, float) and dtype is not None and is_inexact(dtype):
        return np.asarray(value, real_of(dtype)).item()
    return value
