"""Between which numbers the elements of an array lie, by interval arithmetic on its form."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from graphc.normal.form import Factor, Form, Term, number


class Range(NamedTuple):
    """No number is less than `low` or greater than `high`; nan is no number."""

    low: float
    high: float


ANYTHING = Range(-math.inf, math.inf)


def range_of(form: Form, atoms: Callable[[int], Range]) -> Range:
    """Of an array that is a form of atoms. `atoms`: that of each."""
    low = high = 0.0
    for term in form.terms:
        found = _range_of(term, atoms)
        if not _is_everywhere(term, form.shape):  # zeros stand where it does not reach
            found = Range(min(found.low, 0.0), max(found.high, 0.0))
        low, high = low + found.low, high + found.high
    return Range(low, high)


def _is_everywhere(term: Term, shape: tuple[int, ...]) -> bool:
    """Whether a term reaches every place of an array."""
    whole = number(1, shape).terms
    return any(term.places == t.places and term.sizes[: len(t.sizes)] == t.sizes for t in whole)


def _range_of(term: Term, atoms: Callable[[int], Range]) -> Range:
    if isinstance(term.coefficient, complex):
        return ANYTHING
    here = {k for place in term.places for k in place.labels}
    count = math.prod(n for k, n in enumerate(term.sizes) if k not in here)  # of products that are added
    total = _product(Range(float(term.coefficient), float(term.coefficient)), Range(count, count))
    for factor, times in Counter[Factor](term.factors).items():
        own = atoms(factor.atom)
        if times > 1:
            total = _product(total, _power(own, times - times % 2))
        if times % 2:
            total = _product(total, own)
    return total


def _power(x: Range, even: int) -> Range:
    ends = sorted([abs(x.low), abs(x.high)])
    least = 0.0 if x.low <= 0 <= x.high else ends[0]
    return Range(_raised(least, even), _raised(ends[1], even))


def _raised(x: float, power: int) -> float:
    return math.inf if x > 1 and power * math.log(x) > 700 else x**power


def _product(a: Range, b: Range) -> Range:
    ends = [0.0 if x == 0 or y == 0 else x * y for x in a for y in b]  # of finite numbers, 0 * inf is 0
    return Range(min(ends), max(ends))
