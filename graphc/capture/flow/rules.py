"""Gradient rules of the user's in functions that are given to control flow: `autograd.Function`s, and hooks.

Outside of such functions a rule is called when a gradient arrives (graphc.capture.gradients). Here the gradient is that
of a graph, perhaps of many steps: the rule is traced, to a graph of its own, and becomes a `custom_vjp` node. What it
reaches, what was saved for it among that, are operands of the node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from eager.core.tensor import Tensor
from graphc import errors
from graphc.ir import Graph, Node
from graphc.ir.structure import CUSTOM, ITEM
from graphc.ops.aval import Aval

if TYPE_CHECKING:
    from graphc.capture.tracer import Tracer

DEPTH = 3  # rules that are themselves made of Functions: how many of them inside each other are traced


class TracedRule(NamedTuple):
    """A rule as a graph.

    reached    the tensors that it reaches by itself
    positions  the inputs of the Function that it gives gradients for
    graph      makes the graph: for tensors that come before the cotangents, `reached` among them, and for the dtypes of
               the gradients
    """

    reached: list[Tensor]
    positions: list[int]
    graph: Callable[[Sequence[Tensor], Sequence[np.dtype]], Graph]


Called = Callable[[list[Tensor]], Sequence[Tensor | None]]  # from cotangents to gradients, None where there is none
Trace = Callable[[Called, list[Aval]], TracedRule]  # the types are those of the cotangents


def close(tracer: Tracer, trace: Trace) -> dict[int, int]:
    """Make the rules of a trace, which is about to end, part of its graph.

    Returns, for each node with hooks, the node that has its value and the hooks as its gradient.
    """
    autograd, builder = tracer.autograd, tracer.builder
    nodes, moved = builder.nodes, dict[int, int]()

    def rule(id: int, values: Sequence[int], inputs: Sequence[int], called: Called) -> None:
        """Make node `id`: results with the values of the nodes `values`, a rule that gives gradients for `inputs`."""
        avals = [nodes[id].aval for id in values]
        params: dict[str, Any] = {"results": len(values), "pullback": None, "wrt": (), "message": ""}
        operands = [*values, *inputs]
        try:
            if tracer.rule_depth >= DEPTH:
                raise errors.CaptureError(errors.RULES_IN_RULES)
            found = trace(called, avals)
            before = [*(tracer.wrap(builder.symbol(id), False) for id in inputs), *found.reached]
            params["pullback"] = found.graph(before, [nodes[inputs[k]].dtype for k in found.positions])
            params["wrt"] = tuple(len(values) + k for k in found.positions)
            operands += [tracer.read(t).id for t in found.reached]
            CUSTOM.rule.infer(CUSTOM, [nodes[id].aval for id in operands], params)
        except Exception as error:  # which matters to who wants gradients only
            where = nodes[values[0]].where or "an unknown line"
            operands = [*values, *inputs]
            params |= {"pullback": None, "wrt": tuple(range(len(values), len(operands)))}
            params["message"] = errors.RULE_FAILED.format(where=where, kind=type(error).__name__, error=error)
        nodes[id] = Node(id, CUSTOM, tuple(operands), params, tuple(avals), *_place(nodes, values[0]))

    def appended() -> int:
        builder.next_id += 1
        tracer.state.recorded.add(builder.next_id - 1)
        return builder.next_id - 1

    for function in autograd.functions:
        values = nodes[function.node].inputs[: nodes[function.node].params["results"]]
        rule(function.node, values, function.inputs, function.called)
    hooks: set[int] = set()
    for id, called in autograd.hooks.rules():
        several, moved[id] = appended(), appended()
        rule(several, [id], [id], called)
        hooks.add(several)
        nodes[moved[id]] = Node(moved[id], ITEM, (several,), {"index": 0}, nodes[id].results, *_place(nodes, id))
    for id in tracer.state.recorded - hooks if moved else ():
        nodes[id] = nodes[id].on(tuple(moved.get(i, i) for i in nodes[id].inputs))
    builder.nodes = _ordered(nodes)
    return moved


def _place(nodes: Mapping[int, Node], id: int) -> tuple[str, str]:
    return nodes[id].where, nodes[id].scope


def _ordered(nodes: Mapping[int, Node]) -> dict[int, Node]:
    """`nodes`, each behind its operands; otherwise as they are. Raises CaptureError if that cannot be."""
    done: dict[int, Node] = {}
    for start in nodes:
        stack, above = [start], set[int]()
        while stack:
            id = stack[-1]
            waiting = [i for i in nodes[id].inputs if i not in done]
            if id in done or not waiting:
                done[stack.pop()] = nodes[id]
                above.discard(id)
                continue
            above.add(id)
            if any(i in above for i in waiting):
                raise errors.CaptureError(errors.RULE_READS_LATER.format(where=nodes[id].where or "an unknown line"))
            stack += reversed(waiting)
    return done
