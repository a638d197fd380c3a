"""Strides, in elements: of contiguous arrays, and of views of others."""

from __future__ import annotations

from typing import Any

import numpy as np

from graphc.ops.aval import Aval
from graphc.ops.dims import has_dim

Strides = tuple[int, ...] | None  # None: row-major
Place = tuple[Strides, int | None]  # how a view lies, and how far from the first element of the whole (see `Lens.lies`)


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


def of_reshaped(whole: Aval, strides: Strides, shape: tuple[int, ...]) -> Place | None:
    if strides is None:
        return None, 0
    found = reshaped(whole.shape, strides, shape)
    return None if found is None else (normal(shape, found), 0)


def of_permuted(whole: Aval, strides: Strides, dims: tuple[int, ...]) -> Place:
    shape, steps = whole.shape, strides or row_major(whole.shape)
    return normal(tuple(shape[i] for i in dims), tuple(steps[i] for i in dims)), 0


def of_repeated(whole: Aval, strides: Strides, shape: tuple[int, ...]) -> Place:
    before = whole.shape
    new, steps = len(shape) - len(before), strides or row_major(before)
    found = (s if n == m else 0 for s, n, m in zip(steps, before, shape[new:], strict=True))
    return normal(shape, (*(0,) * new, *found)), 0


def of_slice(whole: Aval, strides: Strides, start: Any, stop: Any, step: Any) -> Place:
    shape, steps = whole.shape, strides or row_major(whole.shape)
    extents = tuple(max(0, -(-(b - a) // s)) for a, b, s in zip(start, stop, step, strict=True))
    first = None if has_dim(shape) else sum(a * s for a, s in zip(start, steps, strict=True))
    return normal(extents, tuple(a * b for a, b in zip(steps, step, strict=True))), first


def of_numbered(whole: Aval, strides: Strides, spec: tuple[int | None, ...]) -> Place:
    """Of x[i] by numbers, which take away their dims."""
    shape, steps = whole.shape, strides or row_major(whole.shape)
    kept = [k for k in range(len(shape)) if k >= len(spec) or spec[k] is None]
    return normal(tuple(shape[k] for k in kept), tuple(steps[k] for k in kept)), None


def of_real(whole: Aval, strides: Strides) -> Place:
    steps = strides or row_major(whole.shape)
    return normal(whole.shape, tuple(2 * s for s in steps)), 0


def of_imag(whole: Aval, strides: Strides) -> Place:
    return of_real(whole, strides)[0], 1


def of_pairs(whole: Aval, strides: Strides) -> Place:
    """Of the numbers that complex ones are made of, in an axis of their own."""
    steps = strides or row_major(whole.shape)
    return normal((*whole.shape, 2), (*(2 * s for s in steps), 1)), 0


def of_joined(whole: Aval, strides: Strides) -> Place | None:
    """Of pairs as complex numbers."""
    if strides is None:
        return None, 0
    *steps, last = strides
    if last != 1 or any(s % 2 for s in steps):
        return None
    return normal(whole.shape[:-1], tuple(s // 2 for s in steps)), 0


def of_bits(whole: Aval, strides: Strides, dtype: np.dtype) -> Place | None:
    """Of the same bytes as another dtype."""
    old, new = whole.dtype.itemsize, dtype.itemsize
    if old == new or strides is None:
        return strides, 0
    *steps, last = strides
    if last != 1 or any(s * old % new for s in steps):
        return None
    shape = (*whole.shape[:-1], whole.shape[-1] * old // new)
    return normal(shape, (*(s * old // new for s in steps), 1)), 0
