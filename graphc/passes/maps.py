"""What a scan does with its rows alone, done for all of them at once: by the rules of `vmap`.

A scan without carries is a map. In one with carries there are products of a constant matrix and a vector, which read
the matrix in each step and do little else: what depends on no carry, or what no carry depends on, is one product of two
matrices, before the loop or after it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from eager.core.tensor import Tensor
from eager.engine.dispatch import apply
from eager.func import vmap
from eager.func.batch_rules import is_batched_as_one
from graphc.capture.building import outside
from graphc.capture.trace import trace
from graphc.ir import INPUT, Builder, Graph, Node, Ref, Symbol
from graphc.ir.structure import ITEM, SCAN, ancestors, inline, rewrite_scans, stack_more
from graphc.ops import Trait
from graphc.rewrite.cost import PRODUCT_RATE, operations

MOST = 2**24  # elements of the values of all steps that are in memory at once


def batch_rows(graph: Graph) -> Graph:
    """`graph` with what its scans do with rows alone done for all rows at once. Rounds differently."""
    return rewrite_scans(graph, _written)


def _written(builder: Builder, node: Node) -> dict[int, Symbol]:
    if _is_map(node):
        body: Graph = node.params["body"]
        return dict(enumerate(_batched(builder, node, body.outputs, *_operands(builder, node))))
    node = builder.nodes[node.id] = _with_products_before(builder, node)
    return _products_after(builder, node)


def _is_map(node: Node) -> bool:
    """Whether a scan is no loop that has to be one."""
    body: Graph = node.params["body"]
    if node.params["carries"] or node.params["length"] * sum(n.size for n in body.operations()) > MOST:
        return False
    return all(map(can_be_one, body.operations()))


def can_be_one(node: Node) -> bool:
    """Whether the operations of all steps can be one operation."""
    return not node.inputs or node.op is ITEM or is_batched_as_one(node.op)


def _reads_a_constant(node: Node, nodes: Mapping[int, Node], constant: Collection[int]) -> bool:
    """Whether a node is a product that reads something constant and does little else."""
    if not node.op.traits & Trait.CONTRACTS:
        return False
    fixed = max([nodes[i].size for i in node.inputs if i in constant], default=0)
    return operations(node, nodes) < PRODUCT_RATE * fixed


def _operands(builder: Builder, node: Node) -> tuple[dict[int, Symbol], set[int]]:
    """The inputs of a scan's body, but for carries, with what they are, of all steps; and which are constants."""
    body: Graph = node.params["body"]
    consts, carries = node.params["consts"], node.params["carries"]
    given = {id: builder.symbol(i) for id, i in zip(body.inputs, node.inputs, strict=True)}
    for id in body.inputs[consts : consts + carries]:
        del given[id]
    return given, set(body.inputs[:consts])


def _with_products_before(builder: Builder, node: Node) -> Node:
    """A scan with its products of constants and rows done before it."""
    body: Graph = node.params["body"]
    given, constant = _operands(builder, node)
    rows = given.keys() - constant
    found: list[int] = []
    for n in body.operations():
        if constant.issuperset(n.inputs):
            constant.add(n.id)
        elif constant.union(rows).issuperset(n.inputs) and can_be_one(n):
            rows.add(n.id)
            if _reads_a_constant(n, body.nodes, constant):
                found.append(n.id)
    if not found:
        return node
    products = _batched(builder, node, found, given, constant)
    nodes = dict(body.nodes)
    for id in found:
        n = nodes[id]
        nodes[id] = Node(id, INPUT, (), {"name": f"product_{id}"}, n.results, n.where, n.scope)
    rest = Graph(body.name, nodes, (*body.inputs, *found), body.result, body.history)
    operands = (*node.inputs, *[p.id for p in products])
    return Node(node.id, SCAN, operands, {**node.params, "body": rest}, node.results, node.where, node.scope)


def _products_after(builder: Builder, node: Node) -> dict[int, Symbol]:
    """Those results of a scan of `builder`, by number, that come of products no later step reads: done after it."""
    body: Graph = node.params["body"]
    given, constant = _operands(builder, node)
    carried = ancestors(body.nodes, body.outputs[: node.params["carries"]])
    moved: set[int] = set()
    for n in body.operations():
        if constant.issuperset(n.inputs):
            constant.add(n.id)
        elif not moved.isdisjoint(n.inputs):
            if not can_be_one(n):
                return {}
            moved.add(n.id)
        elif n.id not in carried and _reads_a_constant(n, body.nodes, constant):
            moved.add(n.id)
    outputs = [k for k, id in enumerate(body.outputs) if id in moved]
    needed = ancestors(body.nodes, [body.outputs[k] for k in outputs])
    read = {i for id in moved & needed for i in body.nodes[id].inputs}
    stacked = [id for id in body.nodes if id in read - moved - constant and id not in given]
    if not outputs or node.params["length"] * sum(body.nodes[id].size for id in stacked) > MOST:
        return {}
    given |= dict(zip(stacked, stack_more(builder, node, body, stacked), strict=True))
    found = _batched(builder, node, [body.outputs[k] for k in outputs], given, constant)
    return dict(zip(outputs, found, strict=True))


def _batched(
    builder: Builder, node: Node, outputs: Sequence[int], given: Mapping[int, Symbol], constant: Collection[int]
) -> list[Symbol]:
    """The nodes `outputs` of a scan's body, for all steps at once.

    given     nodes that they may be computed from, and what these are: with the steps in front, unless they are
    constant
    """
    body: Graph = node.params["body"]
    needed = ancestors(body.nodes, outputs, given)
    read = [id for id in given if id in needed]
    nodes = {id: body.nodes[id] for id in body.nodes if id in needed}
    for id in read:
        n = nodes[id]
        nodes[id] = Node(id, INPUT, (), {"name": f"row_{id}"}, n.results, n.where, n.scope)
    part = Graph(body.name, nodes, tuple(read), tuple(map(Ref, outputs)))
    operands = [given[id] for id in read]
    dims = tuple([None if id in constant else 0 for id in read])
    function = _function(part)
    batched = _repeated(function, node.params["length"]) if set(dims) <= {None} else vmap(function, dims)
    return _inlined(builder, batched, operands)


def mapped(builder: Builder, node: Node, operands: Sequence[Symbol], dims: Sequence[int | None]) -> Symbol:
    """What a node computes of each slice of these operands: with the slices in front, where a dim is 0."""
    (found,) = _inlined(builder, vmap(lambda *tensors: apply(node.op, tensors, node.params), tuple(dims)), operands)
    return found


def _inlined(builder: Builder, function: Callable[..., Any], operands: Sequence[Symbol]) -> list[Symbol]:
    """What a function of tensors computes, as operations of `builder`."""
    with outside():
        traced = trace(function, *map(_example, operands))
    mark = builder.next_id
    made = inline(builder, traced, operands)
    for id in range(mark, builder.next_id):
        n = builder.nodes[id]
        builder.nodes[id] = Node(id, n.op, n.inputs, n.params, n.results, builder.where, builder.scope)
    return made


def _repeated(function: Callable[..., Any], length: int) -> Callable[..., Any]:
    """The results of steps that are all the same."""
    return lambda *tensors: tuple([result.expand(length, *result.shape) for result in function(*tensors)])


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
