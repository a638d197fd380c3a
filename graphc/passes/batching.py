"""Sums over the steps of a scan of products, which is what the gradient of a constant is, as one product after it.

sum_t A_t^T B_t = A^T B for the A_t, and the B_t, below each other.
"""

from __future__ import annotations

from typing import NamedTuple

from graphc.ir import Builder, Graph, Node, Symbol
from graphc.ir.structure import rewrite_scans, stack_more
from graphc.ops import OPS
from graphc.passes.products import RowProduct, row_product

# measured, on one core: rows of products that are enough for a step by itself; what an element that is
# kept in memory costs beside one in the cache; and what a product in each step costs, however small
LARGE, IN_MEMORY, SMALLEST = 64, 4, 2048

_ADD = OPS["add"]


def batch_products(graph: Graph) -> Graph:
    """`graph` with the sums of products that its scans compute as one product each. Rounds differently."""
    return rewrite_scans(graph, _written)


def _below_each_other(rows: Symbol, width: int) -> Symbol:
    """The matrices of all steps as one, with all their rows."""
    return rows.builder.language.reshape(rows, shape=(rows.aval.size // width, width))


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
    return b.size < LARGE * body.nodes[product.b].shape[-1] and IN_MEMORY * (a.size + b.size) <= total + SMALLEST


def _written(builder: Builder, node: Node) -> dict[int, Symbol]:
    """A scan, and after it the sums of products that it has no more."""
    builder.nodes[node.id] = node
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

    def all_steps(id: int, width: int) -> Symbol:
        return _below_each_other(builder.symbol(node.inputs[rows[id]]) if id in rows else found[id], width)

    totals: dict[int, Symbol] = {}
    for carry, a, b in terms:
        *height, width = node.results[carry].shape
        total = all_steps(b, width)
        if a is None:
            total = F.sum(total, axis=(0,), keepdims=False)
        else:
            total = F.matmul(F.permute(all_steps(a, *height), dims=(1, 0)), total)
        totals[carry] = builder.symbol(node.inputs[consts + carry]) + total
    return totals
