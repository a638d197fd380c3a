"""Diagonals and blocks of matrices from what those are made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, final

from graphc.facts.known import Facts
from graphc.ir import Builder, Symbol
from graphc.normal.affine import Index, Unsolved
from graphc.normal.emit import emit
from graphc.normal.form import Algebra, Factor, Form
from graphc.ops import OPS

_INV = OPS["inv"]


def diagonal_matrix(F: Any, d: Symbol) -> Symbol:
    """The matrix with this diagonal, and zeros beside it."""
    n = d.shape[0]
    return F.reshape(F.pad_zeros(d, low=(0,), high=(0,), interior=(n,)), shape=(n, n))


def identity(F: Any, n: int, dtype: Any) -> Symbol:
    """The identity matrix."""
    return diagonal_matrix(F, F.full(shape=(n,), value=1, dtype=dtype))


@final
class Parts:
    """Writes parts of matrices."""

    def __init__(self, builder: Builder, facts: Facts):
        self._builder = builder
        self._facts = facts

    def diagonal(self, x: Symbol) -> Symbol:
        """The main diagonal of a square matrix."""
        F, builder = self._builder.language, self._builder
        node = builder.nodes[x.id]
        if node.op is _INV:
            inner = builder.symbol(node.inputs[0])
            if self._is_triangle(inner) and not node.params["checked"]:
                return F.reciprocal(self.diagonal(inner))
        found = self._taken(x, x.shape[:1], lambda i: (i, i))
        return F.diagonal(x, offset=0, dim1=0, dim2=1) if found is None else found

    def block(self, x: Symbol, rows: tuple[int, int], columns: tuple[int, int] | None = None) -> Symbol:
        """The rows from, to and the columns from, to; by default the same."""
        (a, b), (c, d) = rows, rows if columns is None else columns
        found = self._taken(x, (b - a, d - c), lambda i, j: (i + a, j + c))
        if found is not None:
            return found
        return self._builder.language.slice(x, start=(a, c), stop=(b, d), step=(1, 1))

    def _is_triangle(self, x: Symbol) -> bool:
        return len(x.shape) == 2 and min(self._facts.band(x.id)) <= 0

    def _taken(self, x: Symbol, shape: Sequence[int], where: Callable[..., tuple[Index, ...]]) -> Symbol | None:
        """The array whose element i, ... is that of a matrix at `where(i, ...)`."""
        form, builder = self._facts.form(x.id), self._builder
        if form is None:
            return None
        mark = builder.next_id
        try:
            part = self._reciprocals(Algebra().take(form, shape, where))
            atoms = {f.atom for t in part.terms for f in t.factors}
            return emit(builder, part, {k: builder.symbol(k) for k in atoms}, x.dtype)
        except Unsolved:
            builder.rollback(mark)
            return None

    def _reciprocals(self, form: Form) -> Form:
        """With diagonals of inverses of triangles by those of the triangles."""
        terms = [t._replace(factors=tuple(sorted(map(self._reciprocal, t.factors)))) for t in form.terms]
        return form._replace(terms=tuple(terms))

    def _reciprocal(self, factor: Factor) -> Factor:
        node = self._builder.nodes[factor.atom]
        if node.op is not _INV or len(factor.places) != 2 or factor.places[0] != factor.places[1]:
            return factor
        vector = self.diagonal(self._builder.symbol(factor.atom))
        return Factor(vector.id, factor.places[:1]) if vector.shape == node.shape[:1] else factor
