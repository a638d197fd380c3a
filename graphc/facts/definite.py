"""Which sums of products are positive semidefinite matrices, by their form.

A term M[i, j] = sum of f(i, k) S(k, l) f(j, l) is one if it is its own image under an exchange of labels, of i and j,
of k and l: factors are exchanged in pairs, or lie between a label and its image and are semidefinite themselves, or
have only labels that stay and no negative number. Products of the factors in between are Kronecker's or Schur's, both
of which keep what is semidefinite so.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from graphc.normal.affine import Index
from graphc.normal.form import Factor, Term

Exchange = Mapping[int, int]


class Asked(NamedTuple):
    """What is known of atoms: whether a matrix is semidefinite, whether no element of an array is negative."""

    semidefinite: Callable[[int], bool]
    nonnegative: Callable[[int], bool]


def semidefinite(term: Term, asked: Asked) -> bool:
    """Whether a term of a form, of a square matrix, is symmetric and positive semidefinite."""
    if isinstance(term.coefficient, complex) or term.coefficient < 0:
        return False
    row, column = term.places
    if row == column:  # a diagonal
        odd: set[Factor] = set()
        for factor in term.factors:
            odd ^= {factor}
        return all(asked.nonnegative(f.atom) for f in odd)
    exchange = _exchanged({}, row, column, term.sizes)
    return exchange is not None and _pairs(list(term.factors), exchange, [{*row.labels}], term, asked)


def centers(term: Term, rows: int) -> list[int] | None:
    """The matrices whose Kronecker product, perhaps with identities, a term of so many rows is; None for others."""
    row, column = term.places
    exchange = _exchanged({}, row, column, term.sizes)
    if exchange is None or row == column or not covers(row, term.sizes, rows):
        return None
    met: list[int] = []
    for f in term.factors:
        if len(f.places) != 2 or exchange.get(_label(f.places[0]), -1) != _label(f.places[1]):
            return None
        met += [_label(place) for place in f.places]
    met += [k for k in row.labels if exchange[k] == k]  # of identities
    whole = len(met) == len(set(met)) == len(term.sizes)
    return [f.atom for f in term.factors] if whole else None


def _label(place: Index) -> int:
    """The label that a place is; -2 where it is none."""
    return place.labels[0] if len(place.steps) == 1 and place.steps[0][1] == 1 and not place.offset else -2


def covers(place: Index, sizes: tuple[int, ...], n: int) -> bool:
    """Whether a place runs over each of n once."""
    stride = 1
    for k, step in reversed(place.steps):
        if step != stride:
            return False
        stride *= sizes[k]
    return stride == n and not place.offset


def _exchanged(known: Exchange, a: Index, b: Index, sizes: tuple[int, ...]) -> dict[int, int] | None:
    """`known` with what makes place `a` the image of `b`, and `b` of `a`; None if that cannot be."""
    found = dict(known)
    if a.offset != b.offset or [s for _, s in a.steps] != [s for _, s in b.steps]:
        return None
    for k, m in zip(a.labels, b.labels, strict=True):
        if sizes[k] != sizes[m] or found.setdefault(k, m) != m or found.setdefault(m, k) != k:
            return None
    return found


def _pairs(left: list[Factor], exchange: Exchange, together: list[set[int]], term: Term, asked: Asked) -> bool:
    """Whether the factors that are `left` can be paired under an exchange that goes on from this one.

    together: labels that are on one side, or stay
    """
    if not left:
        return _two_sides(exchange, together)
    moved = [f for f in left if any(exchange.get(k, k) != k for p in f.places for k in p.labels)]
    first, *_ = moved or left
    rest = list(left)
    rest.remove(first)
    labels = {k for p in first.places for k in p.labels}
    if len(first.places) == 2 and min(map(_label, first.places)) >= 0 and asked.semidefinite(first.atom):
        found = _exchanged(exchange, *first.places, term.sizes)
        if found is not None and _pairs(rest, found, together, term, asked):
            return True
    for k, other in enumerate(rest):
        if other.atom == first.atom:
            found: Exchange | None = exchange
            for a, b in zip(first.places, other.places, strict=True):
                found = None if found is None else _exchanged(found, a, b, term.sizes)
            others = [*rest[:k], *rest[k + 1 :]]
            if found is not None and _pairs(others, found, [*together, labels], term, asked):
                return True
    if all(exchange.get(m, m) == m for m in labels) and asked.nonnegative(first.atom):
        return _pairs(rest, {**exchange, **{m: m for m in labels}}, together, term, asked)
    return False


def _two_sides(exchange: Exchange, together: list[set[int]]) -> bool:
    """Whether no label is on one side with its image."""
    moving = [{k for k in group if exchange[k] != k} for group in together]
    moving += [{exchange[k] for k in group} for group in moving]
    sides: list[set[int]] = []
    for group in moving:
        met = [side for side in sides if side & group]
        sides = [side for side in sides if not side & group] + [group.union(*met)]
    return not any(exchange[k] in side for side in sides for k in side)
