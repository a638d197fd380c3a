"""Products of a scan, one for all steps: a few large products instead of many small ones.

A product of a row of xs with a constant is one product of all rows, before the loop. A sum over the steps of products,
which is what the gradient of a constant is, is one product over rows and steps, after it: sum_t A_t^T B_t = A^T B for
the A_t, and the B_t, below each other.
"""

from __future__ import annotations

from typing import NamedTuple

from graphc.ir import INPUT, Builder, Graph, Node, Symbol, rename
from graphc.ir.structure import ITEM, SCAN, stack_more
from graphc.ops import OPS
from graphc.passes.products import RowProduct, row_product

# measured, on one core: rows of products that are too few, or enough, for a step by itself; what an element that is
# kept in memory costs beside one in the cache; and what a product in each step costs, however small
FEW, LARGE, IN_MEMORY, SMALLEST = 4, 64, 4, 2048

_MATMUL, _ADDMM, _ADD = OPS["matmul"], OPS["addmm"], OPS["add"]


def batch_products(graph: Graph) -> Graph:
    """`graph` with the products of its scans that can be one product for all steps as one. Rounds differently."""
    if SCAN not in graph.ops:
        return graph
    builder = Builder()
    builder.next_id = first = max(graph.nodes) + 1
    totals: dict[tuple[int, int], int] = {}  # (scan, result number) -> what it is now
    new: dict[int, int] = {}
    for id, node in graph.nodes.items():
        node = node.on(tuple([new.get(i, i) for i in node.inputs]))
        total = totals.get((node.inputs[0], node.params["index"])) if node.op is ITEM else None
        if total is not None:
            new[id] = total
            continue
        builder.where, builder.scope = node.where, node.scope
        if node.op is SCAN:
            node = _before(builder, node)
            builder.nodes[id] = node
            totals |= {(id, k): total for k, total in _after(builder, node).items()}
        else:
            builder.nodes[id] = node
    if builder.next_id == first:
        return graph
    return graph.replace(builder.nodes, rename(graph.result, {id: new.get(id, id) for id in graph.outputs}))


def _below_each_other(rows: Symbol) -> Symbol:
    """The matrices of all steps as one, with all their rows."""
    steps, count, width = rows.shape
    return rows.builder.language.reshape(rows, shape=(steps * count, width))


def _before(builder: Builder, node: Node) -> Node:
    """The scan with its products of rows of xs with constants done before it."""
    body: Graph = node.params["body"]
    first_x = node.params["consts"] + node.params["carries"]
    consts = {id: k for k, id in enumerate(body.inputs[: node.params["consts"]])}
    rows = {id: first_x + k for k, id in enumerate(body.inputs[first_x:])}
    F = builder.language
    nodes, inputs, operands = dict(body.nodes), list(body.inputs), list(node.inputs)
    for id, inner in body.nodes.items():
        if inner.op not in (_MATMUL, _ADDMM):
            continue
        *bias, row, const = inner.inputs
        if row not in rows or not consts.keys() >= {*bias, const}:
            continue
        x, w = body.nodes[row].aval, body.nodes[const].aval
        if x.ndim != 2 or w.ndim != 2 or x.shape[0] >= FEW or any(body.nodes[i].aval.ndim > 1 for i in bias):
            continue
        xs = _below_each_other(builder.symbol(node.inputs[rows[row]]))
        given = [builder.symbol(node.inputs[consts[i]]) for i in (*bias, const)]
        product = builder.emit(inner.op, [*given[:-1], xs, given[-1]], inner.params)
        product = F.reshape(product, shape=(node.params["length"], *inner.shape))
        nodes[id] = Node(id, INPUT, (), {"name": f"product_{id}"}, inner.results, inner.where, inner.scope)
        inputs.append(id)
        operands.append(product.id)
    if len(inputs) == len(body.inputs):
        return node
    params = {**node.params, "body": Graph(body.name, nodes, tuple(inputs), body.result, body.history)}
    return Node(node.id, SCAN, tuple(operands), params, node.results, node.where, node.scope)


class _Term(NamedTuple):
    """What a step adds to carry number `carry`: A^T B of two matrices, or, without A, the sum of the rows of B."""

    carry: int
    a: int | None
    b: int


def _terms(body: Graph, consts: int, carries: int) -> list[_Term]:
    """The carries that are sums which nobody reads before the end."""
    nodes = body.nodes
    uses = body.uses()
    found: list[_Term] = []
    for k in range(carries):
        carry, end = body.inputs[consts + k], nodes[body.outputs[k]]
        if end.op is not _ADD or carry not in end.inputs or uses[carry] != 1 or uses[end.id] != 1:
            continue
        term = nodes[end.inputs[0] if end.inputs[1] == carry else end.inputs[1]]
        if term.aval != end.aval:
            continue
        if (product := row_product(nodes, term.id)) is not None and _worth_keeping(body, product, end.aval.size):
            found.append(_Term(k, *product))
    return found


def _worth_keeping(body: Graph, product: RowProduct, total: int) -> bool:
    """Whether to keep rows of each step, in memory, takes less time than to add to `total` numbers, in the cache."""
    if product.a is None:
        return True  # they are kept for another product, or it is not done
    a, b = body.nodes[product.a].aval, body.nodes[product.b].aval
    return a.shape[0] < LARGE and IN_MEMORY * (a.size + b.size) <= total + SMALLEST


def _after(builder: Builder, node: Node) -> dict[int, int]:
    """Replace scan `node` of `builder`: sums of products are done after it. Returns result number -> its node."""
    body: Graph = node.params["body"]
    consts, carries = node.params["consts"], node.params["carries"]
    terms = _terms(body, consts, carries)
    stacked = {i for term in terms if term.a is not None for i in (term.a, term.b)}
    terms = [term for term in terms if term.b in stacked]
    if not terms:
        return {}
    rows = {id: consts + carries + k for k, id in enumerate(body.inputs[consts + carries :])}
    kept = sorted(stacked - rows.keys())
    found = dict(zip(kept, stack_more(builder, node, body, kept), strict=True))
    F = builder.language

    def all_steps(id: int) -> Symbol:
        return _below_each_other(builder.symbol(node.inputs[rows[id]]) if id in rows else found[id])

    totals: dict[int, int] = {}
    for carry, a, b in terms:
        if a is None:
            total = F.sum(all_steps(b), axis=(0,), keepdims=False)
        else:
            total = F.matmul(F.permute(all_steps(a), dims=(1, 0)), all_steps(b))
        totals[carry] = (builder.symbol(node.inputs[consts + carry]) + total).id
    return totals
