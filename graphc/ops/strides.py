"""Strides, in elements: of contiguous arrays, and of views of others."""

from __future__ import annotations

import numpy as np

Strides = tuple[int, ...] | None  # None: row-major


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides, in elements, of a contiguous array."""
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


def reshaped(shape: tuple[int, ...], strides: tuple[int, ...], wanted: tuple[int, ...]) -> tuple[int, ...] | None:
    """The strides of the view of shape `wanted` of an array with `strides`; None if there is no such view."""
    if not shape or 0 in shape:
        return row_major(wanted)
    found: list[int] = []
    rest, base = list(wanted), strides[-1]
    size = made = 1  # elements of a run of dims that lie behind one another, and of the dims made of it
    for d in reversed(range(len(shape))):
        size *= shape[d]
        if d and (shape[d - 1] == 1 or strides[d - 1] == size * base):
            continue
        while rest and (made < size or rest[-1] == 1):
            found.append(made * base)
            made *= rest.pop()
        if made != size:
            return None
        base, size, made = strides[d - 1], 1, 1
    return None if rest else tuple(reversed(found))


def normal(shape: tuple[int, ...], strides: tuple[int, ...]) -> Strides:
    """`strides`, or None if they are row-major; those of dims of size 1 do not matter."""
    plain = row_major(shape)
    same = all(a == b or n == 1 for n, a, b in zip(shape, strides, plain, strict=True)) or 0 in shape
    return None if same else tuple(strides)


def strides_of(array: np.ndarray) -> Strides:
    """The strides of a concrete array."""
    return normal(array.shape, tuple(step // array.itemsize for step in array.strides))
