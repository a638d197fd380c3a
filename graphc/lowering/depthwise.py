"""Convolutions with few channels in each of their groups, on the CPU: sums over the taps of a window.

Each kernel that XLA compiles takes it some 20 ms, and more with each tap that it has. So a loop passes over the first
dimension of the window, and only the taps along the others stand side by side in its kernel. What a tap meets is cut
from the image as one dynamic slice: a slice of a slice is not vectorized. The gradient for images is such a sum too,
with the same kernels; that for weights is a loop over rows of the image, whose sums stay in the cache.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from graphc.lowering.taps import Sizes

FEW = 64  # numbers that a window meets, if a group has several channels
TAPS = 8  # side by side in one kernel, if those of more than one row are there
CACHED = 2**14  # numbers that a pass over a row adds to


def fits(shape: Sizes, groups: int) -> bool:
    """Whether weights of `shape` have few channels in a group, so that sums over their taps take the least time."""
    return groups > 1 and (shape[1] == 1 or math.prod(shape[1:]) <= FEW)


def summed(x: Any, w: Any, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int) -> Any:
    sizes = zip(x.shape[1:-1], w.shape[2:], stride, padding, dilation, strict=True)
    out = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d in sizes]
    return _sums(_padded(x, [(p, p) for p in padding]), _by_tap(w, groups), out, stride, dilation).astype(x.dtype)


def summed_input(g: Any, w: Any, shape: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int) -> Any:
    """The gradient of `summed` with respect to an x of `shape`: the taps in reverse, over g with its elements apart."""
    over = zip(shape[1:-1], g.shape[1:-1], w.shape[2:], stride, padding, dilation, strict=True)
    borders = [(d * (k - 1) - p, n - 1 + p - (m - 1) * s) for n, m, k, s, p, d in over]
    parts = w.reshape(groups, -1, *w.shape[1:])
    turned = lax.rev(jnp.swapaxes(parts, 1, 2), range(3, parts.ndim)).reshape(shape[-1], -1, *w.shape[2:])
    once = (1,) * len(stride)
    apart = _padded(g, borders, [s - 1 for s in stride])
    return _sums(apart, _by_tap(turned, groups), shape[1:-1], once, dilation).astype(g.dtype)


def _sums(padded: Any, weights: Any, out: Any, stride: Sizes, dilation: Sizes) -> Any:
    """The sums over the taps of `weights`, as (C / groups, *kernel, groups, results), in an image of the size `out`."""
    (channels, *kernel, groups, results), n = weights.shape, padded.shape[0]
    spans = [(m - 1) * s + 1 for m, s in zip(out, stride, strict=True)]
    each, several = _dim(channels), _dim(results)
    padded = padded.reshape(*padded.shape[:-1], groups, *each)
    weights = weights.reshape(*each, *kernel, groups, *several)
    many = _divisor(kernel[0], TAPS // (channels * math.prod(kernel[1:])))

    def add(number: Any, total: Any) -> Any:
        for channel, k, *tap in itertools.product(range(channels), range(many), *map(range, kernel[1:])):
            row = number * np.uint32(many) + np.uint32(k)
            at = [a * d for a, d in zip(tap, dilation[1:], strict=True)]
            one = (channel,) * len(each)
            met = _cut(padded, (0, row * np.uint32(dilation[0]), *at, 0, *one), (n, *spans, groups, *_ones(each)))
            met = lax.slice(met, _zeros(met.shape), met.shape, (1, *stride, 1, *_ones(each)))
            by = _cut(weights, (*one, row, *tap, 0, *_zeros(several)), (*_ones(each), *_ones(out), groups, *several))
            met, by = met.reshape(n, *out, groups, *_ones(several)), by.reshape(groups, *several)
            total = total + met * by
        return total

    total = _repeated(kernel[0] // many, add, jnp.zeros((n, *out, groups, *several), padded.dtype))
    return total.reshape(n, *out, groups * results)


def summed_weight(g: Any, x: Any, shape: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int) -> Any:
    """The gradient of `summed` with respect to a w of `shape`."""
    each, several = _dim(shape[1]), _dim(shape[0] // groups)
    padded = _padded(x, [(p, p) for p in padding])
    padded = padded.reshape(*padded.shape[:-1], groups, *each)
    n, *out = g.shape[:-1]
    g = g.astype(padded.dtype).reshape(n, *out, groups, *several)
    *above, width = shape[2:]
    height = above[-1:]
    del above[-1:]
    # a block: what a window meets from row to row, of some images or at some places, with one of the taps along a row
    most = CACHED // (math.prod(height) * math.prod(shape[:2]))
    part = _divisor(out[-1], most)
    if part < min(most, out[-1]) // 8:  # hardly any divisor: better too many numbers than too many blocks
        part = out[-1]
    images = _divisor(n, most // part) if part == out[-1] else 1
    counts = (n // images, *out[:-1], out[-1] // part, *above, width)
    block = (images, *height, part, groups)
    held = (*block, *several, *each)
    spans = [(k - 1) * d + 1 for k, d in zip(height, dilation[-2:-1], strict=True)]
    sizes = (images, *_ones(above), *spans, (part - 1) * stride[-1] + 1, groups, *each)
    steps = (1, *_ones(above), *dilation[-2:-1], stride[-1], 1, *_ones(each))

    def add(number: Any, total: Any) -> Any:
        image, *place = _unravelled(number, counts)
        place, taps = place[: len(out)], place[len(out) :]
        image, place[-1] = image * np.uint32(images), place[-1] * np.uint32(part)
        at = [a * np.uint32(s) for a, s in zip(place, stride, strict=True)]
        for k, tap in zip((*range(len(above)), -1), taps, strict=True):
            at[k] = at[k] + tap * np.uint32(dilation[k])
        met = _cut(padded, (image, *at, 0, *_zeros(each)), sizes)
        met = lax.slice(met, _zeros(sizes), sizes, steps).reshape(*block, *_ones(several), *each)
        given = _cut(g, (image, *place, 0, *_zeros(several)), (images, *_ones(out[:-1]), part, groups, *several))
        given = given.reshape(images, *_ones(height), part, groups, *several, *_ones(each))
        tap = (*taps, *_zeros(held))
        sum_ = _cut(total, tap, (*_ones(taps), *held)) + (met * given).reshape(*_ones(taps), *held)
        return lax.dynamic_update_slice(total, sum_, _places(tap), allow_negative_indices=False)

    total = _repeated(math.prod(counts), add, jnp.zeros((*above, width, *held), padded.dtype))
    along = len(above)
    by_tap = lax.reduce_sum(total, (along + 1, along + 2 + len(height)))
    by_tap = jnp.moveaxis(by_tap, along, along + len(height))
    return by_tap.reshape(math.prod(shape[2:]), -1).T.reshape(shape).astype(x.dtype)


def _dim(size: int) -> tuple[int, ...]:
    """A dimension of that `size`, unless it is 1: XLA copies arrays to change their dims of one."""
    return (size,) * (size > 1)


def _ones(sizes: Any) -> Sizes:
    return (1,) * len(sizes)


def _zeros(sizes: Any) -> Sizes:
    return (0,) * len(sizes)


def _padded(x: Any, borders: Sequence[tuple[int, int]], between: Sequence[int] = ()) -> Any:
    """x with zeros around, and some `between` its elements."""
    between = between or [0] * len(borders)
    around = [(0, 0, 0), *((a, b, c) for (a, b), c in zip(borders, between, strict=True)), (0, 0, 0)]
    return lax.pad(exact(x), np.zeros((), exact(x).dtype), around)


def _by_tap(w: Any, groups: int) -> Any:
    """Weights as (C / groups, *kernel, groups, results): XLA's loops run over the last dimensions."""
    return exact(w).reshape(w.shape[0], -1).T.reshape(*w.shape[1:], groups, -1)


