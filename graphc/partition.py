"""Splitting a differentiated program in two: a forward graph that also returns residuals, and a backward graph."""

from __future__ import annotations

from typing import Any, NamedTuple

from graphc.autodiff import pullback
from graphc.capture import History, Program
from graphc.ir import INPUT, Builder, Graph, Node, Ref, refs_of
from graphc.passes import optimize

LIVE = History.LIVE


class Split(NamedTuple):
    """forward returns (result, effects, residuals); backward takes residuals, forward inputs and cotangents.

    saved        numbers of the forward inputs that backward reads, which come after the residuals
    wrt          numbers of the forward inputs that the gradients are for, in the order in which backward returns them
    """

    forward: Graph
    backward: Graph
    saved: tuple[int, ...]
    wrt: tuple[int, ...]


def with_effects(program: Program) -> Graph:
    """The graph of `program` that returns (result, values of its effects)."""
    graph = program.graph
    effects = tuple(Ref(e.id) for e in program.effects if e.id is not None)
    return graph.replace(graph.nodes, (graph.result, effects))


def split(program: Program, wrt: list[int], strict: bool) -> Split:
    """Differentiate `program` with respect to its inputs number `wrt`, and split it.

    The whole is optimized first. What the backward part needs of the forward part becomes a residual; inputs are
    passed on, and constants are repeated, instead of being returned.
    """
    whole = with_effects(program)
    outputs = [r.id for r, h in zip(refs_of(program.graph.result), program.histories, strict=True) if h is LIVE]

    def seeds(builder: Builder) -> dict[int, Any]:
        found: dict[int, Any] = {}
        for k, id in enumerate(outputs):
            ct = builder.input(f"ct_{k}", whole.nodes[id].aval)
            found[id] = found[id] + ct if id in found else ct
        return found

    targets = [whole.inputs[k] for k in wrt]
    if program.rules is None:
        builder = Builder(whole.nodes)
        builder.inputs = list(whole.inputs)
        grads = pullback(builder, seeds(builder), targets, program.recorded)
    else:
        builder, grads = program.rules.pullback(whole, seeds, targets)
    found = [(k, grads[id].id) for k, id in zip(wrt, targets, strict=True) if id in grads]
    joint = builder.graph(whole.name, (whole.result, tuple(Ref(id) for _, id in found)))
    joint = optimize(joint, strict=strict)
    result, gradient_refs = joint.result
    return _partition(joint, result, gradient_refs, len(whole.inputs), tuple(k for k, _ in found))


def _partition(
    joint: Graph, result: Any, gradients: tuple[Ref, ...], forward_inputs: int, wrt: tuple[int, ...]
) -> Split:
    nodes = joint.nodes
    first = _ancestors(nodes, [r.id for r in refs_of(result)])
    needed = _ancestors(nodes, [r.id for r in gradients]) - first
    free = {id for id in first if not nodes[id].inputs and nodes[id].op is not INPUT}  # constants: repeated
    reads = {i for id in needed for i in nodes[id].inputs} | {r.id for r in gradients}
    crossing = [id for id in nodes if id in reads and id in first and id not in free]
    number = {id: k for k, id in enumerate(joint.inputs)}
    ours = joint.inputs[:forward_inputs]
    saved = [id for id in ours if id in reads]
    residuals = [id for id in crossing if id not in number]
    # an input that only the backward part reads is no ancestor of the result, and still an input of the forward part
    forward_nodes = {id: n for id, n in nodes.items() if id in first or id in ours}
    forward = Graph(joint.name, forward_nodes, ours, (*result, tuple(Ref(id) for id in residuals)), joint.history)
    backward_nodes: dict[int, Node] = {}
    for id in residuals:
        backward_nodes[id] = Node(id, INPUT, (), {"name": f"residual_{id}"}, nodes[id].aval, nodes[id].where)
    inputs = (*residuals, *saved, *joint.inputs[forward_inputs:])
    for id, node in nodes.items():
        if id in needed or id in inputs[len(residuals) :] or (id in free and id in reads):
            backward_nodes[id] = node
    backward = Graph(f"{joint.name}_backward", backward_nodes, inputs, gradients, joint.history)
    return Split(forward, backward, tuple(number[id] for id in saved), wrt)


def _ancestors(nodes: Any, roots: list[int]) -> set[int]:
    seen: set[int] = set()
    stack = list(roots)
    while stack:
        id = stack.pop()
        if id not in seen:
            seen.add(id)
            stack.extend(nodes[id].inputs)
    return seen
