"""Sums of products of arrays, with an index for each axis.

    out[place(labels)] = sum over the labels, over the terms, of coefficient * product of factor[index(labels)]

with zeros where no labels lead. A label that occurs in several places of the result makes a diagonal, one in none is
summed over; without factors it is an identity; an offset is a slice or a pad. `Algebra` is the language in which ops
declare what they are as forms (`Op.lifting`): every method is exact in any commutative ring.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple, final

import numpy as np

from graphc.normal.affine import Equations, Index, Unsolved, flat, label

Number = Any  # int, float, complex, or a Fraction where it is exact
MOST = 64  # terms of a product of sums


class Factor(NamedTuple):
    """An element of an array: `atom` says which one, `places` where, one for each axis."""

    atom: int
    places: tuple[Index, ...]


class Term(NamedTuple):
    """One product, with the `sizes` of its labels 0, 1, ... and the `places` in the result, one for each axis."""

    coefficient: Number
    factors: tuple[Factor, ...]
    places: tuple[Index, ...]
    sizes: tuple[int, ...]

    def elements(self) -> int:
        """How many products are summed up, zeros of the result left out."""
        count = 1
        for n in self.sizes:
            count *= n
        return count


class Form(NamedTuple):
    """A sum of terms, of one shape. Without terms it is zero."""

    shape: tuple[int, ...]
    terms: tuple[Term, ...]


MOST_DIAGONALS = 3  # of a constant matrix, that a form has as terms
MOST_PIECES = 8  # of an axis of a constant, within which nothing changes
LEAST_PIECE = 4  # places along an axis, on average


def atom(k: int, shape: Sequence[int]) -> Form:
    """An array as it is."""
    places = tuple([label(axis) for axis in range(len(shape))])
    return collected(shape, [tidy(1, [Factor(k, places)], places, shape)])


def number(value: Number, shape: Sequence[int]) -> Form:
    """One number in every place."""
    places = tuple([label(axis) for axis in range(len(shape))])
    return collected(shape, [tidy(value, [], places, shape)] if value else [])


def diagonal(value: Number, shape: Sequence[int], offset: int) -> Form:
    """A matrix with one number on one diagonal, as an identity has it."""
    whole = number(value, (min(shape[0], shape[1] - offset) if offset >= 0 else min(shape[0] + offset, shape[1]),))
    return Algebra().put(whole, shape, lambda i: (i + max(-offset, 0), i + max(offset, 0)))


def collected(shape: Sequence[int], terms: Sequence[Term | None]) -> Form:
    """Like terms are one."""
    total: dict[tuple[Any, ...], Term] = {}
    for term in terms:
        if term is not None:
            key = term[1:]
            known = total.get(key)
            total[key] = term if known is None else term._replace(coefficient=known.coefficient + term.coefficient)
    if not all(term.coefficient or not term.factors for term in total.values()):
        raise Unsolved  # x - x is nan where x is infinite
    return Form(tuple(shape), tuple(total.values()))


def oriented(term: Term) -> Term:
    """A term with its labels in the direction that reverses the fewest elements, of factors and of the result."""
    reversed_elements = [0] * len(term.sizes)
    for places in (term.places, *[f.places for f in term.factors]):
        elements = math.prod([term.sizes[k] for k in {k for p in places for k in p.labels}])
        for k, stride in [step for p in places for step in p.steps]:
            reversed_elements[k] += elements if stride < 0 else -elements
    turned = {k: label(k, -1) + (term.sizes[k] - 1) for k, count in enumerate(reversed_elements) if count > 0}
    if not turned:
        return term
    factors = tuple([Factor(f.atom, tuple([p.at(turned) for p in f.places])) for f in term.factors])
    return Term(term.coefficient, factors, tuple([p.at(turned) for p in term.places]), term.sizes)


def tidy(coefficient: Number, factors: Sequence[Factor], places: Sequence[Index], sizes: Sequence[int]) -> Term | None:
    """The term with its labels in the order in which they occur, first with rising places. None if it is zero."""
    fixed: dict[int, Index] = {}
    kept: list[int] = []
    for index in (*places, *(i for f in sorted(factors, key=lambda f: f.atom) for i in f.places)):
        for k, stride in index.steps:
            if k in fixed:
                continue
            if sizes[k] == 1:
                fixed[k] = Index(0)
                continue
            fixed[k] = label(len(kept)) if stride > 0 else label(len(kept), -1) + (sizes[k] - 1)
            kept.append(sizes[k])
    for k, n in enumerate(sizes):
        if k not in fixed:  # nothing depends on it
            coefficient = coefficient * n
    if 0 in kept or (coefficient == 0 and factors):
        return None
    if any(to.offset or to.steps != ((k, 1),) for k, to in fixed.items()):
        factors = [Factor(f.atom, tuple([i.at(fixed) for i in f.places])) for f in factors]
        places = [i.at(fixed) for i in places]
    return Term(coefficient, tuple(sorted(factors)), tuple(places), tuple(kept))


@final
class Algebra:
    """Operations on forms. Each raises Unsolved where the result is none, or none is found."""

    Unsolved = Unsolved

    def constant(self, value: np.ndarray) -> Form:
        """An array of one number; or of which that is so but for few boxes, or of a matrix few diagonals, each of one
        number."""
        if value.dtype.kind not in "iufc":
            raise Unsolved
        if 1 in value.shape:
            return self.reshape(self.constant(value.squeeze()), value.shape)
        common = value.flat[0 if value.ndim != 2 else -value.shape[1]] if value.size else value.dtype.type(0)
        others = value != common
        form = number(_exact(common), value.shape)
        if not others.any():
            if common == 0 and value.dtype.kind == "f" and np.signbit(value).any():
                raise Unsolved  # to add -0 is not to add +0
            return form
        if value.ndim != 2 or np.count_nonzero(others) > MOST_DIAGONALS * min(value.shape):
            return self._boxes(value)
        rows, columns = np.nonzero(others)
        terms = list(form.terms)
        for offset in np.unique(columns - rows).tolist():
            line = np.diagonal(value, offset)
            (cuts,) = np.nonzero(line[1:] != line[:-1])
            runs = [(a, b) for a, b in itertools.pairwise([0, *(cuts + 1).tolist(), len(line)]) if line[a] != common]
            if len(terms) + len(runs) > (MOST_PIECES if len(cuts) else MOST_DIAGONALS + 1):
                return self._boxes(value)
            for a, b in runs:
                inside = diagonal(_difference(_exact(line[a]), _exact(common)), (b - a, b - a), 0)
                first = a + max(-offset, 0), a + max(offset, 0)
                terms += self.put(inside, value.shape, lambda i, j, at=first: (i + at[0], j + at[1])).terms
        return collected(value.shape, terms)

    def _boxes(self, value: np.ndarray) -> Form:
        """An array that is cut along its axes into few boxes of one number each, as a mask of blocks is."""
        if value.dtype.kind == "f" and np.signbit(value[value == 0]).any():
            raise Unsolved  # to add -0 is not to add +0
        pieces: list[list[tuple[int, int]]] = []
        for axis, n in enumerate(value.shape):
            rows = np.moveaxis(value, axis, 0).reshape(n, -1)
            (cuts,) = np.nonzero((rows[1:] != rows[:-1]).any(1))
            if len(cuts) >= MOST_PIECES or LEAST_PIECE * (len(cuts) + 1) > n > 1:
                raise Unsolved
            pieces.append([*itertools.pairwise([0, *(cuts + 1).tolist(), n])])
        boxes = [*itertools.product(*pieces)]
        inside = [_exact(value[tuple([first for first, _ in box])]) for box in boxes]
        common = 0 if 0 in inside else inside[-1]
        terms = list(number(common, value.shape).terms)
        for box, here in zip(boxes, inside, strict=True):
            if here != common:
                part = number(_difference(here, common), [after - first for first, after in box])
                first = [k for k, _ in box]
                there = self.put(part, value.shape, lambda *at, k=first: [*map(operator.add, at, k)])
                terms += there.terms
        return collected(value.shape, terms)

    def zeros(self, shape: Sequence[int]) -> Form:
        """Nothing but zeros."""
        return number(0, shape)

    def ratio(self, a: int, b: int) -> Number:
        """The number a / b, exact."""
        if not b:
            raise Unsolved
        return Fraction(a, b)

    def reciprocal(self, form: Form) -> Form:
        """Of a number that is in every place."""
        terms = number(1, form.shape).terms
        if [t._replace(coefficient=1) for t in form.terms] != list(terms) or not terms:
            raise Unsolved
        value = form.terms[0].coefficient
        return number(1 / value if isinstance(value, complex) else 1 / Fraction(value), form.shape)

    def add(self, *forms: Form) -> Form:
        """The sum of forms, broadcast."""
        total = self.join(*forms)
        if all(form.terms for form in forms) or 0 in total.shape:
            return total
        return collected(total.shape, [*total.terms, _nothing(total.shape)])

    def sub(self, x: Form, y: Form) -> Form:
        """The difference, broadcast. A zero that is taken away leaves -0 as it is."""
        y = self.scale(y, -1)
        return self.add(x, y) if y.terms or not x.terms else self.join(x, y)

    def join(self, *forms: Form) -> Form:
        """The same of forms that are zero where another is not."""
        return collected(_common(forms), [term for form in self._alike(forms) for term in form.terms])

    def mul(self, *forms: Form) -> Form:
        """The product of forms, broadcast, element by element."""
        names = range(len(_common(forms)))
        return self.product(self._alike(forms), [names for _ in forms], names)

    def _alike(self, forms: Sequence[Form]) -> list[Form]:
        return [self.spread(form, _common(forms)) for form in forms]

    def scale(self, form: Form, factor: Number) -> Form:
        """Every element times a number."""
        form = _without_nothing(form)
        return collected(form.shape, [t._replace(coefficient=t.coefficient * factor) for t in form.terms])

    def put(self, form: Form, shape: Sequence[int], where: Callable[..., Sequence[Index]]) -> Form:
        """The array of this shape with element i, j, ... of `form` at `where(i, j, ...)`, and zeros elsewhere."""
        return collected(shape, [t._replace(places=tuple(where(*t.places))) for t in form.terms])

    def take(self, form: Form, shape: Sequence[int], where: Callable[..., Sequence[Index]]) -> Form:
        """The array of this shape whose element i, j, ... is that of `form` at `where(i, j, ...)`."""
        return collected(shape, [_taken(t, shape, where) for t in form.terms])

    def reshape(self, form: Form, shape: Sequence[int]) -> Form:
        """The same elements, in row-major order, in another shape."""
        if tuple(shape) == form.shape:
            return form
        return collected(shape, [_reshaped(t, form.shape, shape) for t in form.terms])

    def spread(self, form: Form, shape: Sequence[int]) -> Form:
        """Repeated along axes of size 1, and new ones in front."""
        extra = len(shape) - len(form.shape)

        def where(*places: Index) -> list[Index]:
            return [Index(0) if n == 1 else i for n, i in zip(form.shape, places[extra:], strict=True)]

        return form if tuple(shape) == form.shape else self.take(form, shape, where)

    def sum(self, form: Form, axes: Sequence[int], keepdims: bool = False) -> Form:
        """Summed over axes."""
        over = {k % len(form.shape) for k in axes}
        shape = [1 if k in over else n for k, n in enumerate(form.shape) if keepdims or k not in over]

        def where(*places: Index) -> tuple[Index, ...]:
            return tuple([Index(0) if k in over else i for k, i in enumerate(places) if keepdims or k not in over])

        terms = [tidy(t.coefficient, t.factors, where(*t.places), t.sizes) for t in form.terms]
        return collected(shape, terms)

    def product(self, forms: Sequence[Form], axes: Sequence[Sequence[int]], out: Sequence[int]) -> Form:
        """Products with a name for each axis, as an einsum: `axes` of each form, and of the result."""
        sizes = dict(zip(itertools.chain(*axes), itertools.chain(*[form.shape for form in forms]), strict=True))
        shape = [sizes[name] for name in out]
        forms = [_without_nothing(form) for form in forms]
        sums = [form for form in forms if _is_sum(form)]
        if math.prod(len(form.terms) for form in forms) > MOST or len(sums) > 1 or any(map(_is_displacement, sums)):
            raise Unsolved  # multiplied out they cancel digits
        nothing = 0 not in sizes.values() and not all(form.terms for form in forms)
        if nothing and any(term.factors for form in forms for term in form.terms):
            raise Unsolved  # 0 * inf is nan
        return collected(
            shape, [_multiplied(terms, axes, out) for terms in itertools.product(*[f.terms for f in forms])]
        )


def _nothing(shape: Sequence[int]) -> Term:
    """The term + 0, in every place: -0 + 0 is 0."""
    term = tidy(0, [], [label(k) for k in range(len(shape))], shape)
    assert term is not None
    return term


def _without_nothing(form: Form) -> Form:
    """Without + 0: in a product, the sign of zero may be another."""
    if all(t.coefficient for t in form.terms):
        return form
    return Form(form.shape, tuple([t for t in form.terms if t.coefficient]))


def _common(forms: Sequence[Form]) -> tuple[int, ...]:
    return np.broadcast_shapes(*[form.shape for form in forms])


def _exact(value: Any) -> Number:
    """A NumPy number as one of Python. Raises Unsolved for what is no number."""
    if not np.isfinite(value):
        raise Unsolved
    return value.item()


def _difference(a: Number, b: Number) -> Number:
    return a - b if isinstance(a, complex) or isinstance(b, complex) else Fraction(a) - Fraction(b)


def _is_sum(form: Form) -> bool:
    """Whether terms add up in some place: not, where they are side by side."""
    return any(itertools.starmap(_overlap, itertools.combinations(form.terms, 2)))


def _is_displacement(form: Form) -> bool:
    """Whether the form has differences like x[i] - y[j], each term constant where the other varies: of points that lie
    close together and far from the origin, which as a whole are more exact than their terms are."""
    varying = [(t.coefficient, _axes(t)) for t in form.terms if t.factors]
    return any(not (a <= b or b <= a) and _signs_differ(p, q) for (p, a), (q, b) in itertools.combinations(varying, 2))


def _axes(term: Term) -> frozenset[int]:
    """The axes along which a term varies."""
    read = {k for f in term.factors for place in f.places for k in place.labels}
    return frozenset([axis for axis, place in enumerate(term.places) if not read.isdisjoint(place.labels)])


def _signs_differ(a: Number, b: Number) -> bool:
    return isinstance(a, complex) or isinstance(b, complex) or (a < 0) != (b < 0)


def _overlap(a: Term, b: Term) -> bool:
    equations = Equations(a.sizes + b.sizes)
    own = {k: label(len(a.sizes) + k) for k in range(len(b.sizes))}
    try:
        for here, there in zip(a.places, b.places, strict=True):
            equations.equate(here, there.at(own))
    except Unsolved:
        return True
    return not equations.empty


def _multiplied(terms: Sequence[Term], axes: Sequence[Sequence[int]], out: Sequence[int]) -> Term | None:
    equations = Equations([n for t in terms for n in t.sizes])
    at: dict[int, Index] = {}
    factors: list[Factor] = []
    coefficient: Number = 1
    first = 0
    for term, names in zip(terms, axes, strict=True):
        own = {k: label(first + k) for k in range(len(term.sizes))}
        first += len(own)
        coefficient = coefficient * term.coefficient
        factors += [Factor(f.atom, tuple([i.at(own) for i in f.places])) for f in term.factors]
        for name, place in zip(names, term.places, strict=True):
            place = place.at(own)
            if at.setdefault(name, place) != place:
                equations.equate(at[name], place)
    return _solved(equations, coefficient, factors, [at[name] for name in out])


def _solved(
    equations: Equations, coefficient: Number, factors: Sequence[Factor], places: Sequence[Index]
) -> Term | None:
    if equations.empty:
        return None
    moved = [Factor(f.atom, tuple([equations.solved(i) for i in f.places])) for f in factors]
    return tidy(coefficient, moved, [equations.solved(i) for i in places], equations.left())


def _taken(term: Term, shape: Sequence[int], where: Callable[..., Sequence[Index]]) -> Term | None:
    equations = Equations(term.sizes)
    places = [label(equations.new(n)) for n in shape]
    for here, there in zip(where(*places), term.places, strict=True):
        equations.equate(here, there)
    return _solved(equations, term.coefficient, term.factors, places)


def _reshaped(term: Term, old: Sequence[int], new: Sequence[int]) -> Term | None:
    if any(stride < 0 for place in term.places for _, stride in place.steps):  # digits count upwards
        rising = tidy(term.coefficient, term.factors, term.places, term.sizes)
        if rising is None:
            return None
        term = rising
    equations = Equations(term.sizes)
    places = [label(equations.new(n)) for n in new]
    equations.equate(flat(places, new), flat(term.places, old))
    return _solved(equations, term.coefficient, term.factors, places)
