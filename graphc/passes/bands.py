"""Matrices of which masks leave few diagonals: they are the sums of these, which are what sums of products know.

`tril(triu(A, -1), 1)`, `where(|i - j| <= 1, A, 0)` and `A * mask` are dense arrays. What the diagonals are
computed of is left to `demand`.
"""

from __future__ import annotations

from collections.abc import Mapping

from graphc.facts.bands import Band, leaves_triangle
from graphc.facts.known import Facts
from graphc.ir import Builder, Graph, Node, Symbol
from graphc.ir.matrices import transposes
from graphc.normal.gate import multiplies
from graphc.ops import OPS
from graphc.ops.movement import diagonal_run
from graphc.passes.replacing import replaced

MOST = 9  # diagonals
SPARSE = 16  # times as many rows and columns as diagonals, at least

_WHERE, _MUL, _ADD, _SUB = (OPS[name] for name in ("where", "mul", "add", "sub"))


def split_bands(graph: Graph) -> Graph:
    """`graph` with narrow bands, which products read or masks leave of products, as sums of diagonals."""
    nodes, users = graph.nodes, graph.users()
    if not any(multiplies(node) for node in nodes.values()):
        return graph
    facts = Facts(nodes)
    apart = {id: found for id, node in nodes.items() if (found := _apart(node, nodes, facts)) is not None}
    found = {id: band for id in nodes if (band := _narrow(nodes[id], nodes, facts)) is not None}
    chosen = {
        id: band
        for id, band in found.items()
        if _masks_a_product(id, nodes, facts) or (id not in graph.outputs and _is_multiplied(id, nodes, users))
    }
    if not (chosen or apart):
        return graph
    builder = Builder.beside(nodes)

    def instead(node: Node) -> Symbol | None:
        if node.id in chosen:
            return _sum_of_diagonals(builder, builder.symbol(node.id), chosen[node.id])
        return _triangle_of_sum(builder, node, *apart[node.id]) if node.id in apart else None

    return replaced(graph, builder, instead)


def _narrow(node: Node, nodes: Mapping[int, Node], facts: Facts) -> Band | None:
    """The band of a matrix that a mask makes narrow."""
    if _masked(node, nodes, facts) is None or not _is_large(node):
        return None
    return _few(facts.band(node.id), node)


def _is_large(node: Node) -> bool:
    return node.dtype.kind in "fc" and all(type(n) is int for n in node.shape) and min(node.shape) >= SPARSE


def _few(band: Band, node: Node) -> Band | None:
    """A band of few diagonals."""
    count = band.below + band.above + 1
    return band if 0 < count <= min(MOST, min(node.shape) // SPARSE) else None


def _apart(node: Node, nodes: Mapping[int, Node], facts: Facts) -> tuple[int, Band] | None:
    """Of which operand of a sum a triangle leaves a narrow band, and which, as of the inverse of another triangle."""
    if not leaves_triangle(node) or node.aval.ndim != 2 or not _is_large(node):
        return None
    below = nodes[node.inputs[0]]
    if below.op is not _ADD and below.op is not _SUB:
        return None
    assert node.op.band is not None
    for k, id in enumerate(below.inputs):
        if nodes[id].shape == node.shape:
            band = _few(Band(*node.op.band(node.shape, node.params, facts.band(id))), node)
            if band is not None and nodes[below.inputs[1 - k]].shape == node.shape:
                return k, band
    return None


def _masked(node: Node, nodes: Mapping[int, Node], facts: Facts) -> int | None:
    """What a mask leaves a part of: a triangle, elements chosen instead of zeros, or times zeros and ones."""
    if node.results[0].shape is None or len(node.results) != 1 or node.aval.ndim != 2:
        return None
    if leaves_triangle(node):
        return node.inputs[0]
    if node.op is not _WHERE and node.op is not _MUL:
        return None
    own = [i for i in node.inputs if nodes[i].shape == node.shape]
    held = [i for i in own if facts.held.is_held(i)]
    rest = [i for i in own if i not in held]
    return rest[0] if held and len(rest) == 1 else None


def _masks_a_product(id: int, nodes: Mapping[int, Node], facts: Facts) -> bool:
    below = _masked(nodes[id], nodes, facts)
    while below is not None and not multiplies(nodes[below]):
        one = transposes(nodes[below]) or (nodes[below].op.pointwise and len(nodes[below].inputs) == 1)
        below = nodes[below].inputs[0] if one else _masked(nodes[below], nodes, facts)
    return below is not None


def _is_multiplied(id: int, nodes: Mapping[int, Node], users: Mapping[int, list[int]]) -> bool:
    """Whether products alone read a matrix, perhaps transposed."""
    readers = [nodes[k] for k in users.get(id, ())]
    return bool(readers) and all(
        multiplies(r) or (transposes(r) and _is_multiplied(r.id, nodes, users)) for r in readers
    )


def _triangle_of_sum(builder: Builder, node: Node, narrow: int, band: Band) -> Symbol:
    """A triangle of a sum: that of one operand, and of the other one the few diagonals that are left."""
    below = builder.nodes[node.inputs[0]]
    parts = [builder.symbol(i) for i in below.inputs]
    parts[1 - narrow] = builder.emit(node.op, [parts[1 - narrow]], node.params)
    parts[narrow] = _sum_of_diagonals(builder, parts[narrow], band)
    return builder.emit(below.op, parts, below.params)


def _sum_of_diagonals(builder: Builder, x: Symbol, band: Band) -> Symbol:
    """A matrix as the sum of its diagonals."""
    F, (n, m) = builder.language, x.shape
    total: Symbol | None = None
    for offset in range(-band.below, band.above + 1):
        line = F.diagonal(x, offset=offset, dim1=0, dim2=1)
        start, _ = diagonal_run(n, m, offset)
        after = n * m - start - (line.shape[0] - 1) * (m + 1) - 1
        part = F.reshape(F.pad_zeros(line, low=(start,), high=(after,), interior=(m,)), shape=(n, m))
        total = part if total is None else total + part
    assert total is not None
    return total
