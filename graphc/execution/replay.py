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
from graphc.ir.structure import CUSTOM, ITEM, SCAN, SWITCH, WHILE, with_bodies
from graphc.ops import Op
from graphc.ops.control import Body, BodyProxy, run_switch, run_while
from graphc.ops.dtypes import is_inexact


def run_node(node: Node, operands: Sequence[Any]) -> Any:
    """The result of `node` on Tensors: a Tensor, or a tuple of them from an operation with several results."""
    if node.op in _KERNELS:
        played = with_bodies(node, lambda body: BodyProxy(body, lambda *tensors: run_graph(body, tensors)))
        return _KERNELS[node.op](*operands, **played.params)
    return apply(node.op, list(operands), node.params)


def run_graph(graph: Graph, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """The outputs of `graph`, run on Tensors."""
    values: dict[int, Any] = dict(zip(graph.inputs, tensors, strict=True))
    for node in graph.operations():
        values[node.id] = run_node(node, [values[i] for i in node.inputs])
    return tuple(values[id] for id in graph.outputs)


def _scan(
    *operands: Tensor, body: Body, consts: int, carries: int, length: int, reverse: bool, unroll: int
) -> tuple[Tensor, ...]:
    fixed, carry, xs = operands[:consts], operands[consts : consts + carries], operands[consts + carries :]
    ys: list[tuple[Tensor, ...]] = []
    for i in reversed(range(length)) if reverse else range(length):
        results = body(*fixed, *carry, *(x[i] for x in xs))
        carry = results[:carries]
        ys.append(results[carries:])
    if not ys:
        avals = body.output_avals()[carries:]
        return (*carry, *(E.full(shape=(0, *a.shape), value=0, dtype=a.dtype) for a in avals))
    columns = zip(*(reversed(ys) if reverse else ys), strict=True)
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
        for k, g in zip(params["wrt"], params["pullback"](*given, *cotangents), strict=True):
            grads[1 + k] = g
        return tuple(grads)


_KERNELS: dict[Op, Callable[..., Any]] = {
    SWITCH: run_switch, WHILE: run_while, SCAN: _scan, ITEM: lambda bundle, index: bundle[index],
    CUSTOM: lambda *operands, **params: _Ruled.apply(params, *operands),
}  # fmt: skip
