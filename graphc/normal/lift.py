"""The nodes of a graph as forms of its atoms: inputs, and results of what is not multilinear."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from graphc.ir import Graph, Node
from graphc.normal.affine import Unsolved
from graphc.normal.form import Algebra, Form, atom


def is_lifted(node: Node, nodes: Mapping[int, Node]) -> bool:
    """Whether a node may be a form of its operands: of one dtype, since no form tells where numbers are rounded."""
    if node.op.lifting is None or node.dtype.kind == "b" or not all(type(n) is int for n in node.shape):
        return False
    operands = [nodes[i] for i in node.inputs]
    return all(not x.op.several and x.dtype == node.dtype for x in operands)


def forms(graph: Graph) -> dict[int, Form]:
    """The form of each node of `graph` that has one result, of sizes that are numbers."""
    return forms_of(graph.nodes, graph.nodes)


def forms_of(some: Mapping[int, Node], nodes: Mapping[int, Node], atoms: Collection[int] = ()) -> dict[int, Form]:
    """The forms of `some` nodes, in order; what they read besides is atoms.

    atoms  those of them that are to be taken as they are by the others
    """
    algebra = Algebra()
    own: dict[int, Form] = {}
    read: dict[int, Form] = {}  # as operands

    def operand(id: int) -> Form:
        if id not in read:
            read[id] = own[id] if id in own and id not in atoms else atom(id, nodes[id].shape)
        return read[id]

    for id, node in some.items():
        if node.op.several or not all(type(n) is int for n in node.shape):
            continue
        own[id] = atom(id, node.shape)
        if node.op.lifting is not None and is_lifted(node, nodes):
            try:
                own[id] = node.op.lifting(algebra, *[operand(i) for i in node.inputs], **node.params)
            except Unsolved:
                continue
    return own
