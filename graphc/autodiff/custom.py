"""Gradients by a rule of the user's that has been traced: its graph is inlined where the cotangents have arrived."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from graphc.autodiff.reverse import STRUCTURED, Shares
from graphc.errors import OPAQUE_GRADIENT, RULE_IS_NOT_LINEAR, OpaqueGradientError
from graphc.ir import Builder, Graph, Node, Symbol
from graphc.ir.structure import CUSTOM, inline
from graphc.ops import OPS, Trait
from graphc.ops.dtypes import is_inexact

_CONSTANT, _FULL = OPS["constant"], OPS["full"]


def _custom(builder: Builder, node: Node, cotangents: Mapping[int, Symbol], wanted: Collection[int]) -> Shares:
    params, language = node.params, builder.language
    if params["pullback"] is None:
        where = node.where or "an unknown line"
        raise OpaqueGradientError(params["message"] or OPAQUE_GRADIENT.format(where=where))
    given = [builder.symbol(i) for i in node.inputs[params["results"] :]]
    complete = [
        cotangents[k] if k in cotangents else language.full(shape=a.shape, value=0, dtype=a.dtype)
        for k, a in enumerate(node.results)
    ]
    shares = zip(params["wrt"], inline(builder, params["pullback"], [*given, *complete]), strict=True)
    return [(k, d) for k, d in shares if k in wanted]


STRUCTURED[CUSTOM] = _custom


def computed_again(node: Node) -> Node:
    """`node` of a forward pass, in a backward pass that computes its value again.

    Gradients of the backward pass arrive at both, and the rule is asked for each share: only a linear one gives what it
    gives for the sum.
    """
    pullback = node.params["pullback"] if node.op is CUSTOM else None
    if pullback is None or _is_linear(pullback, pullback.inputs[len(node.inputs) - node.params["results"] :]):
        return node
    message = RULE_IS_NOT_LINEAR.format(where=node.where or "an unknown line")
    params = {**node.params, "pullback": None, "message": message}
    return Node(node.id, node.op, node.inputs, params, node.results, node.where, node.scope)


def _is_linear(graph: Graph, wrt: Collection[int]) -> bool:
    """Whether the results of `graph` are surely linear in its inputs `wrt`, all of them together."""
    nodes, depends = graph.nodes, set(wrt)
    for id, node in nodes.items():
        moving = {k for k, i in enumerate(node.inputs) if i in depends}
        if not moving:
            continue
        if not _linear_node(node, moving, nodes):
            return False
        depends.add(id)
    return all(id in depends or _is_zero(nodes[id]) for id in graph.outputs)


def _linear_node(node: Node, moving: Collection[int], nodes: Mapping[int, Node]) -> bool:
    """Whether `node` is linear in its operands number `moving` together, as the values of the others are."""
    op = node.op
    if (op.traits & Trait.LINEAR and moving == {0}) or (op.traits & Trait.BILINEAR and moving in ({0}, {1})):
        return True
    inexact = [k for k, i in enumerate(node.inputs) if is_inexact(nodes[i].dtype)]
    names = {op.arg_of(k) for k in inexact}
    # a sum of its operands, whatever else it does: no gradient depends on their values
    sums = all(name in op.vjp and not {"r", *names} & set(op.vjp[name].names) for name in names)
    return sums and set(inexact) >= set(moving) and all(k in moving or _is_zero(nodes[node.inputs[k]]) for k in inexact)


def _is_zero(node: Node) -> bool:
    if node.op is _FULL:
        return node.params["value"] == 0
    return node.op is _CONSTANT and not node.params["value"].array.any()
