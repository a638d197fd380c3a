"""What convolution and pooling mean: loops over windows and the elements that each meets.

References (see graphc.ops.references), which share nothing with the kernels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from graphc.ops import rows, scalars
from graphc.ops.index_maps import Place, Shape, place, position
from graphc.ops.references import everywhere

Window = tuple[Place, list[tuple[Place, Place]]]  # its place, and (tap, place in the image) of what it meets


def _windows(
    shape: Shape, kernel: Shape, stride: Shape, padding: Any, dilation: Shape | None = None
) -> Iterator[Window]:
    """The windows of an image of `shape`, in order; `padding` for each axis one number, or (before, after)."""
    steps = dilation or (1,) * len(kernel)
    borders = [p if isinstance(p, tuple) else (p, p) for p in padding]
    out = [
        len(range(0, n + sum(p) - d * (k - 1), s))
        for n, p, d, k, s in zip(shape, borders, steps, kernel, stride, strict=True)
    ]
    for at in np.ndindex(*out):
        first = [k * s - before for k, s, (before, _) in zip(at, stride, borders, strict=True)]
        taps = [
            (tap, tuple(a + t * d for a, t, d in zip(first, tap, steps, strict=True))) for tap in np.ndindex(kernel)
        ]
        yield at, [(t, p) for t, p in taps if all(0 <= k < n for k, n in zip(p, shape, strict=True))]


def _terms(
    x: Shape, w: Shape, stride: Shape, padding: Shape, dilation: Shape, groups: int
) -> Iterator[tuple[Place, Place, Place]]:
    """Places (result, image, weight) of all products that a convolution adds up."""
    each = w[0] // groups
    for at, met in _windows(x[2:], w[2:], stride, padding, dilation):
        for n, o, c in np.ndindex(x[0], w[0], w[1]):
            for tap, there in met:
                yield (n, o, *at), (n, o // each * w[1] + c, *there), (o, c, *tap)


def convolved(x: np.ndarray, w: np.ndarray, **window: Any) -> np.ndarray:
    terms = list(_terms(x.shape, w.shape, **window))
    out = [1 + max(at[k] for at, _, _ in terms) for k in range(2, x.ndim)] if terms else [0] * (x.ndim - 2)
    result = np.zeros((x.shape[0], w.shape[0], *out), np.result_type(x, w))
    for at, there, tap in terms:
        result[at] += x[there] * w[tap]
    return result


def convolved_back(g: np.ndarray, w: np.ndarray, shape: Shape, **window: Any) -> np.ndarray:
    """The gradient of a convolution with respect to its image."""
    result = np.zeros(shape, np.result_type(g, w))
    for at, there, tap in _terms(shape, w.shape, **window):
        result[there] += g[at] * w[tap]
    return result


def convolved_weight(g: np.ndarray, x: np.ndarray, shape: Shape, **window: Any) -> np.ndarray:
    """The gradient of a convolution with respect to its weight."""
    result = np.zeros(shape, np.result_type(g, x))
    for at, there, tap in _terms(x.shape, shape, **window):
        result[tap] += g[at] * x[there]
    return result


def _pooled(x: np.ndarray, window: Any, of: Callable[[Place, list[Place]], Any], dtype: Any) -> np.ndarray:
    """`of(image, places)` for each window of each image; what is beyond the image is none of the places."""
    found: dict[Place, Any] = {}
    for at, met in _windows(x.shape[2:], **window):
        for image in np.ndindex(x.shape[:2]):
            found[(*image, *at)] = of(image, [there for _, there in met])
    size = [1 + max(at[k] for at in found) for k in range(x.ndim)] if found else [0] * x.ndim
    result = np.zeros(size, dtype)
    for at, value in found.items():
        result[at] = value
    return result


def _winner(x: np.ndarray, image: Place, met: list[Place]) -> Place:
    """The first place of the largest, or the last nan."""
    values = [x[(*image, *there)].item() for there in met]
    odd = [k for k, v in enumerate(values) if v != v]
    return met[odd[-1] if odd else values.index(max(values))]


@everywhere
def largest(x: np.ndarray, **window: Any) -> np.ndarray:
    return _pooled(x, window, lambda image, met: x[(*image, *_winner(x, image, met))], x.dtype)


@everywhere
def place_of_largest(x: np.ndarray, **window: Any) -> np.ndarray:
    return _pooled(x, window, lambda image, met: position(_winner(x, image, met), x.shape[2:]), np.int64)


@everywhere
def picked(t: np.ndarray, x: np.ndarray, **window: Any) -> np.ndarray:
    """The element of t where each window of x has its largest."""
    return _pooled(x, window, lambda image, met: t[(*image, *_winner(x, image, met))], t.dtype)


@everywhere
def spread(g: np.ndarray, x: np.ndarray, **window: Any) -> np.ndarray:
    """The transpose of `picked`."""
    result = np.zeros(x.shape, g.dtype)
    for at in np.ndindex(g.shape):
        number = int(_number_of(x, at, window))
        result[(*at[:2], *place(number, x.shape[2:]))] += g[at]
    return result


def _number_of(x: np.ndarray, at: Place, window: Any) -> int:
    for here, met in _windows(x.shape[2:], **window):
        if here == at[2:]:
            return position(_winner(x, at[:2], [there for _, there in met]), x.shape[2:])
    raise ValueError("no such window")


@everywhere
def averaged(x: np.ndarray, kernel: Shape, **window: Any) -> np.ndarray:
    """The mean of each window, where padding counts as zeros; of integers without what is behind the point."""
    size = math.prod(kernel)

    def mean(image: Place, met: list[Place]) -> Any:
        total = rows.total([x[(*image, *there)].item() for there in met])
        return math.trunc(total / size) if isinstance(total, int) else scalars.quotient(total, size)

    return _pooled(x, {"kernel": kernel, **window}, mean, x.dtype)


@everywhere
def averaged_back(g: np.ndarray, shape: Shape, kernel: Shape, **window: Any) -> np.ndarray:
    """The transpose of `averaged`."""
    result = np.zeros(shape, g.dtype)
    for at, met in _windows(shape[2:], kernel, **window):
        for image in np.ndindex(shape[:2]):
            for _, there in met:
                result[(*image, *there)] += g[(*image, *at)] / math.prod(kernel)
    return result
