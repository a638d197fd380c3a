"""The distributive law, backwards: AB + AC as A(B + C), where that costs less."""

from __future__ import annotations

import functools
import itertools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from graphc.normal.affine import Index, Unsolved, label
from graphc.normal.bounds import FACTORED
from graphc.normal.form import Factor, Form, Number, Term, collected, tidy
from graphc.normal.plan import planned
from graphc.rewrite.cost import WRITE


class _Common(NamedTuple):
    """A factor of a term, or two that make a square, and the labels that they have and the result has not, in order."""

    term: Term
    factors: tuple[int, ...]
    summed: tuple[int, ...]

    def own(self) -> list[Factor]:
        return [self.term.factors[k] for k in self.factors]

    def rest(self) -> list[Factor]:
        return [f for k, f in enumerate(self.term.factors) if k not in self.factors]


MOST_AXES = 3  # of a sum that may be another, transposed
DIGITS = 15  # of numbers in proportion
MOST_FACTORS = 7  # of terms from which common ones are taken out: each try is a plan


def factored(form: Form, name: Callable[[Form], int], charge: Callable[[int], None] | None = None) -> Form:
    """`form` with factors that terms have in common taken out, as far as that pays.

    name: gives an atom to a sum that is left in brackets; charge: counts the work
    """
    while (shorter := _shorter(form, name, charge or _nothing)) is not None:
        form = shorter
    return form


def _nothing(units: int) -> None:
    pass


def _shorter(form: Form, name: Callable[[Form], int], charge: Callable[[int], None]) -> Form | None:
    """With the factor taken out that saves most."""
    groups: dict[Any, dict[Term, _Common]] = {}
    for t in form.terms if len(form.terms) > 1 else ():
        for own in (*_squares(t), *[(k,) for k in range(len(t.factors))]):  # A^3 + A^4 is A^2 (A + A^2) sooner
            common = _common(t, own)
            spread = len(own) == 1 and len(_labels(t.factors[own[0]].places)) < len(_labels(t.places))
            if common.summed or spread:  # elsewhere it is one multiplication in a loop
                groups.setdefault(_signature(common), {}).setdefault(t, common)
    most, best = 0.0, None
    for group in groups.values():
        if len(group) > 1:
            charge(2 * FACTORED * len(group))
            inner, outer = _taken_out([*group.values()], None)
            try:
                before = _cost(Form(form.shape, tuple(group)))
                saved = before - _cost(inner, _in_a_loop(outer)) - _cost(Form(form.shape, (outer,)))
                left = [t for t in form.terms if t not in group]
                saved += _shared((*left, *inner.terms, outer)) - _shared(form.terms)
            except Unsolved:
                continue
            if saved > most:
                most, best = saved, group
    if best is None:
        return None
    _, outer = _taken_out([*best.values()], name)
    return collected(form.shape, [*[t for t in form.terms if t not in best], outer])


def _squares(t: Term) -> list[tuple[int, int]]:
    """The places of two equal factors at an end of a chain of more, the end first."""
    if len(t.factors) < 3 or len({f.atom for f in t.factors}) == len(t.factors):
        return []
    out = _labels(t.places)
    labels = [_labels(f.places) for f in t.factors]
    return [
        (k, n)
        for k, n in itertools.permutations(range(len(labels)), 2)
        if t.factors[k].atom == t.factors[n].atom and labels[k] & out and not labels[n] & out and labels[k] & labels[n]
    ]


def _common(t: Term, factors: tuple[int, ...]) -> _Common:
    out = _labels(t.places)
    own = dict.fromkeys([i for k in factors for place in t.factors[k].places for i in place.labels])
    return _Common(t, factors, tuple([i for i in own if i not in out]))


def _shared(terms: Sequence[Term]) -> float:
    """What squares of matrices cost that several terms have, but for the first time."""
    costs: dict[int, list[float]] = {}
    for t in terms:
        times = Counter([f.atom for f in t.factors])
        for k, n in times.items() if len(times) < len(t.factors) else ():
            cost = _square_cost([f for f in t.factors if f.atom == k], t) if n > 1 else 0
            if cost:
                costs.setdefault(k, []).append(cost)
    return sum([sum(found) - max(found) for found in costs.values()])


def _square_cost(factors: Sequence[Factor], t: Term) -> float:
    """What the product of the first two of some equal factors costs that meet."""
    out = _labels(t.places)
    for f, g in itertools.combinations(factors, 2):
        meeting = _labels(f.places) & _labels(g.places)
        if meeting and not meeting & out:
            ends = frozenset(_labels((*f.places, *g.places)) - meeting)
            return _term_cost((f._replace(atom=0), g._replace(atom=0)), ends, t.sizes)
    return 0.0


def _signature(c: _Common) -> Any:
    """What is equal for factors that are the same part of terms that lie in the same place."""
    t = c.term
    names = {k: label(-1 - n) for n, k in enumerate(c.summed)}
    sizes = tuple([t.sizes[k] for k in (*sorted(_labels(t.places)), *c.summed)])
    return t.places, sizes, tuple([(f.atom, *[place.at(names) for place in f.places]) for f in c.own()])


def _labels(places: Sequence[Index]) -> set[int]:
    return {k for place in places for k in place.labels}


