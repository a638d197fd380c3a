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
    builder = Builder(body.nodes)
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


# --- switch


def _switch(builder: Builder, node: Node, cotangents: Mapping[int, Symbol], wanted: Collection[int]) -> Shares:
    wrt = sorted(wanted)
    outputs = sorted(cotangents)
    branches = tuple(pulled_graph(b, outputs, [k - 1 for k in wrt]) for b in node.params["branches"])
    operands = [builder.symbol(i) for i in node.inputs]
    return list(zip(wrt, emit(builder, SWITCH, [*operands, *(cotangents[k] for k in outputs)], branches=branches),
                    strict=True))  # fmt: skip


# --- loops


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


def _scan(builder: Builder, node: Node, cotangents: Mapping[int, Symbol], wanted: Collection[int]) -> Shares:
    node = builder.nodes[node.id]  # perhaps extended by now
    params = node.params
    body: Graph = params["body"]
    consts, carries = params["consts"], params["carries"]
    first_x = consts + carries
    active = active_carries(body, consts, carries, cotangents.keys(), wanted)
    ys = sorted(k for k in cotangents if k >= carries)
    wrt = sorted({k for k in wanted if k < consts or k >= first_x} | {consts + k for k in active})
    avals = body.input_avals()
    inner, cts, grads = pulled(body, [*active, *ys], wrt)
    back = [grads[consts + k] if consts + k in grads else zeros(inner, avals[consts + k]) for k in active]
    summed = [k for k in wrt if k < consts and k in grads]
    sums = [inner.input(f"sum_{k}", avals[k]) for k in summed]
    totals = [old + grads[k] for old, k in zip(sums, summed, strict=True)]
    rows = [k for k in wrt if k >= first_x and k in grads]
    results = [*back, *totals, *(grads[k] for k in rows)]

    nodes = inner.nodes
    added = {s.id for s in (*cts.values(), *sums)}
    changing, own = set(body.inputs[consts:]), set(added)
    for id, n in nodes.items():
        if not own.isdisjoint(n.inputs):
            own.add(id)
        elif not changing.isdisjoint(n.inputs):
            changing.add(id)
    ends = [s.id for s in results]
    own = (own & ancestors(nodes, ends)) | {id for id in ends if id not in own}
    xs = body.inputs[first_x:]
    again, kept = _read(nodes, body, changing - set(xs), own)
    present = own | again
    read = {i for id in present for i in nodes[id].inputs}
    used_consts = [k for k in range(consts) if body.inputs[k] in read]
    used_xs = [k for k in range(first_x, len(body.inputs)) if body.inputs[k] in read]

    residuals = stack_more(builder, node, Graph(body.name, nodes, body.inputs, body.result), kept)
    signature = {body.inputs[k]: nodes[body.inputs[k]] for k in used_consts}
    signature |= {cts[k].id: nodes[cts[k].id] for k in active}
    signature |= {s.id: nodes[s.id] for s in sums}
    signature |= {id: Node(id, INPUT, (), {"name": f"kept_{id}"}, nodes[id].results, nodes[id].where) for id in kept}
    signature |= {body.inputs[k]: nodes[body.inputs[k]] for k in used_xs}
    signature |= {cts[k].id: nodes[cts[k].id] for k in ys}
    inside = signature | {id: computed_again(n) for id, n in nodes.items() if id in present and id not in signature}
    graph = Graph(f"{body.name}_gradient", inside, tuple(signature), tuple(Ref(id) for id in ends))
    outer = node.inputs
    old = [cotangents[k] if k in cotangents else zeros(builder, avals[consts + k]) for k in active]
    operands = [
        *(builder.symbol(outer[k]) for k in used_consts), *old, *(zeros(builder, avals[k]) for k in summed),
        *residuals, *(builder.symbol(outer[k]) for k in used_xs), *(cotangents[k] for k in ys),
    ]  # fmt: skip
    found = emit(
        builder, SCAN, operands, body=graph, consts=len(used_consts), carries=len(active) + len(summed),
        length=params["length"], reverse=not params["reverse"], unroll=params["unroll"],
    )  # fmt: skip
    positions = [*(consts + k for k in active), *summed, *rows]
    return [(k, s) for k, s in zip(positions, found, strict=True) if k in wanted]


STRUCTURED[SWITCH] = _switch
STRUCTURED[SCAN] = _scan
