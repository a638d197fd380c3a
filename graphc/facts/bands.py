"""Where a matrix has anything but zeros: how many diagonals below and above the main one.

Of a term of a form, its places say it: the column less the row is a sum of labels with strides, which has a range. What
is known of its factors are inequalities between labels; a product of triangles is a path of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from graphc.ir import Node
from graphc.normal.affine import Index
from graphc.normal.form import Form, Term
from graphc.ops import Trait


class Band(NamedTuple):
    """Element (i, j) is zero unless -below <= j - i <= above. Negative: not even the main diagonal."""

    below: int
    above: int


def leaves_triangle(node: Node) -> bool:
    """Whether a node leaves a triangle of its operand, and zeros elsewhere."""
    return node.op.band is not None and bool(node.op.traits & Trait.LINEAR)


def whole(shape: tuple[int, ...]) -> Band:
    """Of a matrix of which nothing is known."""
    return Band(shape[-2] - 1, shape[-1] - 1)


def left_by(node: Node) -> Band:
    """Which diagonals of its operand a node leaves that leaves a triangle."""
    assert node.op.band is not None
    return Band(*node.op.band(node.shape, node.params, whole(node.shape)))


def both(a: Band, b: Band) -> Band:
    """Of a matrix of which two are known."""
    return Band(min(a.below, b.below), min(a.above, b.above))


def nonzeros(array: np.ndarray) -> Band:
    """Of a matrix that is known."""
    rows, columns = np.nonzero(array)
    return Band(int((rows - columns).max()), int((columns - rows).max())) if rows.size else Band(0, 0)


def solid(array: np.ndarray) -> Band | None:
    """Where a known matrix has ones, if that is a band without holes, and it has zeros elsewhere."""
    band, offsets = nonzeros(array), np.subtract.outer(-np.arange(array.shape[0]), -np.arange(array.shape[1]))
    return band if np.array_equal(array, (offsets >= -band.below) & (offsets <= band.above)) else None


def band_of(form: Form, atoms: Callable[[int], Band | None]) -> Band:
    """Of a matrix. `atoms`: that of each matrix in the form, where it is known."""
    least = whole(form.shape)
    found = [_band_of(term, atoms) for term in form.terms]
    if not found:
        return Band(0, 0)
    return Band(*[min(n, max(parts)) for n, parts in zip(least, zip(*found, strict=True), strict=True)])


def _band_of(term: Term, atoms: Callable[[int], Band | None]) -> Band:
    row, column = term.places
    low, high = extent(column + row * -1, term.sizes)
    below, above = -low, high
    ends = [_single(place) for place in (row, column)]
    if ends[0] is not None and ends[1] is not None:
        shift = ends[1][1] - ends[0][1]
        limits = _limits(term, atoms)
        start, stop = ends[0][0], ends[1][0]
        above = min(above, limits.get((start, stop), above) + shift)
        below = min(below, limits.get((stop, start), below) - shift)
    return Band(below, above)


def extent(index: Index, sizes: tuple[int, ...]) -> tuple[int, int]:
    """The least and the largest place that labels lead to."""
    low = index.offset + sum([min(0, stride * (sizes[k] - 1)) for k, stride in index.steps])
    high = index.offset + sum([max(0, stride * (sizes[k] - 1)) for k, stride in index.steps])
    return low, high


def _single(place: Index) -> tuple[int, int] | None:
    """(label, offset) of a place that a label alone moves, by one."""
    if len(place.steps) == 1 and place.steps[0][1] == 1:
        return place.steps[0][0], place.offset
    return None


def _limits(term: Term, atoms: Callable[[int], Band | None]) -> Mapping[tuple[int, int], int]:
    """For pairs of labels (a, b) the most that b - a can be, by the factors: the shortest paths."""
    most: dict[tuple[int, int], int] = {(k, k): 0 for k in range(len(term.sizes))}
    for factor in term.factors:
        known = atoms(factor.atom) if len(factor.places) == 2 else None
        ends = [_single(place) for place in factor.places]
        if known is None or ends[0] is None or ends[1] is None:
            continue
        (i, di), (j, dj) = ends[0], ends[1]
        for pair, limit in (((i, j), known.above + di - dj), ((j, i), known.below - di + dj)):
            most[pair] = min(most.get(pair, limit), limit)
    labels = range(len(term.sizes))
    for via in labels:
        for a in labels:
            for b in labels:
                if (a, via) in most and (via, b) in most:
                    limit = most[a, via] + most[via, b]
                    most[a, b] = min(most.get((a, b), limit), limit)
    return most
