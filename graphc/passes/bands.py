"""Matrices of which few diagonals matter: masks leave no others, or no others are read.

`tril(triu(A, -1), 1)`, `where(|i - j| <= 1, A, 0)` and `A * mask` are dense arrays; as the sums of their diagonals they
are what sums of products know. The diagonal of `exp(A B)` is the function of the diagonal of the product.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, NamedTuple, final

import numpy as np

from graphc.facts.bands import Band, leaves_triangle, whole
from graphc.facts.known import Facts
from graphc.ir import Builder, Graph, Node, Symbol
from graphc.ir.matrices import transposes
from graphc.normal.gate import multiplies
from graphc.ops import OPS
from graphc.ops.solving import singular_message
from graphc.passes.dce import eliminate_dead_code

MOST = 9  # diagonals
SPARSE = 16  # times as many rows and columns as diagonals, at least

_WHERE, _MUL, _SLICE, _RESHAPE, _PERMUTE = (OPS[name] for name in ("where", "mul", "slice", "reshape", "permute"))
_ADD, _SUB, _MATMUL = OPS["add"], OPS["sub"], OPS["matmul"]


class _Line(NamedTuple):
    """A diagonal of the matrix `of`: the column less the row, where it begins, and how long it is."""

    of: int
    offset: int
    row: int
    column: int
    length: int


def split_bands(graph: Graph) -> Graph:
    """`graph` with narrow bands, which products read or masks leave of products, as sums of diagonals; with diagonals
    of functions of matrices as those of the diagonals."""
    nodes, users = graph.nodes, graph.users()
    if not any(multiplies(node) for node in nodes.values()) and _SLICE not in graph.ops:
        return graph
    facts = Facts(nodes)
    lines = {id: line for id, node in nodes.items() if (line := _read(node, nodes, facts)) is not None}
    if lines:
        only = _read_only_in(lines, graph, users)
        lines = {id: line for id, line in lines.items() if line.of in only}
    apart = {id: found for id, node in nodes.items() if (found := _apart(node, nodes, facts)) is not None}
    found = {id: band for id in nodes if (band := _narrow(nodes[id], nodes, facts)) is not None}
    chosen = {
        id: band
        for id, band in found.items()
        if _masks_a_product(id, nodes, facts) or (id not in graph.outputs and _is_multiplied(id, nodes, users))
    }
    if not (chosen or lines or apart):
        return graph
    return eliminate_dead_code(_Writer(graph, facts, chosen, lines, apart).written())


def _read(node: Node, nodes: Mapping[int, Node], facts: Facts) -> _Line | None:
    """What a slice of the elements of a matrix reads of what a loop computes, if that is a diagonal."""
    if node.op is not _SLICE or node.aval.ndim != 1:
        return None
    below = nodes[node.inputs[0]]
    while below.op is _RESHAPE or (below.op is _PERMUTE and below.params["dims"] == (*range(below.aval.ndim),)):
        below = nodes[below.inputs[0]]
    computed = below.op.pointwise or leaves_triangle(below) or _inverts_a_triangle(below, facts)
    if below.aval.ndim != 2 or not computed or not all(type(n) is int for n in below.shape):
        return None
    (start,), (step,), (count,), m = node.params["start"], node.params["step"], node.shape, below.shape[1]
    if not m or step != m + 1 or nodes[node.inputs[0]].shape != (below.size,):
        return None
    row, column = divmod(start, m)
    if below.op.inverts and column != row:
        return None  # of which nothing is known but the main diagonal
    return _Line(below.id, column - row, row, column, count) if column + count <= m else None


def _read_only_in(lines: Collection[int], graph: Graph, users: Mapping[int, list[int]]) -> set[int]:
    """The nodes that nothing but these lines reads, or functions and views that nothing else reads."""
    ends = set(lines)
    only: set[int] = set()
    for id, node in reversed(list(graph.nodes.items())):
        if id not in graph.outputs and users.get(id) and ends.issuperset(users[id]):
            only.add(id)
            if node.op.view or node.op.inverts or node.op.pointwise:
                ends.add(id)
    return only


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


def _inverts_a_triangle(node: Node, facts: Facts) -> bool:
    """Whether a node is the inverse of a triangle: its diagonal is that of reciprocals."""
    return node.op.inverts and node.aval.ndim == 2 and min(facts.band(node.inputs[0])) <= 0


def _multiplies_triangles(node: Node, nodes: Mapping[int, Node], facts: Facts) -> bool:
    """Whether a node is the product of two square triangles of one side: its diagonal is that of products."""
    if node.op is not _MATMUL or any(nodes[i].shape != node.shape for i in node.inputs):
        return False
    a, b = (facts.band(i) for i in node.inputs)
    return max(a.above, b.above) <= 0 or max(a.below, b.below) <= 0


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


@final
class _Writer:
    def __init__(
        self, graph: Graph, facts: Facts, chosen: Mapping[int, Band], lines: Mapping[int, _Line],
        apart: Mapping[int, tuple[int, Band]],
    ):  # fmt: skip
        self._graph = graph
        self._facts = facts
        self._chosen = chosen
        self._lines = lines
        self._apart = apart
        self._builder = Builder.beside(graph.nodes)
        self._new: dict[int, int] = {}

    def written(self) -> Graph:
        graph, builder, new = self._graph, self._builder, self._new
        for id, node in graph.nodes.items():
            builder.copy(node, tuple([new.get(i, i) for i in node.inputs]))
            if id in self._chosen:
                builder.where, builder.scope = node.where, node.scope
                new[id] = self._sum(node, self._chosen[id]).id
            elif id in self._apart:
                builder.where, builder.scope = node.where, node.scope
                new[id] = self._triangle_of_sum(node, *self._apart[id]).id
            elif id in self._lines:
                builder.where, builder.scope = node.where, node.scope
                new[id] = self._diagonal(*self._lines[id]).id
        return graph.rewired(builder.nodes, new)

    def _triangle_of_sum(self, node: Node, narrow: int, band: Band) -> Symbol:
        """A triangle of a sum: that of one operand, and of the other one the few diagonals that are left."""
        nodes, builder = self._graph.nodes, self._builder
        below = nodes[node.inputs[0]]
        parts = [self._now(i) for i in below.inputs]
        parts[1 - narrow] = builder.emit(node.op, [parts[1 - narrow]], node.params)
        parts[narrow] = self._sum(nodes[below.inputs[narrow]], band)
        return builder.emit(below.op, parts, below.params)

    def _sum(self, node: Node, band: Band) -> Symbol:
        """The matrix as the sum of its diagonals."""
        F, (n, m) = self._builder.language, node.shape
        total: Symbol | None = None
        for offset in range(-band.below, band.above + 1):
            row, column = max(-offset, 0), max(offset, 0)
            count = min(n - row, m - column)
            line = self._diagonal(node.id, offset, row, column, count)
            start = row * m + column
            after = n * m - start - (count - 1) * (m + 1) - 1
            flat = F.pad_zeros(line, low=(start,), high=(after,), interior=(m,))
            part = F.reshape(flat, shape=(n, m))
            total = part if total is None else total + part
        assert total is not None
        return total

    def _diagonal(self, id: int, offset: int, row: int, column: int, count: int) -> Symbol:
        """One diagonal of a matrix, which begins at this row and column: of what masks and functions are made of."""
        F, node = self._builder.language, self._graph.nodes[id]
        held = self._facts.held.value(id)
        if held is not None:
            line = np.diagonal(held, offset)[min(row, column) :][:count]
            one = line.size and (line == line[0]).all()
            return F.full(shape=(count,), value=line[0].item(), dtype=node.dtype) if one else self._kept(line)
        if leaves_triangle(node):
            assert node.op.band is not None
            below, above = node.op.band(node.shape, node.params, whole(node.shape))
            if not -below <= offset <= above:
                return F.full(shape=(count,), value=0, dtype=node.dtype)
            return self._diagonal(node.inputs[0], offset, row, column, count)
        if node.op.pointwise or node.op is _WHERE:
            given = [self._operand(i, node.shape, offset, row, column, count) for i in node.inputs]
            return self._builder.emit(node.op, given, node.params)
        if transposes(node):
            return self._diagonal(node.inputs[0], -offset, column, row, count)
        if not offset and _inverts_a_triangle(node, self._facts):
            line = self._diagonal(node.inputs[0], offset, row, column, count)
            if node.params["checked"]:
                line = F.regular(line, F.ne(line, 0), message=singular_message(node.params["asked"]))
            return F.reciprocal(line)
        if not offset and _multiplies_triangles(node, self._graph.nodes, self._facts):
            first, second = (self._diagonal(i, offset, row, column, count) for i in node.inputs)
            return first * second
        line = F.diagonal(self._now(id), offset=offset, dim1=0, dim2=1)
        first = min(row, column)  # how far along the diagonal it begins
        if (first, count) == (0, line.shape[0]):
            return line
        return F.slice(line, start=(first,), stop=(first + count,), step=(1,))

    def _operand(self, id: int, shape: tuple[int, ...], offset: int, row: int, column: int, count: int) -> Symbol:
        """What a diagonal of a matrix of this shape reads of an operand that is spread."""
        F, x = self._builder.language, self._now(id)
        if x.shape == shape:
            return self._diagonal(id, offset, row, column, count)
        if x.aval.size == 1:
            return F.reshape(x, shape=())
        first = row if len(x.shape) == 2 and x.shape[1] == 1 else column
        flat = F.reshape(x, shape=(x.aval.size,))
        return F.slice(flat, start=(first,), stop=(first + count,), step=(1,))

    def _kept(self, line: np.ndarray) -> Symbol:
        return self._builder.constant(line.copy())

    def _now(self, id: int) -> Any:
        return self._builder.symbol(self._new.get(id, id))
