"""Which products of a term's factors are worth a look: those of factors that labels connect.

Sets of factors are numbers with a bit for each. A path of n factors, as a chain of matrices is, has n (n + 1) / 2
connected sets, of the 2^n. Factors that share no label are multiplied with each other only when all that belongs to one
of them is together: x'y is a number, which may scale anything.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

FEW = 4  # factors, of which all products are looked at
MOST = 1023  # sets


class Split(NamedTuple):
    """A set of factors, and the parts with its lowest factor that are multiplied with what is left of it."""

    whole: int
    parts: tuple[int, ...]


def beside(labels: Sequence[frozenset[int]]) -> tuple[int, ...]:
    """For each factor, the set of those that share a label with it, and itself."""
    return tuple([sum([1 << j for j, b in enumerate(labels) if j == k or a & b]) for k, a in enumerate(labels)])


@functools.lru_cache(maxsize=1 << 12)
def connected(near: tuple[int, ...]) -> tuple[int, ...] | None:
    """The sets that are connected, in order; `near` is from `beside`. None if there are too many."""
    found: set[int] = set()
    grown = {1 << k for k in range(len(near))}
    while grown:
        found |= grown
        if len(found) > MOST:
            return None
        grown = {s | 1 << k for s in grown for k in _members(_around(s, near) & ~s)} - found
    return tuple(sorted(found))


@functools.lru_cache(maxsize=1 << 12)
def splits(near: tuple[int, ...]) -> tuple[Split, ...] | None:
    """How sets of several factors are made, smaller ones first. None if there are too many."""
    n = len(near)
    if n <= FEW:
        sets: tuple[int, ...] | None = tuple(range(1, 1 << n))
    else:
        sets = connected(near)
        pieces = _pieces(near)
        if sets is None or len(sets) << len(pieces) - 1 > MOST:
            return None
        for piece in pieces if len(pieces) > 1 else ():
            sets = tuple(sorted({*sets, *[s | piece for s in sets]}))
    lowest: dict[int, list[int]] = {}
    for s in sets:
        lowest.setdefault(s & -s, []).append(s)
    known = frozenset(sets)
    return tuple(
        [
            Split(s, tuple([p for p in reversed(lowest[s & -s]) if p & ~s == 0 and p != s and s ^ p in known]))
            for s in sets
            if s & (s - 1)
        ]
    )


def _members(s: int) -> list[int]:
    return [k for k in range(s.bit_length()) if s >> k & 1]


def _around(s: int, near: Sequence[int]) -> int:
    found = 0
    for k in _members(s):
        found |= near[k]
    return found


def _pieces(near: Sequence[int]) -> list[int]:
    """The sets that nothing connects."""
    pieces: list[int] = []
    left = (1 << len(near)) - 1
    while left:
        piece, grown = 0, left & -left
        while grown != piece:
            piece, grown = grown, _around(grown, near)
        pieces.append(piece)
        left &= ~piece
    return pieces
