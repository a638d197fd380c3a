"""Terms that are equal but for where they read and lie, in equal steps, are one with a label more.

sum_t A x_t, side by side or added up, for t = 0, 1, 2, ...: the rows of a batch, as an unrolled loop writes them. If
they are scaled, sum_t c_t A x_t, a vector of these numbers is one more factor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from graphc.normal.affine import Index, Unsolved, label
from graphc.normal.emit import digits
from graphc.normal.form import Factor, Form, Term, collected, tidy

FEW = 3  # terms; two in the same places are any two


def merged(form: Form, name: Callable[[Form], int]) -> Form:
    """`form` with fewer terms, if that can be. name: gives an atom to a form, here a vector of numbers."""
    if len(form.terms) < FEW:
        return form
    groups: dict[Any, list[Term]] = {}
    for t in form.terms:
        groups.setdefault(_shape_of(t), []).append(t)
    if max(map(len, groups.values())) < FEW:
        return form
    terms: list[Term | None] = []
    for group in groups.values():
        alike: dict[str, list[Term]] = {}
        for t in group:
            alike.setdefault(repr(t.coefficient), []).append(t)  # 1 is not 1.0 here
        runs = [run for own in alike.values() for run in _runs(own, name)]
        scaled = _runs(group, name) if len(runs) >= FEW else runs
        terms += min(runs, scaled, key=len)
    return collected(form.shape, terms) if len(terms) < len(form.terms) else form


def _indices(t: Term) -> list[Index]:
    return [*t.places, *[place for f in t.factors for place in f.places]]


def _shape_of(t: Term) -> Any:
    """All of a term but its offsets and its coefficient."""
    return t.sizes, tuple([f.atom for f in t.factors]), tuple([place.steps for place in _indices(t)])


def _runs(group: Sequence[Term], name: Callable[[Form], int]) -> list[Term | None]:
    """The terms of a group, those in equal steps as one."""
    at = {tuple([place.offset for place in _indices(t)]): t for t in group}
    if len(at) < len(group):
        return [*group]  # 1 x and 1.0 x
    offsets = sorted(at)
    found: list[Term | None] = []
    first = 0
    while first < len(offsets):
        last = first + 1
        while last + 1 < len(offsets) and _step(offsets, last) == _step(offsets, first):
            last += 1
        if last - first + 1 >= FEW and last < len(offsets):
            own = [at[offset] for offset in offsets[first : last + 1]]
            found += _run(own, _step(offsets, first), name)
            first = last + 1
        else:
            found.append(at[offsets[first]])
            first += 1
    return found


def _step(offsets: Sequence[tuple[int, ...]], k: int) -> tuple[int, ...]:
    return tuple([b - a for a, b in zip(offsets[k], offsets[k + 1], strict=True)])


def _run(run: Sequence[Term], step: Sequence[int], name: Callable[[Form], int]) -> list[Term | None]:
    """The sum of terms in equal steps."""
    t, new = run[0], len(run[0].sizes)
    moved = [place + Index(0, ((new, s),)) if s else place for place, s in zip(_indices(t), step, strict=True)]
    at = iter(moved)
    places = [next(at) for _ in t.places]
    factors = [Factor(f.atom, tuple([next(at) for _ in f.places])) for f in t.factors]
    sizes = (*t.sizes, len(run))
    if all(repr(other.coefficient) == repr(t.coefficient) for other in run):
        return [tidy(t.coefficient, factors, places, sizes)]
    try:
        for place in moved:
            digits(place, sizes)
    except Unsolved:  # windows that overlap are a sum of slices, for which there is no product
        return [*run]
    numbers = [tidy(other.coefficient, [], [Index(k)], ()) for k, other in enumerate(run)]
    return [tidy(1, [*factors, Factor(name(collected((len(run),), numbers)), (label(new),))], places, sizes)]
