"""Convolution with stride 1, in NumPy, as fast as its matrix products allow.

Padded images lie flat in memory, so that each tap of the window is the same run of numbers, shifted: collecting the
columns for a matrix product is a copy of long runs. The price is a few outputs at the border of rows and images that
are computed and dropped. Images are taken a few at a time, so that their columns stay in the cache.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import final

import numpy as np

Sizes = tuple[int, ...]
CACHED = 1 << 18  # numbers in the columns of one step


@final
class Slides:
    """The columns of images (N, C, *spatial) under a window, a few images at a time."""

    def __init__(self, x: np.ndarray, kernel: Sizes, padding: Sizes, dilation: Sizes):
        self.x = x
        n, c = x.shape[:2]
        spatial = x.shape[2:]
        self.size = tuple(s + 2 * p for s, p in zip(spatial, padding, strict=True))  # of a padded image
        self.out = tuple(s - d * (k - 1) for s, k, d in zip(self.size, kernel, dilation, strict=True))
        area, taps = math.prod(self.size), math.prod(kernel)
        self.step = max(1, min(n, CACHED // max(1, c * taps * area)))
        self.length = self.step * area
        shifts = [d * math.prod(self.size[i + 1 :]) for i, d in enumerate(dilation)]  # of one tap along each axis
        reach = sum((k - 1) * s for k, s in zip(kernel, shifts, strict=True))
        flat = np.zeros((c, self.length + reach), x.dtype)
        images = flat[:, : self.length].reshape(c, self.step, *self.size)
        self._inside = images[(..., *(slice(p, p + s) for p, s in zip(padding, spatial, strict=True)))]
        item = x.itemsize
        self._shifted = np.lib.stride_tricks.as_strided(
            flat, (c, *kernel, self.length), (flat.strides[0], *(s * item for s in shifts), item), writeable=False
        )
        self._columns = np.empty(self._shifted.shape, x.dtype)
        self.flat_columns = self._columns.reshape(c, taps, self.length)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Fill `flat_columns` for images first to last; gives (first, last)."""
        n = self.x.shape[0]
        for first in range(0, n, self.step):
            last = min(first + self.step, n)
            self._inside[:, : last - first] = self.x[first:last].swapaxes(0, 1)
            np.copyto(self._columns, self._shifted)
            yield first, last

    def outputs(self, flat: np.ndarray, count: int) -> np.ndarray:
        """The part of (rows, length) that belongs to outputs, as a view (count, rows, *out)."""
        images = flat.reshape(flat.shape[0], self.step, *self.size)
        return images[(slice(None), slice(count), *map(slice, self.out))].swapaxes(0, 1)

    def of_group(self, group: int, groups: int) -> np.ndarray:
        """The columns of one group of channels, (C / groups * taps, length)."""
        c, taps, length = self.flat_columns.shape
        width = c // groups
        return self.flat_columns[group * width : (group + 1) * width].reshape(width * taps, length)


def conv(x: np.ndarray, w: np.ndarray, padding: Sizes, dilation: Sizes, groups: int) -> np.ndarray:
    """Cross-correlation of x (N, C, *spatial) with w (O, C / groups, *kernel)."""
    o = w.shape[0]
    rows = w.reshape(groups, o // groups, -1)
    slides = Slides(x, w.shape[2:], padding, dilation)
    result = np.empty((x.shape[0], o, *slides.out), x.dtype)
    product = np.empty((o, slides.length), x.dtype)
    by_group = product.reshape(groups, o // groups, slides.length)
    for first, last in slides:
        for k in range(groups):
            np.dot(rows[k], slides.of_group(k, groups), out=by_group[k])
        result[first:last] = slides.outputs(product, last - first)
    return result


def conv_input(g: np.ndarray, w: np.ndarray, around: Sizes, dilation: Sizes, groups: int) -> np.ndarray:
    """The gradient of `conv` with respect to x, for cotangent g (N, O, *out): g under the window turned round.

    around: what is left of the window around its first tap, less the padding: the padding that g needs.
    """
    o, width = w.shape[:2]
    kernel = w.shape[2:]
    turned = w[(slice(None), slice(None), *(slice(None, None, -1) for _ in kernel))]
    turned = turned.reshape(groups, o // groups, width, *kernel).swapaxes(1, 2)
    return conv(g, np.ascontiguousarray(turned).reshape(groups * width, o // groups, *kernel), around, dilation, groups)


def conv_weight(
    g: np.ndarray, x: np.ndarray, kernel: Sizes, padding: Sizes, dilation: Sizes, groups: int
) -> np.ndarray:
    """The gradient of `conv` with respect to w, for cotangent g (N, O, *out)."""
    o, width = g.shape[1], x.shape[1] // groups
    slides = Slides(x, kernel, padding, dilation)
    spread = np.zeros((o, slides.length), g.dtype)
    by_group = spread.reshape(groups, o // groups, slides.length)
    total = np.zeros((groups, width * math.prod(kernel), o // groups), g.dtype)
    for first, last in slides:
        if last - first < slides.step:
            spread[...] = 0
        slides.outputs(spread, last - first)[...] = g[first:last]
        for k in range(groups):
            total[k] += np.dot(slides.of_group(k, groups), by_group[k].T)  # a quarter faster than its transpose
    return np.ascontiguousarray(total.swapaxes(1, 2)).reshape(o, width, *kernel)
