"""Sorting by keys: integers in the order of the elements, with the place of each in their low bits.

Sorts of integers alone are vectorized, in NumPy as in XLA; those that carry a second array along, or compare numbers by
a function, are five times slower.
"""

from __future__ import annotations

from typing import Any

import numpy as np

INT64 = np.dtype(np.int64)
SMALL = 2**11  # elements, below which NumPy has sorted before keys are made
SHORT = 16  # the same of rows, and of rows four times as long if elements have 64 bits
PART = 4  # a search for the first elements pays up to this part of a row
_PLACES = 0xFFFFFFFF  # the low half of a packed key


def keys(xp: Any, x: Any) -> Any:
    """Signed integers of the size of the elements, in their order: nan is the largest, and -0 equals 0."""
    kind, size = x.dtype.kind, x.dtype.itemsize
    signed = np.dtype(f"i{size}")
    if kind == "i":
        return x
    if kind == "b":
        return x.astype(signed)
    least, most = (signed.type(getattr(np.iinfo(signed), name)) for name in ("min", "max"))
    bits = x.view(signed)
    if kind == "u":
        return bits ^ least
    infinity = signed.type(np.array(np.inf, x.dtype).view(signed))
    size_of = bits & most
    # the bits of a negative number but for its sign, inverted: -1 comes after -2
    ordered = bits ^ ((bits >> signed.type(8 * size - 1)) & most)
    return xp.where(size_of > infinity, most, xp.where(bits == least, signed.type(0), ordered))


def packed(xp: Any, key: Any, axis: int) -> Any:
    """64 bits for each key of at most 32: the key, and its place along `axis`, which tells equal ones apart."""
    places = xp.arange(key.shape[axis], dtype=INT64).reshape([-1 if d == axis else 1 for d in range(key.ndim)])
    return (key.astype(INT64) << INT64.type(32)) | places


def places_in(found: Any) -> Any:
    """The places in packed keys."""
    return found & INT64.type(_PLACES)


def order(x: np.ndarray, axis: int, descending: bool, first: int | None = None) -> np.ndarray:
    """The places that put `x` in order along `axis`, or the `first` so many of them. Equal elements keep theirs."""
    axis %= x.ndim
    n = x.shape[axis]
    wanted = n if first is None else min(first, n)
    wide = x.dtype.itemsize == 8
    if x.size < SMALL or n < (4 * SHORT if wide else SHORT) or n > _PLACES:
        return _head(_stable(x, axis, descending), axis, wanted)
    key = keys(np, x)
    key = ~key if descending else key
    if 0 < wanted < n // PART:
        return _few(key, axis, wanted)
    if wide:
        return _head(_of_wide(key, axis), axis, wanted)
    both = packed(np, key, axis)
    both.sort(axis)
    return _head(places_in(both), axis, wanted)


def place_of_rank(x: np.ndarray, axis: int, rank: int) -> np.ndarray | None:
    """Where along `axis`, which stays with size 1, the element of that rank is; None if one in a row has its equal."""
    equal = x == np.partition(x, rank, axis)[(slice(None),) * axis + (slice(rank, rank + 1),)]
    return equal.argmax(axis, keepdims=True) if np.count_nonzero(equal) * x.shape[axis] == x.size else None


def _few(key: np.ndarray, axis: int, count: int) -> np.ndarray:
    """The places of the `count` smallest keys: all up to the last of them, and these in order."""
    last = np.take(np.partition(key, count - 1, axis), [count - 1], axis)
    chosen = key <= last
    if np.count_nonzero(chosen) * key.shape[axis] != count * key.size:  # of those equal to the last, the first ones
        less, equal = key < last, key == last
        room = count - np.count_nonzero(less, axis, keepdims=True)
        chosen = less | (equal & (np.cumsum(equal, axis) <= room))
    rows = np.moveaxis(chosen, axis, -1)
    places = np.moveaxis(np.nonzero(rows)[-1].reshape(*rows.shape[:-1], count), -1, axis)
    found = np.argsort(np.take_along_axis(key, places, axis), axis, stable=True)
    return np.take_along_axis(places, found, axis)


def _head(x: np.ndarray, axis: int, count: int) -> np.ndarray:
    return x if count == x.shape[axis] else x[(slice(None),) * axis + (slice(count),)]


def _stable(x: np.ndarray, axis: int, descending: bool) -> np.ndarray:
    if not descending:
        return np.argsort(x, axis=axis, stable=True)
    # of the reversed array, last to first
    found = np.argsort(np.flip(x, axis), axis=axis, stable=True)
    return x.shape[axis] - 1 - np.flip(found, axis)


def _of_wide(key: np.ndarray, axis: int) -> np.ndarray:
    """Of keys of 64 bits: an order in which equal ones stand anywhere, and then those in the order of their places."""
    found = np.argsort(key, axis)
    in_order = np.take_along_axis(key, found, axis)
    rises = np.diff(in_order, axis=axis) != 0
    if rises.all():
        return found
    runs = np.zeros(key.shape, INT64)
    np.cumsum(rises, axis=axis, out=runs[(slice(None),) * axis + (slice(1, None),)])
    both = (runs << 32) | found
    both.sort(axis)
    return places_in(both)
