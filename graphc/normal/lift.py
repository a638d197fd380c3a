"""The nodes of a graph as forms of its atoms: inputs, and results of what is not multilinear."""

from __future__ import annotations

from collections.abc import Collection

from graphc.ir import Graph, Node
from graphc.normal.affine import Unsolved
from graphc.normal.form import Algebra, Form, atom


def forms(graph: Graph, atoms: Collection[int] = ()) -> dict[int, Form]:
    """The form of each node of `graph`; of one with several results or symbolic sizes, and what reads it, none.

    atoms  nodes that are to be taken as they are
    """
    algebra = Algebra()
    found: dict[int, Form] = {}
    dtypes = {id: node.dtype for id, node in graph.nodes.items() if not node.op.several}
    for id, node in graph.nodes.items():
        if node.op.several or not all(type(n) is int for n in node.shape):
            continue
        same = all(dtypes.get(i) == node.dtype for i in node.inputs)  # no form tells where numbers are rounded
        form = _lifted(algebra, node, found) if same and id not in atoms else None
        found[id] = form if form is not None else atom(id, node.shape)
    return found


def _lifted(algebra: Algebra, node: Node, found: dict[int, Form]) -> Form | None:
    lifting = node.op.lifting
    if lifting is None or not found.keys() >= set(node.inputs) or node.dtype.kind == "b":
        return None
    try:
        return lifting(algebra, *[found[i] for i in node.inputs], **node.params)
    except Unsolved:
        return None
