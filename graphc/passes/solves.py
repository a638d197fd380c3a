"""Products with inverses as systems of equations: by substitution where the matrix is a triangle.

An inverse itself is left only where something else reads it. Factorizations are shared when the graph is lowered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, final

from graphc.facts.known import Facts
from graphc.ir import Builder, Graph, Node, Symbol
from graphc.ir.matrices import transposes
from graphc.ops import OPS
from graphc.ops.aval import size_of
from graphc.ops.linalg import split_equation, swap_last
from graphc.ops.solving import singular_message
from graphc.passes.diagonals import Parts, diagonal_matrix, identity
from graphc.passes.replacing import replaced

FEW = 0.25  # of the rows or columns of an inverse, at most, for which it need not be computed
_INV, _MATMUL, _EINSUM, _SLICE, _SUM, _RESHAPE = (
    OPS[n] for n in ("inv", "matmul", "einsum", "slice", "sum", "reshape")
)
_TRIANGLES = OPS["tril"], OPS["triu"]


def solve_systems(graph: Graph) -> Graph:
    """`graph` without inverses that are only multiplied with."""
    if _INV not in graph.ops:
        return graph
    solved = _Writer(graph).written()
    return _Writer(solved, left=True).written() if _INV in solved.ops else solved


class Run(NamedTuple):
    """Places along an axis, as those of a slice."""

    start: int
    stop: int
    step: int


def _rows(F: Any, x: Symbol, run: Run) -> Symbol:
    """Those of a matrix, or elements of a vector."""
    if run == (0, x.shape[0], 1):
        return x
    bounds = zip(run, (0, None, 1), strict=True)
    start, stop, step = ((own, *[n if all_ is None else all_ for n in x.shape[1:]]) for own, all_ in bounds)
    return F.slice(x, start=start, stop=stop, step=step)


def _spread(F: Any, x: Symbol, run: Run, n: int) -> Symbol:
    """Rows of a matrix, or elements of a vector, at the places of a run along an axis of n, and zeros elsewhere."""
    if run == (0, n, 1):
        return x
    zero = [0 for _ in x.shape[1:]]
    after = n - run.start - (x.shape[0] - 1) * run.step - 1
    return F.pad_zeros(x, low=(run.start, *zero), high=(after, *zero), interior=(run.step - 1, *zero))


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
        F = self._builder.language
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
        a, b = map(self._plain, node.inputs)
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

    def _plain(self, id: int) -> Symbol:
        """A node, without reshapes that change nothing, as those of indexing."""
        nodes = self._builder.nodes
        while nodes[id].op is _RESHAPE and nodes[id].shape == nodes[nodes[id].inputs[0]].shape:
            (id,) = nodes[id].inputs
        return self._builder.symbol(id)

    def _matrices(self, node: Node, a: Symbol, b: Symbol) -> Any:
        """Operands of a product of two matrices, or a matrix and a vector, as matmul has them; and what makes of that
        product what an einsum has."""
        F = self._builder.language
        terms, out = split_equation(node.params["equation"])
        for k, x in enumerate((a, b)):
            if len(x.shape) > 2 and (whole := self._unsplit(x, terms, out, k)) is not None:
                x, terms, out = whole
                a, b = (x, b) if k == 0 else (a, x)
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

        def last(x: Symbol) -> Symbol:
            x = x if straight else swap_last(F, x)
            return x if x.shape == node.shape else F.reshape(x, shape=node.shape)

        return a, b, last

    def _unsplit(self, x: Symbol, terms: Sequence[str], out: str, k: int) -> tuple[Symbol, list[str], str] | None:
        """The inverse that operand `k` of an einsum is, with one of its axes split, as that of the result is; with the
        terms of an einsum of the inverse as it is, whose result is to be split."""
        nodes = self._builder.nodes
        view, term = nodes[x.id], terms[k]
        whole = self._builder.symbol(view.inputs[0]) if view.op is _RESHAPE else None
        if whole is None or self._inverse(whole) is None or len(whole.shape) != 2:
            return None
        for merged, kept in ((term[:-1], term[-1]), (term[1:], term[0])):
            n = whole.shape[int(merged == term[1:])]
            if (
                out.count(merged) == 1
                and not set(merged) & set(terms[1 - k])
                and size_of(whole.shape) == n * x.shape[term.index(kept)]
            ):
                label = merged[0]
                new = list(terms)
                new[k] = term.replace(merged, label)
                return whole, new, out.replace(merged, label)
        return None

    def _inverse(self, x: Symbol) -> tuple[Node, bool] | None:
        """The inverse that a node is, or is the transpose of."""
        nodes = self._builder.nodes
        node = nodes[x.id]
        turned = transposes(node)
        inner = nodes[node.inputs[0]] if turned else node
        return (inner, turned) if inner.op is _INV else None

    def _of_part(self, a: Symbol, b: Symbol) -> Symbol | None:
        """The product of a part of an inverse and `b`, or of `a` and one: a part of the solution for what meets the
        part, with zeros beside it."""
        F = self._builder.language
        for x, other, flipped in ((a, b, False), (b, a, True)):
            part = self._part_of_inverse(x, flipped)
            if part is None or len(other.shape) > 2:
                continue
            inverse, turned, rows, columns = part
            vector = len(other.shape) == 1
            other = swap_last(F, other) if flipped and not vector else other
            found = self._solved(inverse, turned, _spread(F, other, columns, inverse.shape[0]))
            if found is not None:
                found = _rows(F, found, rows)
                return swap_last(F, found) if flipped and not vector else found
        return None

    def _part_of_inverse(self, x: Symbol, flipped: bool) -> tuple[Node, bool, Run, Run] | None:
        """The inverse, or transpose of one, of which a matrix has some rows and columns.

        flipped: the transpose of the matrix is asked
        """
        nodes = self._builder.nodes
        node = nodes[x.id]
        turned = transposes(node)
        part = nodes[node.inputs[0]] if turned else node
        whole = self._inverse(self._builder.symbol(part.inputs[0])) if part.op is _SLICE else None
        axis = int(turned != flipped)
        if whole is None or len(part.shape) != 2:
            return None
        runs = [Run(*[part.params[name][k] for name in Run._fields]) for k in (axis, 1 - axis)]
        return whole[0], whole[1] != bool(axis), runs[0], runs[1]

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
        few, rows = (Run(*[node.params[name][k] for name in Run._fields]) for k in (across, 1 - across))
        columns = _spread(F, identity(F, node.shape[across], inverse.dtype), few, n)
        found = self._solved(inverse, not across, columns)
        if found is None:
            return None
        found = _rows(F, found, rows)
        return found if across else swap_last(F, found)