def exact(x: Any) -> Any:
    """x in a type whose sums lose little."""
    return x.astype(jnp.promote_types(x.dtype, jnp.float32)) if x.dtype.itemsize == 2 else x


def _repeated(count: int, step: Callable[[Any, Any], Any], value: Any) -> Any:
    """`step` of each number below `count` and the value so far. Unsigned: no place counts from the end."""
    if count == 1:
        return step(np.uint32(0), value)
    return lax.fori_loop(0, count, lambda number, value: step(number.astype(np.uint32), value), value)


def _unravelled(number: Any, counts: Sizes) -> Iterator[Any]:
    """The place with that `number` in an array of the shape `counts`."""
    places = []
    for count in reversed(counts[1:]):
        places.append(number % np.uint32(count) if count > 1 else 0 * number)
        number = number // np.uint32(count) if count > 1 else number
    return iter((number, *reversed(places)))


def _places(starts: Any) -> list[Any]:
    return [np.uint32(a) if isinstance(a, int) else a for a in starts]


def _cut(x: Any, starts: Any, sizes: Sizes) -> Any:
    return lax.dynamic_slice(x, _places(starts), sizes, allow_negative_indices=False)


def _divisor(number: int, most: int) -> int:
    """The largest divisor of `number` that is at most `most`, or 1."""
    return max(d for d in range(1, number + 1) if number % d == 0 and d <= max(most, 1))
