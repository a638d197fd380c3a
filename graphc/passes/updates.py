"""What is easily inverted plus a product through few columns: its inverse, determinant and cofactors.

    (D + U V^T)^-1 = D^-1 - D^-1 U C^-1 V^T D^-1          |D + U V^T| = |C| |D|          C = I + V^T D^-1 U
    cofactors of D + U V^T = |D| (|C| D^-1 - D^-1 V cof(C) U^T D^-1)

with D diagonal, positive, and of elements of about one size. As many digits are lost as C is ill-conditioned, which
D + U V^T is as well: elimination loses a few times fewer near a singular matrix, and ten times more where U and V are
large. Where all is known to be definite, C is as well: that is left to `low_rank.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, final

from graphc.facts.known import Facts
from graphc.ir import Builder, Symbol
from graphc.normal.affine import Unsolved, label
from graphc.normal.emit import emit
from graphc.normal.form import Factor, Form, Number, Term
from graphc.ops.dtypes import is_floating
from graphc.ops.linalg import swap_last
from graphc.passes.diagonals import diagonal_matrix
from graphc.passes.low_rank import LowRank
from graphc.passes.matrices import is_one_matrix

THIN = 0.25  # columns of U for each row, at most


class Update(NamedTuple):
    """D + U V^T, by C and d, a vector; below: D^-1 U; beside: D^-1 V."""

    d: Symbol
    below: Symbol
    beside: Symbol
    core: Symbol


@final
class Updates:
    """Finds such matrices, and writes what is asked of them."""

    def __init__(self, builder: Builder, facts: Facts, low_rank: LowRank):
        self._builder = builder
        self._facts = facts
        self._low_rank = low_rank
        self._found: dict[int, Update | None] = {}

    def of(self, x: Symbol) -> Update | None:
        if x.id not in self._found:
            may = is_one_matrix(x) and is_floating(x.dtype)
            self._found[x.id] = self._split(self._facts.form(x.id), x) if may else None
        return self._found[x.id]

    def inverse(self, found: Update, of_core: Symbol) -> Symbol:
        """of_core: C^-1"""
        F = self._builder.language
        rest = found.below @ of_core @ swap_last(F, found.beside)
        return diagonal_matrix(F, F.reciprocal(found.d)) - rest

    def cofactors(self, found: Update, determinant: Symbol, of_core: Symbol) -> Symbol:
        """determinant: of C; of_core: its cofactors"""
        F = self._builder.language
        rest = found.beside @ of_core @ swap_last(F, found.below)
        whole = F.prod(found.d, axis=(0,), keepdims=False)
        return (diagonal_matrix(F, F.div(determinant, found.d)) - rest) * whole

    def _split(self, form: Form | None, x: Symbol) -> Update | None:
        if form is None:
            return None
        base = tuple([t for t in form.terms if t.places[0] == t.places[1]])
        parts = [self._columns(t, form.shape[0]) for t in form.terms if t not in base]
        known = [part for part in parts if part is not None]
        if not base or not known or len(known) < len(parts):
            return None
        d = self._low_rank.diagonal_of(Form(form.shape, base), x)
        if d is None or not self._facts.positive(d.id):
            return None
        F, n = self._builder.language, x.shape[0]
        u, v = [us[0] if len(us) == 1 else F.cat(*us, axis=1) for us in zip(*known, strict=True)]
        if u.shape[1] > THIN * n:
            return None
        d = F.broadcast_to(d, shape=(n,))
        over = F.reshape(F.reciprocal(d), shape=(n, 1))
        core = swap_last(F, v) @ (u * over)
        one = diagonal_matrix(F, F.full(shape=core.shape[:1], value=1, dtype=core.dtype))
        return Update(d, u * over, v * over, one + core)

    def _columns(self, t: Term, n: int) -> tuple[Symbol, Symbol] | None:
        """(U, V) of a term that is U V^T: what has no column of it is in U."""
        row, column = t.places
        if isinstance(t.coefficient, complex) or row.labels == column.labels:
            return None
        if any(len(p.steps) != 1 or p.steps[0][1] != 1 or p.offset or t.sizes[p.labels[0]] != n for p in t.places):
            return None
        last = [f for f in t.factors if column.labels[0] in _labels(f)]
        first = [f for f in t.factors if f not in last]
        inner, outer = (frozenset().union(*map(_labels, some)) for some in (first, last))
        shared = inner & outer
        if len(shared) > 1 or column.labels[0] in inner or row.labels[0] in outer or not (first and last):
            return None
        sides = (t.coefficient, first, (*row.labels, *shared)), (1, last, (*column.labels, *shared))
        try:
            u, v = [self._side(t.sizes, *side) for side in sides]
        except Unsolved:
            return None
        return u, v

    def _side(self, sizes: Sequence[int], by: Number, factors: Sequence[Factor], kept: Sequence[int]) -> Symbol:
        """A product with an axis for each label that is `kept`, as a matrix."""
        F, builder = self._builder.language, self._builder
        numbers = {k: i for i, k in enumerate(dict.fromkeys([*kept, *[k for f in factors for k in _labels(f)]]))}
        places = {k: label(i) for k, i in numbers.items()}
        own = [Factor(f.atom, tuple([p.at(places) for p in f.places])) for f in factors]
        shape = tuple([sizes[k] for k in kept])
        term = Term(by, tuple(own), tuple([places[k] for k in kept]), tuple([sizes[k] for k in numbers]))
        atoms = {f.atom: builder.symbol(f.atom) for f in factors}
        found = emit(builder, Form(shape, (term,)), atoms, builder.nodes[factors[0].atom].dtype)
        return found if len(shape) == 2 else F.reshape(found, shape=(*shape, 1))


def _labels(f: Factor) -> frozenset[int]:
    return frozenset([k for p in f.places for k in p.labels])
