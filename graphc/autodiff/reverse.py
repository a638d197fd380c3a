"""Reverse mode as a graph transform: the gradient rules of the ops, emitted as nodes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from graphc.errors import GraphError
from graphc.ir import Builder, Graph, Node, Ref, Symbol
from graphc.ir.garbage_collection import without_collector
from graphc.ir.structure import ITEM, result_paths
from graphc.ops import Op
from graphc.ops.dtypes import is_inexact
from graphc.ops.gradient import names_of_results, rule_values, share

Shares = list[tuple[int, Symbol]]
# op -> rule(builder, node, {result number: cotangent}, numbers of the operands that gradients are for), which gives
# (operand number, share) pairs
STRUCTURED: dict[Op, Callable[[Builder, Node, Mapping[int, Symbol], Collection[int]], Shares]] = {}


Custom = Callable[[Mapping[int, Symbol]], Shares]  # a user's rule: {result number: cotangent} -> shares


def pullback(
    builder: Builder,
    cotangents: Mapping[int, Symbol],
    wrt: Collection[int],
    recorded: Collection[int] | None = None,
    *,
    custom: Mapping[int, Custom] = MappingProxyType({}),
    arrived: Callable[[int, Symbol], Symbol] = lambda id, g: g,
) -> dict[int, Symbol]:
    """Append to `builder` the gradients of the nodes `wrt`, given the cotangents of other nodes.

    recorded: the ids that gradients may flow through (None: all). Returns id -> gradient, for those of `wrt` that the
    cotangents reach. Contributions are added in the order in which the tape adds them, last user first.
    custom: the rules of `custom_vjp` nodes, where they are no graphs. arrived: called with each complete gradient; what
    it returns takes its place.
    """
    nodes = list(builder.nodes.values())
    targets = frozenset(wrt)
    flow = _flow(builder, targets, recorded)
    grads = {id: g for id, g in cotangents.items() if id in flow.reaches}
    several: dict[int, dict[int, Symbol]] = {}  # of nodes with several results: the cotangents that have arrived
    where, scope = builder.where, builder.scope
    for node in reversed(nodes):
        if node.id not in grads and node.id not in several:
            continue
        builder.where, builder.scope = node.where, node.scope
        if node.id in grads:
            grads[node.id] = arrived(node.id, grads[node.id])
        if node.id not in flow.live:
            continue
        if node.op is ITEM:
            _add(several.setdefault(node.inputs[0], {}), node.params["index"], grads[node.id])
            continue
        live = flow.live[node.id]
        if node.op.structured:
            wanted = {k for k, _ in live}
            rule = custom.get(node.id)
            g = several.pop(node.id)
            found = rule(g) if rule else STRUCTURED[node.op](builder, node, g, wanted)
            shares = [(node.inputs[k], d) for k, d in found if k in wanted]
        elif node.op.several:
            g = several.pop(node.id)
            shares = _shares(builder, node, [g.get(k) for k in range(len(node.results))], live)
        else:
            g = grads[node.id] if node.id in targets else grads.pop(node.id)
            shares = _shares(builder, node, g, live)
        for operand, d in shares:
            _add(grads, operand, d)
    builder.where, builder.scope = where, scope
    return {id: grads[id] for id in wrt if id in grads}


class _Flow(NamedTuple):
    """Where gradients may go.

    reaches  the nodes whose value depends on a target
    live     of those that hand gradients on: the operands that get some, as (number, id)
    """

    reaches: set[int]
    live: dict[int, list[tuple[int, int]]]


def _flow(builder: Builder, targets: Collection[int], recorded: Collection[int] | None) -> _Flow:
    flow = _Flow(set(targets), {})
    results: dict[int, list[int]] = {}  # of nodes with several results: which depend on a target
    for node in builder.nodes.values():
        if recorded is not None and node.id not in recorded:
            continue
        live: list[tuple[int, int]] = []
        if node.op is ITEM:
            passes = node.inputs[0] in results and results[node.inputs[0]][node.params["index"]]
        elif node.op.several:
            results[node.id] = paths = result_paths(node, [int(i in flow.reaches) for i in node.inputs])
            passes = any(paths)
            live = _live(builder, node, flow.reaches) if passes else []
        else:
            live = _live(builder, node, flow.reaches) if node.op.vjp else []
            passes = bool(live)
        if passes:
            flow.live[node.id] = live
            flow.reaches.add(node.id)
    return flow


def _add(grads: dict[int, Symbol], key: int, d: Symbol) -> None:
    old = grads.get(key)
    grads[key] = d if old is None else old + d


def _live(builder: Builder, node: Node, reaches: Collection[int]) -> list[tuple[int, int]]:
    """The operands that get a share of the cotangent, as (number, id)."""
    op, nodes = node.op, builder.nodes
    return [
        (k, i)
        for k, i in enumerate(node.inputs)
        if i in reaches and (op.structured or op.arg_of(k) in op.vjp) and is_inexact(nodes[i].aval.dtype)
    ]


def _shares(builder: Builder, node: Node, g: Any, live: list[tuple[int, int]]) -> list[tuple[int, Symbol]]:
    op, nodes = node.op, builder.nodes
    wanted = {name for k, _ in live for name in op.vjp[op.arg_of(k)].names}
    operands = [builder.symbol(i) for i in node.inputs] if wanted else []
    values = rule_values(op, wanted, operands, _result(builder, node, wanted), node.params)
    return [(i, share(builder.language, op, k, g, values, nodes[i].aval.shape)) for k, i in live]


def _result(builder: Builder, node: Node, wanted: Collection[str]) -> Any:
    """The result of `node`; of several, those that gradient rules want."""
    if not node.op.several:
        return Symbol(builder, node.id, node.aval)
    names = names_of_results(node.op, "r")
    return [builder.item(node.id, k) if name in wanted else None for k, name in enumerate(names)]


@without_collector
def gradients(
    graph: Graph, wrt: Collection[str] | None = None, *, values: bool = False, cotangents: bool = False
) -> Graph:
    """The graph that computes the gradients of `graph`'s outputs with respect to the inputs named in `wrt`.

    wrt         input names; None for every input of floating dtype
    values      also return the outputs: the result is then (original result, gradients)
    cotangents  take the cotangent of each output as an extra input `ct_<i>`; otherwise there must be exactly one
                output, with one element, whose cotangent is 1

    The result is a dict from name to gradient; an input that the outputs do not depend on has gradient zero.
    Raises GraphError for an unknown or non-floating input, or for an output that cannot be differentiated.

    >>> import eager as torch, graphc
    >>> g = graphc.trace(lambda x: x * x, torch.tensor(3.0))
    >>> graphc.gradients(g)(3.0 + torch.zeros(()).numpy())
    {'x': array(6., dtype=float32)}
    """
    by_name = {graph.nodes[id].params["name"]: id for id in graph.inputs}
    if wrt is None:
        wrt = [name for name, id in by_name.items() if is_inexact(graph.nodes[id].aval.dtype)]
    for name in wrt:
        if name not in by_name:
            raise GraphError(f"gradients: '{name}' is not an input of {graph.name} (inputs: {', '.join(by_name)})")
        if not is_inexact(graph.nodes[by_name[name]].aval.dtype):
            raise GraphError(f"gradients: input '{name}' is {graph.nodes[by_name[name]].aval}, which has no gradient")
    builder = Builder(graph.nodes, whole=True)
    builder.inputs = list(graph.inputs)
    seeds = _seeds(graph, builder, cotangents)
    targets = {name: by_name[name] for name in wrt}
    found = pullback(builder, seeds, list(targets.values()))
    grads = {name: Ref(_gradient(builder, found, id).id) for name, id in targets.items()}
    result: Any = (graph.result, grads) if values else grads
    return builder.graph(f"{graph.name}_gradients", result, call=graph.call)


def _seeds(graph: Graph, builder: Builder, cotangents: bool) -> dict[int, Symbol]:
    outputs = list(dict.fromkeys(i for i in graph.outputs if is_inexact(graph.nodes[i].aval.dtype)))
    if not outputs:
        raise GraphError(f"gradients: no output of {graph.name} has a floating dtype")
    if cotangents:
        return {id: builder.input(f"ct_{k}", graph.nodes[id].aval) for k, id in enumerate(outputs)}
    if len(outputs) != 1 or graph.nodes[outputs[0]].aval.size != 1:
        what = ", ".join(str(graph.nodes[i].aval) for i in outputs)
        raise GraphError(
            f"gradients: grad can be implicitly created only for scalar outputs, and {graph.name} returns {what}. "
            "Remedy: reduce the result to one number, or pass cotangents=True."
        )
    aval = graph.nodes[outputs[0]].aval
    return {outputs[0]: builder.language.full(shape=aval.shape, value=1, dtype=aval.dtype)}


def _gradient(builder: Builder, found: Mapping[int, Symbol], id: int) -> Symbol:
    if id in found:
        return found[id]
    aval = builder.nodes[id].aval
    return builder.language.full(shape=aval.shape, value=0, dtype=aval.dtype)
