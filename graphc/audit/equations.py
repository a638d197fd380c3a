"""Equations between terms: equal values at generic points, each with its licence.

Terms that are equal there make a class. In a class, in the order of what they cost as written, each term that may not
be written as one of those before it is a *head*; each other is an equation with the first head that it may be written
as.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from graphc.audit.costs import Costs
from graphc.audit.licences import behaviour, licence
from graphc.audit.terms import Term
from graphc.audit.values import CHECK, GENERIC, NOTHING, Values
from graphc.rewrite import ASSUMES, EXACT, Licence

DIGITS = 2.0**27  # of values that are taken for equal
HEADS = 12  # of a class, that a term is compared with
TINY = 2.0**-24  # sizes below are taken for rounding errors of zero


class Equation(NamedTuple):
    """`left` may be written as `right`, which costs no more as written; by which licence.

    reason  where the licence is ASSUMES: what would have to be known
    """

    left: Term
    right: Term
    licence: Licence
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.left} = {self.right}"


def classes(values: Values, terms: Sequence[Term]) -> list[list[Term]]:
    """Terms that are equal at generic points, and at others, in the order in which they come. Alone are not listed."""
    found: defaultdict[Hashable, list[Term]] = defaultdict(list)
    for term in terms:
        key = _fingerprint(values, term)
        if key is not None:
            found[key].append(term)
    return [group for same in found.values() for group in _confirmed(values, same) if len(group) > 1]


def _fingerprint(values: Values, term: Term) -> Hashable:
    value = values.of(term, GENERIC)
    if value is NOTHING or np.count_nonzero(np.isfinite(value)) * 2 < value.size:
        return None  # hardly defined
    if value.dtype.kind != "f":
        return term.aval, value.tobytes()
    some = value.reshape(-1)[:16]
    largest = float(np.max(np.abs(some), initial=TINY, where=np.isfinite(some)))
    unit = 2.0 ** np.ceil(np.log2(largest)) / DIGITS
    return term.aval, unit, np.where(np.isfinite(some), np.round(some / unit) + 0.0, some).tobytes()


def _confirmed(values: Values, same: Sequence[Term]) -> list[list[Term]]:
    """Parts of a class whose terms are equal at the second set of points as well."""
    parts: list[list[Term]] = []
    for term in same:
        for part in parts:
            if _close(values.of(term, CHECK), values.of(part[0], CHECK)):
                part.append(term)
                break
        else:
            parts.append([term])
    return parts


def _close(a: np.ndarray, b: np.ndarray) -> bool:
    if a is NOTHING or b is NOTHING:
        return a is b
    return bool(np.allclose(a, b, rtol=1e-7, atol=TINY, equal_nan=True))


def equations(values: Values, costs: Costs, group: Sequence[Term]) -> Iterator[Equation]:
    """The equations of a class."""
    ordered = sorted(group, key=lambda t: (costs.written(t), t.size))
    first: dict[Hashable, Equation | Term] = {}  # by behaviour: the equation of the first term, or that term
    heads: list[Term] = []
    for term in ordered:
        same = behaviour(values, term)
        known = first.get(same)
        if known is None:
            known = first[same] = _compared(values, term, heads) or term
            if isinstance(known, Term) or known.licence is ASSUMES:
                heads.append(term)
            if isinstance(known, Equation):
                yield known
        elif isinstance(known, Term):
            yield Equation(term, known, EXACT)
        elif known.licence is ASSUMES:
            yield Equation(term, known.left, EXACT)
        else:
            yield known._replace(left=term)


def _compared(values: Values, term: Term, heads: Sequence[Term]) -> Equation | None:
    """The equation of a term with one of the heads, the first that needs no assumption; None if there is no head."""
    found: Equation | None = None
    for head in heads[:HEADS]:
        verdict = licence(values, term, head)
        if verdict.licence < ASSUMES:
            return Equation(term, head, *verdict)
        found = found or Equation(term, head, *verdict)
    return found
