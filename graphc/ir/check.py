"""Well-formedness of graphs: what every pass must preserve and every parser must establish."""

from __future__ import annotations

from keyword import iskeyword

import networkx as nx

from graphc.errors import GraphError
from graphc.ir.graph import INPUT, Graph, Node
from graphc.ir.structure import check_bodies
from graphc.ops import OPS
from graphc.ops.aval import types_text
from graphc.ops.interpret import operand_dtype
from graphc.ops.parameters import check_aval, check_parameters


def check(graph: Graph) -> Graph:
    """Return `graph`, or raise GraphError naming the first node that breaks a rule:

    ids match, operands come before their users, ops are registered and get as many operands as they take, recorded
    shapes and dtypes are those the op's rule infers, operands are already promoted, inputs and results exist.
    """
    if not graph.name.isidentifier() or iskeyword(graph.name):
        raise GraphError(f"the graph's name '{graph.name}' is not an identifier")
    seen: set[int] = set()
    signature = set(graph.inputs)
    if len(signature) != len(graph.inputs):
        raise GraphError("the signature names an input twice")
    for id, node in graph.nodes.items():
        if node.id != id:
            raise GraphError(f"node {node.id} is stored under id {id}")
        if missing := [i for i in node.inputs if i not in seen]:
            raise GraphError(f"{describe(node)} reads v{missing[0]}, which does not come before it")
        _check_type(node)
        if node.op is INPUT:
            if id not in signature:
                raise GraphError(f"input '{node.params['name']}' is not in the signature")
        else:
            _check_node(graph, node)
        seen.add(id)
    for id in graph.inputs:
        if id not in seen or graph.nodes[id].op is not INPUT:
            raise GraphError(f"the signature names v{id}, which is not an input")
    for id in graph.outputs:
        if id not in seen:
            raise GraphError(f"the result names v{id}, which does not exist")
    if not nx.is_directed_acyclic_graph(graph.nx):
        raise GraphError("the graph has a cycle")
    return graph


def describe(node: Node) -> str:
    """How messages name a node: op, id, and the user's line."""
    return f"{node.op.name} (v{node.id}{', ' + node.where if node.where else ''})"


def _check_type(node: Node) -> None:
    try:
        for aval in node.results:
            check_aval(aval)
    except GraphError as error:
        raise GraphError(f"{describe(node)} is recorded as {error}") from None


def _check_node(graph: Graph, node: Node) -> None:
    op = node.op
    if OPS.get(op.name) is not op:
        raise GraphError(f"{describe(node)}: the op is not registered")
    if not op.whole:
        raise GraphError(f"{describe(node)}: the op is defined by others, which stand for it in a graph")
    fixed = len(op.args) - op.variadic
    if len(node.inputs) < fixed or (len(node.inputs) > fixed and not op.variadic):
        raise GraphError(f"{describe(node)} has {len(node.inputs)} operands, takes {', '.join(op.args) or 'none'}")
    if node.params.keys() != op.params.keys():
        raise GraphError(f"{describe(node)} has parameters {list(node.params)}, takes {list(op.params)}")
    avals = [graph.nodes[i].type for i in node.inputs]
    try:
        check_parameters(op, avals, node.params)
        dtype = operand_dtype(op, [(a.dtype, 2) for a in avals]) if avals and op.rule.promote else None
    except Exception as error:  # rules raise PyTorch's errors, of any type; here they all mean the same
        raise GraphError(f"{describe(node)}: {error}") from error
    if dtype is not None and any(a.dtype != dtype for a in avals[op.rule.first :]):
        raise GraphError(f"{describe(node)}: operands {', '.join(map(str, avals))} are not promoted to {dtype}")
    if op.structured:
        check_bodies(node)
    try:
        inferred = op.rule.infer(op, avals, node.params)
    except Exception as error:
        raise GraphError(f"{describe(node)}: {error or type(error).__name__}") from error
    if (inferred if op.several else (inferred,)) != node.results:
        wanted, found = types_text(node.results), types_text(inferred if op.several else (inferred,))
        raise GraphError(f"{describe(node)} is recorded as {wanted}, but its operands give {found}")
