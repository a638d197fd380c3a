"""Gradients of structured operations: their bodies are differentiated as graphs, and run by operations of their own.

A switch has a switch of pullbacks, which compute their branch again. A scan has a scan in the other direction, which
reads what the forward one has kept of each step: the forward node is extended by these residuals, in its place. For
loops whose length is not known, see graphc.autodiff.checkpoints.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from graphc.autodiff.custom import computed_again
from graphc.autodiff.reverse import STRUCTURED, Shares, pullback
from graphc.ir import INPUT, Builder, Graph, Node, Ref, Symbol
from graphc.ir.structure import SCAN, SWITCH, ancestors, emit, members, stack_more, union
from graphc.ops.aval import Aval
from graphc.ops.dtypes import is_inexact


def zeros(builder: Builder, aval: Aval) -> Symbol:
    """A zero of this shape and dtype."""
    return builder.language.full(shape=aval.shape, value=0, dtype=aval.dtype)


class Pulled(NamedTuple):
    """A body with the gradients of some of its inputs.

    builder     the nodes of the body and, after them, those of the gradients
    cotangents  the inputs that were added: output number -> symbol
    gradients   input number -> gradient, of the inputs that the cotangents reach
    """

    builder: Builder
    cotangents: dict[int, Symbol]
    gradients: dict[int, Symbol]


def pulled(body: Graph, outputs: Sequence[int], wrt: Sequence[int]) -> Pulled:
    """Differentiate the outputs number `outputs` of `body` with respect to its inputs number `wrt`."""
    builder = Builder(body.nodes, whole=True)
    builder.inputs = list(body.inputs)
    cotangents: dict[int, Symbol] = {}
    seeds: dict[int, Symbol] = {}
    for k in outputs:
        id = body.outputs[k]
        cotangents[k] = ct = builder.input(f"ct_{k}", body.nodes[id].aval)
        seeds[id] = seeds[id] + ct if id in seeds else ct
    found = pullback(builder, seeds, [body.inputs[k] for k in wrt])
    return Pulled(builder, cotangents, {k: found[body.inputs[k]] for k in wrt if body.inputs[k] in found})


def pulled_graph(body: Graph, outputs: Sequence[int], wrt: Sequence[int]) -> Graph:
    """The graph that takes the inputs of `body` and a cotangent of each of `outputs`, and returns the gradients `wrt`.

    A gradient that no cotangent reaches is zero.
    """
    builder, _, gradients = pulled(body, outputs, wrt)
    avals = body.input_avals()
    results = [gradients[k] if k in gradients else zeros(builder, avals[k]) for k in wrt]
    builder.nodes = {id: computed_again(node) for id, node in builder.nodes.items()}
    return builder.graph(f"{body.name}_gradient", tuple(Ref(s.id) for s in results))


def _switch(builder: Builder, node: Node, cotangents: Mapping[int, Symbol], wanted: Collection[int]) -> Shares:
    wrt = sorted(wanted)
    outputs = sorted(cotangents)
    branches = tuple(pulled_graph(b, outputs, [k - 1 for k in wrt]) for b in node.params["branches"])
    operands = [builder.symbol(i) for i in node.inputs]
    return list(zip(wrt, emit(builder, SWITCH, [*operands, *(cotangents[k] for k in outputs)], branches=branches),
                    strict=True))  # fmt: skip


def active_carries(
    body: Graph, consts: int, carries: int, seeded: Collection[int], wanted: Collection[int]
) -> list[int]:
    """The numbers of the carries that have a gradient: results depend on them, and they on operands that want one.

    seeded: the numbers of the results with a cotangent; wanted: those of the operands that gradients are for.
    """
    carry_bits = ((1 << carries) - 1) << consts
    later = 0  # inputs of the body that some result with a cotangent depends on
    reached = union(1 << k for k in wanted)  # inputs that depend on a wanted operand
    live = union(1 << k for k in seeded)
    while True:
        found = later | union(body.paths[k] for k in members(live))
        grown = live | ((found & carry_bits) >> consts)
        if found == later and grown == live:
            break
        later, live = found, grown
    while True:
        grown = reached | union(1 << (consts + k) for k in range(carries) if body.paths[k] & reached)
        if grown == reached:
            break
        reached = grown
    avals = body.input_avals()[consts : consts + carries]
    both = live & (reached >> consts) & ((1 << carries) - 1)
    return [k for k in members(both) if is_inexact(avals[k].dtype)]


def _read(nodes: Mapping[int, Node], primal: Graph, changing: set[int], own: set[int]) -> tuple[set[int], list[int]]:
    """How the backward body, of the nodes `own`, gets at the values of the forward body `primal`.

    changing: nodes of the forward pass whose values change from step to step. Returns the nodes that are computed
    again (what does not change, views, and what only the gradients need), and those whose values are kept.
    """
    given = set(primal.inputs) - changing
    again: set[int] = set()
    kept: set[int] = set()
    stack = [i for id in own for i in nodes[id].inputs]
    while stack:
        id = stack.pop()
        if id in own or id in given or id in again or id in kept:
            continue
        only_gradients = id not in primal.nodes and not nodes[id].op.structured
        if id not in changing or nodes[id].op.view or only_gradients:
            again.add(id)
            stack.extend(nodes[id].inputs)
        else:
            kept.add(id)
    return again, sorted(kept)


def _division(
    nodes: Mapping[int, Node], body: Graph, consts: int, first_x: int, added: Collection[int], ends: Sequence[int]
) -> tuple[set[int], list[int]]:
    """Which nodes the backward body computes, and which it reads as they were kept of each step.

    consts: how many inputs of `body` are the same in each step; first_x: the first that is stacked already. added: the
    inputs that gradients come in by; ends: the results.
    """
    varying, own = set(body.inputs[consts:]), set(added)
    for id, n in nodes.items():
        if not own.isdisjoint(n.inputs):
            own.add(id)
        elif not varying.isdisjoint(n.inputs):
            varying.add(id)
    own = (own & ancestors(nodes, ends)) | {id for id in ends if id not in own}
    again, kept = _read(nodes, body, varying.difference(body.inputs[first_x:]), own)
    return own | again, kept


def _scan(builder: Builder, node: Node, cotangents: Mapping[int, Symbol], wanted: Collection[int]) -> Shares:
    node = builder.nodes[node.id]  # perhaps extended by now
    params = node.params
    body: Graph = params["body"]
    consts, first_x = params["consts"], params["consts"] + params["carries"]
    active = active_carries(body, consts, params["carries"], cotangents.keys(), wanted)
    ys = sorted(k for k in cotangents if k >= params["carries"])
    wrt = sorted({k for k in wanted if k < consts or k >= first_x} | {consts + k for k in active})
    avals = body.input_avals()
    inner, cts, grads = pulled(body, [*active, *ys], wrt)
    back = [grads[consts + k] if consts + k in grads else zeros(inner, avals[consts + k]) for k in active]
    summed = [k for k in wrt if k < consts and k in grads]
    sums = [inner.input(f"sum_{k}", avals[k]) for k in summed]
    totals = [old + grads[k] for old, k in zip(sums, summed, strict=True)]
    rows = [k for k in wrt if k >= first_x and k in grads]
    ends = [s.id for s in (*back, *totals, *(grads[k] for k in rows))]

    nodes = inner.nodes
    added = {s.id for s in (*cts.values(), *sums)}
    present, kept = _division(nodes, body, consts, first_x, added, ends)
    residuals = stack_more(builder, node, Graph(body.name, nodes, body.inputs, body.result), kept)
    read = {i for id in present for i in nodes[id].inputs}

    def given(start: int, stop: int) -> list[tuple[Node, Symbol]]:
        """The inputs of the forward body that are read again, and what they are given."""
        inputs = body.inputs
        return [(nodes[inputs[k]], builder.symbol(node.inputs[k])) for k in range(start, stop) if inputs[k] in read]

    # inputs of the backward body, each with what it is given
    constants = given(0, consts)
    carried = [
        *((nodes[cts[k].id], cotangents[k] if k in cotangents else zeros(builder, avals[consts + k])) for k in active),
        *((nodes[s.id], zeros(builder, avals[k])) for k, s in zip(summed, sums, strict=True)),
    ]
    stacked = [
        *((_kept(nodes[id]), residual) for id, residual in zip(kept, residuals, strict=True)),
        *given(first_x, len(body.inputs)),
        *((nodes[cts[k].id], cotangents[k]) for k in ys),
    ]
    pairs = [*constants, *carried, *stacked]
    signature = {n.id: n for n, _ in pairs}
    inside = signature | {id: computed_again(n) for id, n in nodes.items() if id in present and id not in signature}
    graph = Graph(f"{body.name}_gradient", inside, tuple(signature), tuple(map(Ref, ends)))
    found = emit(
        builder, SCAN, [s for _, s in pairs], body=graph, consts=len(constants), carries=len(carried),
        length=params["length"], reverse=not params["reverse"], unroll=params["unroll"],
    )  # fmt: skip
    positions = [*(consts + k for k in active), *summed, *rows]
    return [(k, s) for k, s in zip(positions, found, strict=True) if k in wanted]


def _kept(node: Node) -> Node:
    """The input that has the values of `node` in each step."""
    return Node(node.id, INPUT, (), {"name": f"kept_{node.id}"}, node.results, node.where)


STRUCTURED[SWITCH] = _switch
STRUCTURED[SCAN] = _scan
