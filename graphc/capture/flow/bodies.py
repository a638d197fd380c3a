"""Functions given to control flow, as graphs: each is traced by a tracer of its own.

What such a function reaches by itself, tensors of the trace around it as well as parameters and globals, becomes an
operand of the operation, so it is read there as everything else, and receives gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, final

import numpy as np

from eager.core.grad_mode import set_grad_enabled
from eager.core.interpreter import interpreting
from eager.core.state import grad_enabled
from eager.core.tensor import Tensor
from graphc import errors
from graphc.capture.effects import effects_of
from graphc.capture.flow.nests import Nest, nest
from graphc.capture.flow.rules import Called, TracedRule, close
from graphc.capture.gradients import Autograd
from graphc.capture.location import user_line
from graphc.capture.sources import Captured, Draw
from graphc.capture.tracer import Tracer
from graphc.ir import INPUT, Graph, Node, Ref, Symbol, rename
from graphc.ir.structure import emit
from graphc.ops import OPS, Op
from graphc.ops.aval import Aval
from graphc.ops.dtypes import is_inexact

_STOP = OPS["stop_gradient"]


class Stand(NamedTuple):
    """What a function gets in place of an operand: its type, and whether it requires grad."""

    aval: Aval
    requires_grad: bool


@final
class TracedBody:
    """A function as a graph.

    results   what it returned
    requires  which of the results require grad
    reached   the tensors that it reaches by itself, each an input of the graph
    draws     inputs that are drawn from a random generator

    own: whether the operands are tensors of the function's own, not those of the program around it. rule: whether the
    function is a gradient rule.
    """

    def __init__(
        self, outer: Tracer, name: str, fn: Callable[..., Any], stands: Sequence[Stand], call: Any, what: str,
        own: bool = True, rule: bool = False,
    ):  # fmt: skip
        self.what, self.where = what, user_line()
        tracer = Tracer(outer.state.name_of, outer=outer)
        tracer.rule_depth = outer.rule_depth + rule
        builder = tracer.builder
        builder.scope = outer.builder.scope
        inputs = [
            tracer.wrap(builder.input(f"x{k}", stand.aval), stand.requires_grad) for k, stand in enumerate(stands)
        ]
        self.operands = tuple(builder.inputs)
        ends: list[Symbol] = []
        try:
            with interpreting(tracer):
                self.results: Nest = nest(call(fn, inputs), f"the result of {what}")
                ends = [tracer.read(t) for t in self.results.leaves]
                effects = effects_of(tracer)
                tracer.autograd.outside.update(set(builder.inputs).difference(self.operands if own else ()))
                moved = close(tracer, partial(_rule, tracer)) if tracer.autograd.has_rules else {}
        finally:
            builder.closed = True
        if effects:
            raise errors.CaptureError(errors.EFFECT_IN_BODY.format(what=what, used=self.where))
        self.requires = [t._n is not None for t in self.results.leaves]
        outer.state.guards += tracer.state.guards
        self.draws: dict[int, Draw] = {}
        self.reached: dict[int, tuple[Tensor, int]] = {}  # id of tensor -> the tensor, and its input
        for id_, source in zip(builder.inputs[len(stands) :], tracer.state.sources, strict=True):
            if isinstance(source, Captured):
                self.reached[id(source.tensor)] = source.tensor, id_
            else:
                assert isinstance(source, Draw)
                self.draws[id_] = source
        tracer.state.forget()
        self._nodes: dict[int, Node] = builder.nodes
        self._next = builder.next_id
        self._name = name
        self._recorded = tracer.recorded
        self._ends = [moved.get(s.id, s.id) if live else s.id for s, live in zip(ends, self.requires, strict=True)]

    @property
    def draw_avals(self) -> list[Aval]:
        """The types of the draws."""
        return [self._nodes[id_].aval for id_ in self.draws]

    def refuse_draws(self) -> None:
        """Raise CaptureError if the function draws random numbers."""
        if self.draws:
            raise errors.CaptureError(errors.DRAW_IN_BODY.format(what=self.what, used=self.where))

    def graph(self, consts: Sequence[Tensor], dtypes: Sequence[np.dtype] | None = None) -> Graph:
        """The graph, with inputs for `consts`, then the operands, then the draws.

        consts: all that is reached, and perhaps more. dtypes: what the results are to be cast to.
        """
        nodes, given = dict(self._nodes), []
        for tensor in consts:
            known = self.reached.get(id(tensor))
            if known is None:  # only another function of the operation reaches it
                id_, self._next = self._next, self._next + 1
                aval = Aval(tuple(tensor._d.shape), tensor._dtype())
                nodes[id_] = Node(id_, INPUT, (), {"name": f"unused_{id_}"}, (aval,))
                given.append(id_)
            else:
                given.append(known[1])
        ends = list(self._ends)
        if any(self.requires):
            nodes, ends = self._stopped(nodes, ends)
        for k, dtype in enumerate(dtypes or ()):
            if nodes[ends[k]].dtype != dtype:
                ends[k] = self._append(nodes, OPS["cast"], ends[k], {"dtype": dtype})
        inputs = (*given, *self.operands, *self.draws)
        named = {id_: _named(nodes[id_], f"{kind}_{k}") for kind, ids in (("const", given), ("x", self.operands),
                 ("random", self.draws)) for k, id_ in enumerate(ids)}  # fmt: skip
        ordered = {**named, **{id_: n for id_, n in nodes.items() if id_ not in named}}
        return Graph(self._name, ordered, inputs, tuple(Ref(id_) for id_ in ends))

    def _append(self, nodes: dict[int, Node], op: Op, operand: int, params: dict[str, Any]) -> int:
        id_, self._next = self._next, self._next + 1
        old = nodes[operand]
        aval = op.rule.infer(op, [old.aval], params)
        nodes[id_] = Node(id_, op, (operand,), params, (aval,), old.where, old.scope)
        return id_

    def _stopped(self, nodes: dict[int, Node], ends: list[int]) -> tuple[dict[int, Node], list[int]]:
        """Gradients stop at the nodes that were not recorded, where recorded ones read them."""
        made: dict[int, Node] = {}
        stops: dict[int, int] = {}

        def stopped(id_: int) -> int:
            node = nodes[id_]
            passes = node.op.differentiable or node.op.structured
            if node.op is INPUT or id_ in self._recorded or not passes or not is_inexact(node.dtype):
                return id_
            if id_ not in stops:
                stops[id_] = self._append(made, _STOP, id_, {})
            return stops[id_]

        for id_, node in nodes.items():
            made[id_] = node
            if id_ in self._recorded:
                made[id_] = node.on(tuple(stopped(i) for i in node.inputs))
                if made[id_] is not node:  # behind the stops that it reads
                    made[id_] = made.pop(id_)
        return made, [stopped(id_) for id_ in ends]


def with_rules(autograd: Autograd, graph: Graph) -> tuple[Graph, frozenset[int], list[Tensor]]:
    """`graph`, the program of a trace, with the user's gradient rules as part of it, for gradients of any order.

    Returns also the nodes that gradients flow through, and the tensors that only the rules reach: the last inputs.
    """
    tracer = autograd.tracer
    with tracer.reopened(graph):
        count = len(tracer.state.sources)
        moved = close(tracer, partial(_rule, tracer))
        builder = tracer.builder
        result = rename(graph.result, {id_: moved.get(id_, id_) for id_ in graph.outputs})
        closed = Graph(graph.name, builder.nodes, tuple(builder.inputs), result)
        return closed, tracer.recorded, tracer.reached_since(count)


def _rule(tracer: Tracer, called: Called, avals: list[Aval]) -> TracedRule:
    """Trace a gradient rule of what `tracer` traces."""
    positions: list[int] = []

    def gradients(_: Any, cotangents: list[Tensor]) -> tuple[Tensor, ...]:
        found = called(cotangents)
        positions[:] = [k for k, g in enumerate(found) if g is not None]
        return tuple(g for g in found if g is not None)

    stands = [Stand(aval, is_inexact(aval.dtype)) for aval in avals]
    with set_grad_enabled(True):
        body = TracedBody(tracer, "rule", called, stands, gradients, "a gradient rule", rule=True)
    body.refuse_draws()
    return TracedRule(reached([body]), positions, body.graph)


def _named(node: Node, name: str) -> Node:
    return Node(node.id, INPUT, (), {"name": name}, node.results, node.where, node.scope)


def reached(bodies: Sequence[TracedBody]) -> list[Tensor]:
    """The tensors that some of the functions reach by themselves, each once."""
    found = {key: tensor for body in bodies for key, (tensor, _) in body.reached.items()}
    return list(found.values())


def apply(
    tracer: Tracer, op: Op, operands: Sequence[Tensor], requires: Sequence[bool], where: str, **params: Any
) -> list[Tensor]:
    """Append a structured operation to the trace. requires: which of its results require grad."""
    builder = tracer.builder
    symbols = [tracer.read(t) for t in operands]
    builder.where = where
    before = builder.next_id
    symbols = emit(builder, op, symbols, **params)
    live = [needed and grad_enabled() and is_inexact(s.dtype) for needed, s in zip(requires, symbols, strict=True)]
    if any(live):
        tracer.state.recorded.add(before)  # the operation itself, then its results
        tracer.state.recorded.update(s.id for s, alive in zip(symbols, live, strict=True) if alive)
    return [tracer.wrap(s, alive) for s, alive in zip(symbols, live, strict=True)]
