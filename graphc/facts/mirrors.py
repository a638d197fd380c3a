"""Whether terms of forms are each other's transposes, whatever their labels are called."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

from graphc.normal.affine import Index
from graphc.normal.form import Factor, Form, Term

Signs = Callable[[int], int]


def mirror(form: Form, signs: Signs) -> int:
    """1 if an array is the same with its first two axes exchanged, -1 if it is its negative then, 0 for others.

    signs: the same of atoms
    """
    for sign in (1, -1):
        left = list(form.terms)
        for term in form.terms:
            image = term._replace(places=(term.places[1], term.places[0], *term.places[2:]))
            found = next((t for t in left if _equal(image, t, sign, signs)), None)
            if found is None:
                break
            left.remove(found)
        else:
            return sign
    return 0


def _equal(a: Term, b: Term, sign: int, signs: Signs) -> bool:
    """Whether a term is `sign` times another."""
    if len(a.factors) != len(b.factors) or sorted(a.sizes) != sorted(b.sizes):
        return False
    names: Mapping[int, int] | None = {}
    for here, there in zip(a.places, b.places, strict=True):
        names = None if names is None else _named(names, here, there, a, b)
    if names is None:
        return False
    numbers = [c if isinstance(c, complex) else Fraction(c) for c in (a.coefficient, b.coefficient)]
    ratio = next((s for s in (1, -1) if numbers[0] == s * numbers[1]), 0)
    return bool(ratio) and _matched(list(a.factors), list(b.factors), names, sign * ratio, a, b, signs)


def _named(names: Mapping[int, int], here: Index, there: Index, a: Term, b: Term) -> Mapping[int, int] | None:
    """`names`, those in `b` of the labels of `a`, with what makes one place the other; None if that cannot be."""
    if here.offset != there.offset or [s for _, s in here.steps] != [s for _, s in there.steps]:
        return None
    found = dict(names)
    for k, m in zip(here.labels, there.labels, strict=True):
        if a.sizes[k] != b.sizes[m] or found.setdefault(k, m) != m:
            return None
    return found if len({*found.values()}) == len(found) else None


def _matched(
    left: list[Factor], right: list[Factor], names: Mapping[int, int], sign: int, a: Term, b: Term, signs: Signs
) -> bool:
    """Whether factors are others in these names, and the product of their signs is `sign`."""
    if not left:
        return sign == 1
    known = [f for f in left if any(k in names for p in f.places for k in p.labels)]
    first, *_ = known or left
    rest = list(left)
    rest.remove(first)
    for k, other in enumerate(right):
        if other.atom != first.atom:
            continue
        ways = [(1, list(first.places))]
        if len(ways[0][1]) > 1 and signs(first.atom):
            row, column, *others = first.places
            ways.append((signs(first.atom), [column, row, *others]))
        for way, places in ways:
            found: Mapping[int, int] | None = names
            for here, there in zip(places, other.places, strict=True):
                found = None if found is None else _named(found, here, there, a, b)
            if found is not None and _matched(rest, [*right[:k], *right[k + 1 :]], found, sign * way, a, b, signs):
                return True
    return False
