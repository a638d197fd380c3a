"""What a scan does with its rows alone, done for all of them at once: by the rules of `vmap`.

A scan without carries is a map. Of one with carries, what reads only rows and constants is: its products of a matrix
and a row, which reads the matrix and does little else, are one product of two matrices, before the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from eager.core.tensor import Tensor
from eager.engine.dispatch import apply
from eager.func import vmap
from eager.func.batch_rules import is_batched_as_one
from graphc.capture.building import outside
from graphc.capture.trace import trace
from graphc.ir import INPUT, Builder, Graph, Node, Ref, Symbol, rename
from graphc.ir.structure import ITEM, SCAN, ancestors, inline
from graphc.ops import Trait
from graphc.rewrite.cost import PRODUCT_RATE, operations

MOST = 2**24  # elements of the values of a map that are in memory at once


def batch_rows(graph: Graph) -> Graph:
    """`graph` with what its scans do with rows alone done for all rows at once. Rounds differently."""
    if SCAN not in graph.ops:
        return graph
    builder = Builder()
    builder.next_id = first = max(graph.nodes) + 1
    results: dict[tuple[int, int], int] = {}  # (scan, result number) -> what it is now
    new: dict[int, int] = {}
    for id, node in graph.nodes.items():
        node = node.on(tuple([new.get(i, i) for i in node.inputs]))
        result = results.get((node.inputs[0], node.params["index"])) if node.op is ITEM else None
        if result is not None:
            new[id] = result
            continue
        builder.where, builder.scope = node.where, node.scope
        if node.op is SCAN and (outputs := _as_map(builder, node)) is not None:
            results |= {(id, k): output.id for k, output in enumerate(outputs)}
            continue
        builder.nodes[id] = _with_products_before(builder, node) if node.op is SCAN else node
    if builder.next_id == first:
        return graph
    return graph.replace(builder.nodes, rename(graph.result, {id: new.get(id, id) for id in graph.outputs}))


def _can_be_one(node: Node) -> bool:
    """Whether the steps' operations are one operation."""
    return not node.inputs or node.op is ITEM or is_batched_as_one(node.op)


def _as_map(builder: Builder, node: Node) -> list[Symbol] | None:
    """The results of a scan without carries. None if it stays one."""
    body: Graph = node.params["body"]
    if node.params["carries"] or node.params["length"] * sum(n.size for n in body.operations()) > MOST:
        return None
    if not all(map(_can_be_one, body.operations())):
        return None
    return _batched(builder, node, body, range(len(node.inputs)))


def _with_products_before(builder: Builder, node: Node) -> Node:
    """A scan with its products of rows and constants done before it."""
    body: Graph = node.params["body"]
    found = _products(body, node.params["consts"], node.params["carries"])
    if not found:
        return node
    needed = ancestors(body.nodes, found)
    read = [k for k, id in enumerate(body.inputs) if id in needed]
    nodes = {id: n for id, n in body.nodes.items() if id in needed}
    inputs = tuple([body.inputs[k] for k in read])
    products = _batched(builder, node, Graph(body.name, nodes, inputs, tuple(map(Ref, found))), read)
    nodes = dict(body.nodes)
    for id in found:
        n = nodes[id]
        nodes[id] = Node(id, INPUT, (), {"name": f"product_{id}"}, n.results, n.where, n.scope)
    rest = Graph(body.name, nodes, (*body.inputs, *found), body.result, body.history)
    operands = (*node.inputs, *[p.id for p in products])
    return Node(node.id, SCAN, operands, {**node.params, "body": rest}, node.results, node.where, node.scope)


def _products(body: Graph, consts: int, carries: int) -> list[int]:
    """The products of something that is constant and something of the rows, which reads the constant and no more."""
    constant, rows = set(body.inputs[:consts]), set(body.inputs[consts + carries :])
    found: list[int] = []
    for node in body.operations():
        inputs = set(node.inputs)
        if inputs <= constant:
            constant.add(node.id)
        elif inputs <= constant | rows and _can_be_one(node):
            rows.add(node.id)
            fixed = max([body.nodes[i].size for i in inputs & constant], default=0)
            contracts = node.op.traits & Trait.CONTRACTS
            if contracts and operations(node, body.nodes) < PRODUCT_RATE * fixed:
                found.append(node.id)
    inner = ancestors(body.nodes, [i for id in found for i in body.nodes[id].inputs])
    return [id for id in found if id not in inner]


def _batched(builder: Builder, node: Node, body: Graph, read: Sequence[int]) -> list[Symbol]:
    """`body`, whose inputs are operands number `read` of scan `node`, for all rows at once."""
    first = node.params["consts"] + node.params["carries"]
    dims = tuple([0 if k >= first else None for k in read])
    operands = [builder.symbol(node.inputs[k]) for k in read]
    with outside():
        traced = trace(vmap(_function(body), dims), *map(_example, operands))
    mark = builder.next_id
    made = inline(builder, traced, operands)
    for id in range(mark, builder.next_id):
        n = builder.nodes[id]
        builder.nodes[id] = Node(id, n.op, n.inputs, n.params, n.results, node.where, node.scope)
    return made


def _example(symbol: Symbol) -> Tensor:
    """A tensor of the type of `symbol`, which takes no memory."""
    return Tensor._wrap(np.broadcast_to(np.zeros((), symbol.dtype), symbol.shape))


def _function(graph: Graph) -> Callable[..., Any]:
    """`graph` as a function of tensors."""

    def run(*tensors: Tensor) -> tuple[Tensor, ...]:
        values: dict[int, Any] = dict(zip(graph.inputs, tensors, strict=True))
        for node in graph.operations():
            given = [values[i] for i in node.inputs]
            values[node.id] = given[0][node.params["index"]] if node.op is ITEM else apply(node.op, given, node.params)
        return tuple([values[id] for id in graph.outputs])

    return run
