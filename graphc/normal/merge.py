"""Terms that are equal but for where they read and lie, in equal steps, are one with a label more.

sum_t A x_t, side by side or added up, for t = 0, 1, 2, ...: the rows of a batch, as an unrolled loop writes them
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from graphc.normal.affine import Index
from graphc.normal.form import Factor, Form, Term, collected, tidy

FEW = 3  # terms; two in the same places are any two


def merged(form: Form) -> Form:
    """`form` with fewer terms, if that can be."""
    if len(form.terms) < FEW:
        return form
    groups: dict[Any, list[Term]] = {}
    for t in form.terms:
        groups.setdefault(_shape_of(t), []).append(t)
    if max(map(len, groups.values())) < FEW:
        return form
    terms: list[Term | None] = []
    for group in groups.values():
        terms += _runs(group)
    return collected(form.shape, terms) if len(terms) < len(form.terms) else form


def _indices(t: Term) -> list[Index]:
    return [*t.places, *[place for f in t.factors for place in f.places]]


def _shape_of(t: Term) -> Any:
    """All of a term but its offsets. 1 is not 1.0 here."""
    return repr((t.coefficient, t.sizes, [f.atom for f in t.factors], [place.steps for place in _indices(t)]))


def _runs(group: Sequence[Term]) -> list[Term | None]:
    """The terms of a group, those in equal steps as one."""
    at = {tuple([place.offset for place in _indices(t)]): t for t in group}
    offsets = sorted(at)
    found: list[Term | None] = []
    first = 0
    while first < len(offsets):
        last = first + 1
        while last + 1 < len(offsets) and _step(offsets, last) == _step(offsets, first):
            last += 1
        if last - first + 1 >= FEW and last < len(offsets):
            found.append(_run(at[offsets[first]], _step(offsets, first), last - first + 1))
            first = last + 1
        else:
            found.append(at[offsets[first]])
            first += 1
    return found


def _step(offsets: Sequence[tuple[int, ...]], k: int) -> tuple[int, ...]:
    return tuple([b - a for a, b in zip(offsets[k], offsets[k + 1], strict=True)])


def _run(t: Term, step: Sequence[int], count: int) -> Term | None:
    """The sum of `count` terms, the first of which is `t`."""
    new = len(t.sizes)
    moved = iter([place + Index(0, ((new, s),)) if s else place for place, s in zip(_indices(t), step, strict=True)])
    places = [next(moved) for _ in t.places]
    factors = [Factor(f.atom, tuple([next(moved) for _ in f.places])) for f in t.factors]
    return tidy(t.coefficient, factors, places, (*t.sizes, count))
