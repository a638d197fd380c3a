"""What is easily inverted plus a product through few columns: its inverse and determinant are those of a small matrix.

    (D + c U M U^T)^-1 = D^-1 - D^-1 U C^-1 U^T D^-1          (D + c U M U^T)^-1 U = D^-1 U C^-1 M^-1 / c
    log |D + c U M U^T| = log |D| + log |C| + log |M| + k log c
        C = M^-1 / c + U^T D^-1 U, U with few columns, k of them, M the identity or positive definite; what U is
        weighted by, numbers and a vector that are not negative, is divided between U and U^T
        D diagonal and positive, or the inverse of what is positive definite

They lose no more digits than the matrix is ill-conditioned, but for two: D and C are positive definite, and about as
well conditioned if the elements of D are of about one size. Smaller ones U U^T may make up for, while D^-1 and the rest
cancel: with elements of 1e-12 and 1, and U of three columns, 11 digits were lost where elimination lost 3. What is not
definite, I + U V^T, see `updates.py`. Where D is one number d, C is d / c + U^T U, which U is not divided for.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Sequence
from typing import Any, NamedTuple, final

from graphc.facts.known import Facts
from graphc.ir import Builder, Symbol
from graphc.ir.matrices import transposes
from graphc.normal.form import Factor, Form, Term
from graphc.ops import OPS
from graphc.ops.dtypes import is_floating
from graphc.ops.linalg import swap_last
from graphc.passes.diagonals import diagonal_matrix
from graphc.passes.matrices import is_one_matrix, node_of, operands, scaled, transposed

SPREAD = 100.0  # how much larger than the least element of D others may be
THIN = 0.5  # columns of U for each row, at most
_MATMUL, _RESHAPE, _INV = OPS["matmul"], OPS["reshape"], OPS["inv"]


class Product(NamedTuple):
    """c U M U^T, by the nodes of U and M.

    roots  nodes that the columns of U are multiplied by first: numbers, and vectors with one for each column
    """

    factor: int
    turned: bool  # whether it is U^T M U
    coefficient: Any
    middle: int | None = None  # no M is the identity
    roots: tuple[int, ...] = ()


class _Thin(NamedTuple):
    """D + c U M U^T; the inverse of C, and what U is if it is there as it is.

    d: a vector or one number, or the inverse of D, a matrix; middle: the inverse of M
    """

    d: Symbol
    c: float
    u: Symbol
    core: Symbol
    part: Product | None
    middle: Symbol | None


def is_matrix(d: Symbol) -> bool:
    """Whether it is the inverse of what is easily inverted, no diagonal."""
    return len(d.shape) == 2


def _is_number(f: Factor) -> bool:
    """Whether a factor is the same everywhere."""
    return not any(p.labels for p in f.places)


@final
class LowRank:
    """Writes the inverses and determinants of such matrices, and knows the inverses again."""

    def __init__(self, builder: Builder, facts: Facts, trusted: Container[int] = ()):
        """trusted: matrices whose diagonals are positive, as has been asked"""
        self._builder = builder
        self._facts = facts
        self._trusted = trusted
        self._thin: dict[int, _Thin] = {}  # by their inverses

    def __contains__(self, x: Symbol) -> bool:
        """Whether it is the inverse of such a matrix."""
        return x.id in self._thin

    def inverse(self, x: Symbol, d: Symbol, parts: list[Product], asked: str) -> Symbol:
        """The inverse of D + U U^T, of which `of` tells the diagonal and the rest. asked: for errors"""
        F = self._builder.language
        u, c, core = self._core(d, parts)
        core, below = F.inv(core, checked=False, asked=asked), self._over(u, d)
        rest = below @ core @ swap_last(F, below if d.shape else u)
        inverse = d if is_matrix(d) else diagonal_matrix(F, F.broadcast_to(F.reciprocal(d), shape=x.shape[:1]))
        found = inverse - rest
        one = parts[0] if len(parts) == 1 and not parts[0].roots else None
        self._thin[found.id] = _Thin(d, c, u, core, one, self._inverse_of_middle(parts[0]))
        return found

    def determinant(
        self, x: Symbol, d: Symbol, parts: list[Product], logs_of: Callable[[Symbol], tuple[Symbol, Symbol]]
    ) -> tuple[Symbol, Symbol]:
        """The sign and the logarithm of the size of that of D + U U^T, by those of C."""
        F = self._builder.language
        u, c, core = self._core(d, parts)
        sign, logs = logs_of(core)
        n, k = u.shape
        logs = logs if c == 1 else logs + k * math.log(c)
        if parts[0].middle is not None:
            logs = logs + logs_of(self._builder.symbol(parts[0].middle))[1]
        if is_matrix(d):
            return sign, logs - logs_of(d)[1]
        logs = logs + (F.sum(F.log(d), axis=(0,), keepdims=False) if d.shape else F.log(d) * float(n - k))
        if self._facts.positive(d.id) or x.id in self._trusted:
            return sign, logs
        regular = F.all(F.ne(d, 0), axis=(0,) if d.shape else (), keepdims=False)
        return F.where(regular, sign, 0), F.where(regular, logs, -math.inf)

    def product(self, d: Symbol, parts: list[Product], determinant_of: Callable[[Symbol], Symbol]) -> Symbol:
        """The determinant itself, by that of C."""
        F = self._builder.language
        u, c, core = self._core(d, parts)
        n, k = u.shape
        found = determinant_of(core) * c**k
        if parts[0].middle is not None:
            found = found * determinant_of(self._builder.symbol(parts[0].middle))
        if is_matrix(d):
            return F.div(found, determinant_of(d))
        return found * F.prod(d if d.shape else F.broadcast_to(d, shape=(n - k,)), axis=(0,), keepdims=False)

    def of(self, x: Symbol) -> tuple[Symbol, list[Product]] | None:
        """(d, the rest): D, as a vector d > 0 or one number, or d = D^-1, a matrix; and the others."""
        if not (is_one_matrix(x) and is_floating(x.dtype)):
            return None
        return self._split(self._facts.form(x.id), x) or self._split(self._facts.deep_form(x.id), x)

    def _split(self, form: Form | None, x: Symbol) -> tuple[Symbol, list[Product]] | None:
        if form is None or len(form.terms) < 2:
            return None
        base = [t for t in form.terms if t.places[0] == t.places[1]]
        d = self.diagonal_of(Form(form.shape, tuple(base)), x) if base else None
        if not base:
            base = [t for t in form.terms if self._inverted(t) is not None]
            d = self._inverted(base[0]) if len(base) == 1 else None
        found = [h for t in form.terms if t not in base and (h := self._half(t, form.shape)) is not None]
        if d is None or not found or len(found) + len(base) < len(form.terms):
            return None
        nodes, n = self._builder.nodes, x.shape[0]
        if sum([nodes[h.factor].size for h in found]) > THIN * n * n:
            return None
        return (d, found) if len(found) == 1 or not any(h.middle for h in found) else None

    def _inverted(self, t: Term) -> Symbol | None:
        """The definite matrix of which a term is the inverse."""
        node = self._builder.nodes[t.factors[0].atom] if len(t.factors) == 1 and t.coefficient == 1 else None
        if node is None or node.op is not _INV or {*t.factors[0].places} != {*t.places} or t.sizes != node.shape:
            return None
        return self._builder.symbol(node.inputs[0]) if self._facts.definite(node.inputs[0]) else None

    def _half(self, t: Term, shape: tuple[int, ...]) -> Product | None:
        """A term of a form of this shape that is c U M U^T, c > 0; U may be a vector."""
        if isinstance(t.coefficient, complex) or t.coefficient <= 0:
            return None
        weights = [f for f in t.factors if _is_number(f) or (len(f.places) == 1 and f.places[0] not in t.places)]
        if not weights:
            return self._bare_half(t, shape)
        bare = t._replace(factors=tuple([f for f in t.factors if f not in weights]))
        found = self._bare_half(bare, shape)
        shared = {p for f in bare.factors for p in f.places} - {*t.places}
        if (
            found is None
            or found.middle is not None
            or not all(_is_number(f) or f.places[0] in shared for f in weights)
        ):
            return None
        roots = [self._root(f, weights.count(f), t.sizes) for f in dict.fromkeys(weights)]
        known = [id for id in roots if id is not None]
        return found._replace(roots=tuple(known)) if len(known) == len(roots) else None

    def _root(self, f: Factor, times: int, sizes: tuple[int, ...]) -> int | None:
        """The square root of a weight that a term has as a factor so many times, if that is no negative number."""
        F, x = self._builder.language, self._value(f)
        if x.shape and x.shape != (sizes[f.places[0].labels[0]],):
            return None
        if times == 2:
            return x.id
        return F.sqrt(x).id if times == 1 and self._facts.nonnegative(f.atom) else None

    def _value(self, f: Factor) -> Symbol:
        """A factor that is a number, of shape (), or else its atom."""
        x = self._builder.symbol(f.atom)
        if not f.places or not _is_number(f):
            return x
        F, start = self._builder.language, tuple([p.offset for p in f.places])
        stop, step = tuple([k + 1 for k in start]), (1,) * len(start)
        return F.reshape(F.slice(x, start=start, stop=stop, step=step), shape=())

    def _bare_half(self, t: Term, shape: tuple[int, ...]) -> Product | None:
        """As `_half`, of a term without weights."""
        row, column = t.places
        if len(t.factors) == 3:
            return self._around(t)
        if len(t.factors) != 2:
            return None
        a, b = t.factors
        if a.atom == b.atom and len(a.places) == 1 and {*a.places, *b.places} == {row, column}:  # of one column
            whole = all(len(p.steps) == 1 and p.steps[0][1] == 1 and not p.offset for p in t.places)
            n = self._builder.nodes[a.atom].size
            return Product(a.atom, False, t.coefficient) if whole and t.sizes == (n, n) == shape else None
        if a.atom != b.atom or len(a.places) != 2 or len(t.sizes) != 3:
            return None
        for axis in range(2):
            ends = {a.places[axis], b.places[axis]}
            shared = a.places[1 - axis]
            plain = all(len(p.steps) == 1 and p.steps[0][1] == 1 and not p.offset for p in (row, column, shared))
            if plain and ends == {row, column} and shared == b.places[1 - axis] and shared not in ends:
                node = self._builder.nodes[a.atom]
                wanted = (t.sizes[row.labels[0]], t.sizes[shared.labels[0]])
                if (node.shape if axis == 0 else node.shape[::-1]) == wanted:
                    return Product(a.atom, axis == 1, t.coefficient)
        return None

    def _around(self, t: Term) -> Product | None:
        """c U M U^T, of three factors."""
        nodes, (row, column) = self._builder.nodes, t.places
        for k, m in enumerate(t.factors):
            a, b = (f for j, f in enumerate(t.factors) if j != k)
            if a.atom != b.atom or len(a.places) != 2 or len(m.places) != 2 or m.places[0] == m.places[1]:
                continue
            plain = all(len(p.steps) == 1 and p.steps[0][1] == 1 and not p.offset for p in (row, column, *m.places))
            for axis in range(2):
                ends, inner = {a.places[axis], b.places[axis]}, {a.places[1 - axis], b.places[1 - axis]}
                if not plain or ends != {row, column} or inner != {*m.places}:
                    continue
                shape = nodes[a.atom].shape[:: -1 if axis else 1]
                wanted = t.sizes[row.labels[0]], t.sizes[m.places[0].labels[0]]
                if shape == wanted and nodes[m.atom].shape == wanted[1:] * 2 and self._facts.definite(m.atom):
                    return Product(a.atom, axis == 1, t.coefficient, m.atom)
        return None

    def diagonal_of(self, form: Form, x: Symbol) -> Symbol | None:
        """The diagonal of a diagonal form that is positive: numbers, and nonnegative scalars or vectors with them. One
        number, of shape (), where all elements are the same; else they are of about one size."""
        builder = self._builder
        total: Symbol | None = None
        # a scalar that is 0 leaves a matrix of low rank, which is singular; a vector with a 0 may leave a regular one
        trusted, positive = x.id in self._trusted, self._facts.positive
        somewhere = any(all(positive(f.atom) for f in t.factors) for t in form.terms)
        if not somewhere and not trusted and not all(_is_number(f) for t in form.terms for f in t.factors):
            return None
        for t in form.terms:
            if isinstance(t.coefficient, complex) or t.sizes != form.shape[:1]:
                return None
            if t.coefficient < 0 and not trusted:
                return None
            part = builder.constant(float(t.coefficient), x.dtype)
            for f in t.factors:
                given = self._value(f)
                squared = t.factors.count(f) == 2
                if not (squared or trusted or self._facts.nonnegative(f.atom)):
                    return None
                if given.shape and (given.shape != form.shape[:1] or f.places != t.places[:1]):
                    return None
                part = part * given
            total = part if total is None else total + part
        if total is None or not total.shape or trusted:
            return total
        range = self._facts.range(total.id)
        return total if range.high <= SPREAD * range.low else None

    def _over(self, u: Symbol, d: Symbol) -> Symbol:
        """D^-1 U."""
        F = self._builder.language
        if is_matrix(d):
            return d @ u
        # a factor, by which the form of U^T D^-1 U is its own transpose
        return u * F.reshape(F.reciprocal(d), shape=(u.shape[0], 1)) if d.shape else F.div(u, d)

    def _core(self, d: Symbol, parts: list[Product]) -> tuple[Symbol, float, Symbol]:
        """U, c and C of D + c U M U^T."""
        F, builder = self._builder.language, self._builder
        columns: list[Symbol] = []
        alone = len(parts) == 1
        c = float(parts[0].coefficient) if alone else 1.0
        for part in parts:
            u = builder.symbol(part.factor)
            u = F.reshape(u, shape=(u.shape[0], 1)) if len(u.shape) == 1 else u
            u = swap_last(F, u) if part.turned else u
            for root in map(builder.symbol, part.roots):
                u = u * root
            columns.append(u if alone or part.coefficient == 1 else u * float(part.coefficient) ** 0.5)
        u = columns[0] if len(columns) == 1 else F.cat(*columns, axis=1)
        added = builder.constant(1 / c, u.dtype) if d.shape else d if c == 1 else d * (1 / c)
        gram = swap_last(F, u) @ (self._over(u, d) if d.shape else u)
        middle = self._inverse_of_middle(parts[0])
        if middle is not None:
            return u, c, (middle if d.shape and c == 1 else middle * added) + gram
        return u, c, diagonal_matrix(F, F.broadcast_to(added, shape=u.shape[1:])) + gram

    def _inverse_of_middle(self, part: Product) -> Symbol | None:
        """M^-1."""
        if part.middle is None:
            return None
        m = self._builder.symbol(part.middle)
        node = node_of(m)
        return operands(m)[0] if node.op is _INV else self._builder.language.inv(m, checked=False, asked="inv")

    def pushed(self, factors: Sequence[int]) -> Symbol | None:
        """A product with an inverse of D + c U M U^T that begins, or ends, with U beside it: it has C^-1 instead."""
        for place, id in enumerate(factors):
            thin, numbers = self._scaled_thin(self._builder.symbol(id))
            if thin is None or thin.part is None:
                continue
            F = self._builder.language
            z = self._beside(self._builder.symbol(factors[1 - place]), thin.part, ends=place == 1)
            if z is None:
                continue
            u, core = self._over(thin.u, thin.d) if thin.d.shape else thin.u, thin.core
            core = core if thin.c == 1 else core * (1 / thin.c)
            for number in numbers:
                core = core * number
            if thin.middle is not None:
                core = core @ thin.middle if place == 0 else thin.middle @ core
            if place == 0:
                return u @ (core @ z[0] if z else core)
            return (z[0] @ core if z else core) @ swap_last(F, u)
        return None

    def _scaled_thin(self, x: Symbol) -> tuple[_Thin | None, list[Symbol]]:
        """Of what a matrix is the inverse, perhaps transposed, and the numbers that it is multiplied by."""
        numbers: list[Symbol] = []
        while x.id not in self._thin:
            if (below := transposed(x)) is not None:
                x = below
            elif (pair := scaled(x)) is not None:
                x, number = pair
                numbers.append(number)
            else:
                break
        return self._thin.get(x.id), numbers

    def _beside(self, x: Symbol, part: Product, ends: bool) -> list[Symbol] | None:
        """[Z] of U Z = x, or of Z U^T = x if it `ends` so; [] if U is all. None if it is not there."""
        F, node = self._builder.language, node_of(x)
        turned = part.turned != ends
        if node.inputs[:1] == (part.factor,) and transposes(node) if turned else x.id == part.factor:
            return [] if len(x.shape) == 2 else None
        if node.op is _MATMUL:
            outer, inner = operands(x)[:: -1 if ends else 1]
            z = self._beside(outer, part, ends) if len(outer.shape) == 2 else None
            if not z:
                return z if z is None else [inner]
            return [inner @ z[0] if ends else z[0] @ inner]
        pair = scaled(x)
        if pair is not None:
            z = self._beside(pair[0], part, ends)
            return [z[0] * pair[1]] if z else None
        if node.op is _RESHAPE and not ends and x.shape == (*operands(x)[0].shape, 1):
            z = self._beside(operands(x)[0], part, ends)
            return [F.reshape(z[0], shape=(*z[0].shape, 1))] if z else None
        return None
