"""Products with inverses as systems of equations: by substitution where the matrix is a triangle.

An inverse itself is left only where something else reads it. Factorizations are shared when the graph is lowered.
"""

from __future__ import annotations

from typing import Any, final

from graphc.facts.known import Facts
from graphc.ir import Builder, Graph, Node, Symbol
from graphc.ir.matrices import transposes
from graphc.ops import OPS
from graphc.ops.linalg import split_equation, swap_last
from graphc.ops.solving import singular_message
from graphc.passes.diagonals import Parts, diagonal_matrix, identity
from graphc.passes.replacing import replaced

FEW = 0.25  # of the rows or columns of an inverse, at most, for which it need not be computed
_INV, _MATMUL, _EINSUM, _SLICE, _SUM = (OPS[n] for n in ("inv", "matmul", "einsum", "slice", "sum"))
_TRIANGLES = OPS["tril"], OPS["triu"]


def solve_systems(graph: Graph) -> Graph:
    """`graph` without inverses that are only multiplied with."""
    if _INV not in graph.ops:
        return graph
    solved = _Writer(graph).written()
    return _Writer(solved, left=True).written() if _INV in solved.ops else solved


@final
class _Writer:
    """left: write the inverses that are left, and nothing else"""

    def __init__(self, graph: Graph, left: bool = False):
        self._left = left
        self._graph = graph
        self._builder = Builder.beside(graph.nodes)
        self._facts = Facts(self._builder.nodes)
        self._parts = Parts(self._builder, self._facts)

    def written(self) -> Graph:
        return replaced(self._graph, self._builder, self._written)

    def _written(self, node: Node) -> Symbol | None:
        """What stands for a node; None: itself."""
        F, builder = self._builder.language, self._builder
        if self._left:
            return self._substituted(node) if node.op is _INV else None
        if node.op is _SLICE:
            return self._part(node)
        if node.op is _SUM:
            return self._sum(node)
        if node.op in _TRIANGLES and len(node.shape) == 2:
            return self._triangle(node)
        if node.op not in (_MATMUL, _EINSUM) or len(node.inputs) != 2:
            return None
        a, b = (builder.symbol(i) for i in node.inputs)
        if node.op is _EINSUM:
            turned = self._matrices(node, a, b)
            if turned is None:
                return None
            a, b, last = turned
        else:
            last = None
        if (found := self._of_part(a, b)) is not None:
            return found if last is None else last(found)
        left, right = self._inverse(a), self._inverse(b)
        if left is not None:
            found = self._solved(*left, b)
        elif right is not None and len(a.shape) <= 2 and len(b.shape) == 2:
            inverse, is_turned = right
            if len(a.shape) == 1:
                found = self._solved(inverse, not is_turned, a)
            else:
                found = self._solved(inverse, not is_turned, swap_last(F, a))
                found = None if found is None else swap_last(F, found)
        else:
            return None
        return found if found is None or last is None else last(found)

    def _matrices(self, node: Node, a: Symbol, b: Symbol) -> Any:
        """Operands of a product of two matrices, or a matrix and a vector, as matmul has them; and what makes of that
        product what an einsum has."""
        F = self._builder.language
        terms, out = split_equation(node.params["equation"])
        shared = set(terms[0]) & set(terms[1])
        if not all(len(t) in (1, 2) for t in terms) or len(shared) != 1 or shared & set(out):
            return None
        if len(out) != len(terms[0]) + len(terms[1]) - 2:
            return None
        (k,) = shared
        if terms[0][-1] != k:
            a = swap_last(F, a)
        if terms[1][0] != k:
            b = swap_last(F, b)
        straight = (terms[0] + terms[1]).replace(k, "") == out
        return a, b, (lambda x: x) if straight else (lambda x: swap_last(F, x))

    def _inverse(self, x: Symbol) -> tuple[Node, bool] | None:
        """The inverse that a node is, or is the transpose of."""
        nodes = self._builder.nodes
        node = nodes[x.id]
        turned = transposes(node)
        inner = nodes[node.inputs[0]] if turned else node
        return (inner, turned) if inner.op is _INV else None

    def _of_part(self, a: Symbol, b: Symbol) -> Symbol | None:
        """The product of some rows of an inverse and `b`, or of `a` and some columns: that part of the solution."""
        F = self._builder.language
        for x, other, flipped in ((a, b, False), (b, a, True)):
            rows = self._rows(x, flipped)
            if rows is None or len(other.shape) > 2:
                continue
            inverse, turned, start, stop, step = rows
            vector = len(other.shape) == 1
            found = self._solved(inverse, turned, swap_last(F, other) if flipped and not vector else other)
            if found is not None:
                whole = found.shape[1:]
                found = F.slice(
                    found, start=(start, *[0 for _ in whole]), stop=(stop, *whole), step=(step, *[1 for _ in whole])
                )
                return swap_last(F, found) if flipped and not vector else found
        return None

    def _rows(self, x: Symbol, flipped: bool) -> tuple[Node, bool, int, int, int] | None:
        """The inverse, or transpose of one, of which a matrix has some rows: from, to, in steps.

        flipped: the transpose of the matrix is asked
        """
        nodes = self._builder.nodes
        node = nodes[x.id]
        turned = transposes(node)
        part = nodes[node.inputs[0]] if turned else node
        whole = self._inverse(self._builder.symbol(part.inputs[0])) if part.op is _SLICE else None
        axis = int(turned != flipped)
        if whole is None or len(part.shape) != 2 or part.shape[1 - axis] != whole[0].shape[0]:
            return None
        start, stop, step = (part.params[name][axis] for name in ("start", "stop", "step"))
        return whole[0], whole[1] != bool(axis), start, stop, step

    def _solved(self, inverse: Node, turned: bool, b: Symbol) -> Symbol | None:
        """The product of an inverse, or its transpose, and `b`."""
        F, builder = self._builder.language, self._builder
        x = builder.symbol(inverse.inputs[0])
        vector = len(b.shape) == 1
        b = F.reshape(b, shape=(*b.shape, 1)) if vector else b
        if b.shape[:-2] != x.shape[:-2]:
            return None
        found = self._triangular(inverse, x, turned, b)
        if found is None:
            found = F.solve(swap_last(F, x) if turned else x, b, **inverse.params)
        return F.reshape(found, shape=found.shape[:-1]) if vector else found

    def _triangular(self, inverse: Node, x: Symbol, turned: bool, b: Symbol) -> Symbol | None:
        F = self._builder.language
        if len(x.shape) != 2 or not all(type(n) is int for n in x.shape):
            return None
        below, above = self._facts.band(x.id)
        if min(below, above) > 0:
            return None
        if inverse.params["checked"]:
            d = self._parts.diagonal(x)
            x = F.regular(x, F.ne(d, 0), message=singular_message(inverse.params["asked"]))
        upper = below <= 0
        return F.solve_triangular(swap_last(F, x) if turned else x, b, upper=upper != turned, unit=False)

    def _substituted(self, node: Node) -> Symbol | None:
        """The inverse of a triangle."""
        x = self._builder.symbol(node.inputs[0])
        if len(x.shape) != 2:
            return None
        return self._triangular(node, x, False, identity(self._builder.language, x.shape[0], x.dtype))

    def _triangle(self, node: Node) -> Symbol | None:
        """A triangle of what is a triangle: all of it, its diagonal, or nothing."""
        F, x = self._builder.language, self._builder.symbol(node.inputs[0])
        own = self._facts.band(node.id)
        if own == self._facts.band(x.id):
            return x
        if sum(own) < 0:
            return F.full(shape=node.shape, value=0, dtype=node.dtype)
        n, m = node.shape
        return diagonal_matrix(F, self._parts.diagonal(x)) if max(own) <= 0 and n == m else None

    def _sum(self, node: Node) -> Symbol | None:
        """The sum of an inverse's rows or columns, or of all of it."""
        F, builder = self._builder.language, self._builder
        inverse = builder.nodes[node.inputs[0]]
        if inverse.op is not _INV or len(inverse.shape) != 2:
            return None
        axes, n = node.params["axis"], inverse.shape[0]
        found = self._solved(inverse, 1 not in axes, F.full(shape=(n,), value=1, dtype=inverse.dtype))
        if found is not None and len(axes) == 2:
            found = F.sum(found, axis=(0,), keepdims=False)
        return None if found is None else F.reshape(found, shape=node.shape)

    def _part(self, node: Node) -> Symbol | None:
        """A part of an inverse that lies in a few of its columns, or in a few rows."""
        F, builder = self._builder.language, self._builder
        inverse = builder.nodes[node.inputs[0]]
        if inverse.op is not _INV or len(node.shape) != 2:
            return None
        n, across = inverse.shape[0], int(node.shape[0] >= node.shape[1])
        if node.shape[across] > FEW * n:
            return None
        start, stop, step = ([node.params[name][k] for k in (across, 1 - across)] for name in ("start", "stop", "step"))
        m, after = node.shape[across], n - start[0] - (node.shape[across] - 1) * step[0] - 1
        few = F.pad_zeros(
            identity(F, m, inverse.dtype), low=(start[0], 0), high=(after, 0), interior=(step[0] - 1, 0)
        )  # columns of the identity
        found = self._solved(inverse, not across, few)
        if found is None:
            return None
        if node.shape[1 - across] < n or step[1] != 1:
            found = F.slice(found, start=(start[1], 0), stop=(stop[1], found.shape[1]), step=(step[1], 1))
        return found if across else swap_last(F, found)
