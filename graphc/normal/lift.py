"""The nodes of a graph as forms of its atoms: inputs, and results of what is not multilinear."""

from __future__ import annotations

import builtins
from collections.abc import Collection, Mapping, Sequence

from graphc.ir import Graph, Node
from graphc.normal.affine import Unsolved
from graphc.normal.form import Algebra, Form, atom


def is_lifted(node: Node, nodes: Mapping[int, Node]) -> bool:
    """Whether a node may be a form of its operands: of one dtype, since no form tells where numbers are rounded."""
    if node.op.lifting is None or node.dtype.kind == "b" or not all(type(n) is int for n in node.shape):
        return False
    operands = [nodes[i] for i in node.inputs]
    return all(not x.op.several and x.dtype == node.dtype for x in operands)


def _lifted(algebra: Algebra, node: Node, nodes: Mapping[int, Node], given: Sequence[Form]) -> Form:
    assert node.op.lifting is not None
    form = node.op.lifting(algebra, *given, **node.params)
    avals = [nodes[i].aval for i in node.inputs]
    if node.inputs and node.op.has_lone_terms(avals, node.aval, node.params, lambda k, sign: False):
        return algebra.add(form, algebra.zeros(node.shape))
    return form


def forms(graph: Graph) -> dict[int, Form]:
    """The form of each node of `graph` that has one result, of sizes that are numbers."""
    return forms_of(graph.nodes, graph.nodes)


Known = dict[tuple[int, ...], tuple[tuple[Form, ...], Form]]


def forms_of(
    some: Mapping[int, Node], nodes: Mapping[int, Node], atoms: Collection[int] = (), known: Known | None = None
) -> dict[int, Form]:
    """The forms of `some` nodes, in order; what they read besides is atoms.

    atoms  those of them that are to be taken as they are by the others
    known  forms of earlier calls, by node and the operands' forms
    """
    known = {} if known is None else known
    algebra = Algebra()
    own: dict[int, Form] = {}
    read: dict[int, Form] = {}  # as operands

    def operand(id: int) -> Form:
        if id not in read:
            read[id] = own[id] if id in own and id not in atoms else as_atom(id)
        return read[id]

    def as_atom(id: int) -> Form:
        if (id,) not in known:
            known[id,] = (), atom(id, nodes[id].shape)
        return known[id,][1]

    for id, node in some.items():
        if node.op.several or not all(type(n) is int for n in node.shape):
            continue
        own[id] = as_atom(id)
        if node.op.lifting is not None and is_lifted(node, nodes):
            given = tuple([operand(i) for i in node.inputs])
            key = (id, len(given), *map(builtins.id, given))
            if key not in known:  # which keeps the operands' forms alive
                try:
                    known[key] = given, _lifted(algebra, node, nodes, given)
                except Unsolved:
                    known[key] = given, own[id]
            own[id] = known[key][1]
    return own