def _taken_out(group: Sequence[_Common], name: Callable[[Form], int] | None) -> tuple[Form, Term]:
    """The sum in brackets, and the product with it."""
    t = group[0].term
    out = sorted(_labels(t.places))
    count = len(out) + len(group[0].summed)  # labels of the product: those of the result, and those summed up
    sizes = [t.sizes[k] for k in (*out, *group[0].summed)]
    rests: list[tuple[Term, dict[int, Index], list[int]]] = []
    needed: set[int] = set()
    for c in group:
        names = {k: label(n) for n, k in enumerate((*out, *c.summed))}
        own = c.term.sizes
        fresh = [k for k in range(len(own)) if k not in names]
        names.update({k: label(count + n) for n, k in enumerate(fresh)})
        rests.append((c.term, names, [own[k] for k in fresh]))
        needed |= {i for f in c.rest() for p in f.places for i in p.at(names).labels if i < count}
    kept = sorted(needed)
    places = [label(k) for k in kept]
    terms: list[Term | None] = []
    for c, (term, names, fresh) in zip(group, rests, strict=True):
        rest = [Factor(f.atom, tuple([p.at(names) for p in f.places])) for f in c.rest()]
        terms.append(_within(term.coefficient, rest, places, [*sizes, *fresh], set(kept), count))
    inner = collected([sizes[k] for k in kept], terms)
    _, names, _ = rests[0]
    number, order = 1, range(len(places))
    if name is not None:
        inner, number, order = _canonical(inner)
    atom = -1 if name is None else name(inner)
    outer = tidy(
        number,
        [
            *[Factor(f.atom, tuple([p.at(names) for p in f.places])) for f in group[0].own()],
            Factor(atom, tuple([places[k] for k in order])),
        ],
        [p.at(names) for p in t.places],
        sizes,
    )
    assert outer is not None
    return inner, outer


def _canonical(form: Form) -> tuple[Form, Number, Sequence[int]]:
    """(P, c, order): c times P, with its axes in this order, is the sum. 2 B + 0.2 C and C^T + 10 B^T have the same P,
    and its products are computed once."""
    found: list[tuple[Any, Form, Number, Sequence[int]]] = []
    for order in itertools.permutations(range(len(form.shape))) if len(form.shape) <= MOST_AXES else ():
        moved = [tidy(t.coefficient, t.factors, [t.places[k] for k in order], t.sizes) for t in form.terms]
        terms = sorted([t for t in moved if t is not None], key=lambda t: t[1:])
        number, parts = _in_proportion([t.coefficient for t in terms])
        terms = [t._replace(coefficient=part) for t, part in zip(terms, parts, strict=True)]
        whole = Form(tuple([form.shape[k] for k in order]), tuple(terms))
        found.append(([t[1:] for t in terms], whole, number, order))
    return min(found, key=lambda way: way[0])[1:] if found else (form, 1, range(len(form.shape)))


def _in_proportion(numbers: Sequence[Number]) -> tuple[Number, Sequence[Number]]:
    """The first of the largest numbers, and all divided by it; whole numbers only if they are equal but for signs."""
    number = max(numbers, key=abs)
    if all(x in (number, -number) for x in numbers):
        return numbers[0], [1 if x == numbers[0] else -1 for x in numbers]
    if not any(type(x) is float for x in numbers) or any(isinstance(x, complex) for x in numbers):
        return 1, numbers
    parts = [_as_decimal(float(x / number)) for x in numbers] if math.isfinite(number) else []
    return (number, parts) if parts and all(parts) else (1, numbers)


def _as_decimal(x: float) -> float:
    """The decimal of some digits that `x` is but for rounding, as 0.3 / 3 is 0.1; else `x`."""
    short = float(f"{x:.{DIGITS}g}")
    return short if abs(short - x) <= 2 * math.ulp(x) else x


def _within(
    coefficient: Any,
    factors: Sequence[Factor],
    places: Sequence[Index],
    sizes: Sequence[int],
    kept: set[int],
    count: int,
) -> Term | None:
    """A term of the sum in brackets: of the outer labels it has those that are `kept`."""
    return tidy(coefficient, factors, places, [1 if k < count and k not in kept else n for k, n in enumerate(sizes)])


def _in_a_loop(t: Term) -> bool:
    """Whether a product is one loop, element by element, in which a sum that it reads is computed on the way."""
    return len({frozenset(_labels(f.places)) for f in t.factors}) == 1


def _cost(form: Form, read_in_loop: bool = False) -> float:
    """What the terms cost, and adding them up."""
    each = 1 if read_in_loop else 1 + WRITE
    total = float((len(form.terms) - 1) * each * math.prod(form.shape))
    for t in form.terms:
        if len(t.factors) > MOST_FACTORS:
            raise Unsolved
        number: dict[int, int] = {}  # which atoms they are does not matter
        factors = tuple([Factor(number.setdefault(f.atom, len(number)), f.places) for f in t.factors])
        total += _term_cost(factors, frozenset(_labels(t.places)), t.sizes)
    return total


@functools.lru_cache(maxsize=1 << 14)
def _term_cost(factors: tuple[Factor, ...], out: frozenset[int], sizes: tuple[int, ...]) -> float:
    return planned(factors, out, sizes).cost
