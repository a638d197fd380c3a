"""A graph run on Tensors, operation by operation, so that eager's tape records it: for gradients of gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import eager
from eager import autograd
from eager.core.tensor import Tensor
from eager.engine.dispatch import apply
from eager.engine.language import E
from graphc.errors import CaptureError
from graphc.ir import Graph, Node
from graphc.ir.structure import CUSTOM, ITEM, SCAN, SWITCH, WHILE
from graphc.ops import Op
from graphc.ops.dtypes import is_inexact


def run_node(node: Node, operands: Sequence[Any]) -> Any:
    """The result of `node` on Tensors: a Tensor, or a tuple of them from an operation with several results."""
    if node.op.structured:
        return _STRUCTURED[node.op](node.params, *operands)
    return apply(node.op, list(operands), node.params)


def run_graph(graph: Graph, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The outputs of `graph`, run on Tensors."""
    values: dict[int, Any] = dict(zip(graph.inputs, tensors, strict=True))
    for node in graph.operations():
        values[node.id] = run_node(node, [values[i] for i in node.inputs])
    return tuple(values[id] for id in graph.outputs)


def _switch(params: Any, index: Tensor, *operands: Tensor) -> tuple[Tensor, ...]:
    branches = params["branches"]
    return run_graph(branches[min(max(int(index.item()), 0), len(branches) - 1)], operands)


def _while(params: Any, *operands: Tensor) -> tuple[Tensor, ...]:
    fixed, carry = operands[: params["consts"]], operands[params["consts"] :]
    while run_graph(params["condition"], [*fixed, *carry])[0].item():
        carry = run_graph(params["body"], [*fixed, *carry])
    return tuple(carry)


def _scan(params: Any, *operands: Tensor) -> tuple[Tensor, ...]:
    body, carries, first_x = params["body"], params["carries"], params["consts"] + params["carries"]
    fixed, carry, xs = operands[: params["consts"]], operands[params["consts"] : first_x], operands[first_x:]
    ys: list[tuple[Tensor, ...]] = []
    steps = range(params["length"])
    for i in reversed(steps) if params["reverse"] else steps:
        results = run_graph(body, [*fixed, *carry, *(x[i] for x in xs)])
        carry = results[:carries]
        ys.append(results[carries:])
    if not ys:
        avals = body.output_avals()[carries:]
        return (*carry, *(E.full(shape=(0, *a.shape), value=0, dtype=a.dtype) for a in avals))
    columns = zip(*(reversed(ys) if params["reverse"] else ys), strict=True)
    return (*carry, *(eager.stack(column) for column in columns))


class _Ruled(autograd.Function):
    """Values with a gradient rule that is a graph: the operands of a `custom_vjp` node, after its parameters."""

    @staticmethod
    def forward(ctx: Any, params: Any, *operands: Tensor) -> tuple[Tensor, ...]:
        values = operands[: params["results"]]
        ctx.mark_non_differentiable(*(t for t in values if not is_inexact(t._dtype())))
        ctx.save_for_backward(*operands[len(values) :])
        ctx.params = params
        return values

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor) -> tuple[Any, ...]:
        params, given = ctx.params, ctx.saved_tensors
        if params["pullback"] is None:
            raise CaptureError(params["message"])
        grads: list[Any] = [None] * (1 + params["results"] + len(given))
        for k, g in zip(params["wrt"], run_graph(params["pullback"], [*given, *cotangents]), strict=True):
            grads[1 + k] = g
        return tuple(grads)


_STRUCTURED: dict[Op, Callable[..., Any]] = {
    SWITCH: _switch, WHILE: _while, SCAN: _scan, CUSTOM: _Ruled.apply,
    ITEM: lambda params, bundle: bundle[params["index"]],
}  # fmt: skip
