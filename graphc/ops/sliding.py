"""Convolution with stride 1, in NumPy, as fast as its matrix products allow.

Padded images lie flat in memory, so that each tap of the window is the same run of numbers, shifted: collecting the
columns for a matrix product is a copy of long runs. The price is a few outputs at the border of rows and images that
are computed and dropped: few, since the zeros behind a row are those before the next one. Images are taken a few at a
time, so that their columns stay in the cache.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import final

import numpy as np

Sizes = tuple[int, ...]
CACHED = 1 << 18  # numbers in the columns of one step


@final
class Runs:
    """Where the pixels and the windows of images (N, C, *spatial) stand in flat memory, a few images at a time."""

    def __init__(self, shape: Sizes, kernel: Sizes, padding: Sizes, dilation: Sizes):
        self._count, channels, *spatial = shape
        self.spatial, self._padding, self.kernel = tuple(spatial), padding, kernel
        self.out = tuple(s + 2 * p - d * (k - 1) for s, p, k, d in zip(spatial, padding, kernel, dilation, strict=True))
        # from a row to the next: its zeros and its pixels, and a place for each window that begins in it
        size = [max(s + p, n) for s, p, n in zip(spatial, padding, self.out, strict=True)]
        area = math.prod(size)
        self.step = max(1, min(self._count, CACHED // max(1, channels * math.prod(kernel) * area)))
        self._steps = [area, *(math.prod(size[i + 1 :]) for i in range(len(size)))]  # of an image, a row, ...
        if self.step == 1:
            size[0] = self.out[0]
        self._grid = (self.step, *size)
        self.length = math.prod(self._grid)
        shifts = [d * step for d, step in zip(dilation, self._steps[1:], strict=True)]  # of one tap along each axis
        self._shifts = shifts
        reach = sum((k - 1) * s for k, s in zip(kernel, shifts, strict=True))
        last = [(p + s - 1) * step for p, s, step in zip(padding, spatial, self._steps[1:], strict=True)]
        self.total = max(self.length + reach, (self.step - 1) * area + sum(last) + 1)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """The first image of each step, and the first one behind it."""
        for first in range(0, self._count, self.step):
            yield first, min(first + self.step, self._count)

    def pixels(self, flat: np.ndarray) -> np.ndarray:
        """The images (step, C, *spatial) in `flat` (C, total), as a view."""
        before = sum(p * step for p, step in zip(self._padding, self._steps[1:], strict=True))
        item, (row, _) = flat.itemsize, flat.strides
        image, *steps = (step * item for step in self._steps)
        shape = (self.step, len(flat), *self.spatial)
        return np.lib.stride_tricks.as_strided(flat[:, before:], shape, (image, row, *steps))

    def columns(self, flat: np.ndarray) -> np.ndarray:
        """The windows that begin at each place of `flat` (C, total), as a view (C, *kernel, length)."""
        item, (row, _) = flat.itemsize, flat.strides
        shape, steps = (len(flat), *self.kernel, self.length), (row, *(s * item for s in self._shifts), item)
        return np.lib.stride_tricks.as_strided(flat, shape, steps, writeable=False)

    def outputs(self, flat: np.ndarray, count: int) -> np.ndarray:
        """The part of (rows, length) that belongs to outputs, as a view (count, rows, *out)."""
        images = flat.reshape(flat.shape[0], *self._grid)
        return images[(slice(None), slice(count), *map(slice, self.out))].swapaxes(0, 1)


def _collected(x: np.ndarray, runs: Runs, columns: np.ndarray) -> Iterator[tuple[int, int]]:
    """Fill `columns` (C, taps, length) with the windows of images first to last of `x`; gives (first, last)."""
    flat = np.zeros((x.shape[1], runs.total), x.dtype)
    pixels, windows = runs.pixels(flat), runs.columns(flat)
    filled = columns.reshape(windows.shape)
    for first, last in runs:
        pixels[: last - first] = x[first:last]
        pixels[last - first :] = 0
        np.copyto(filled, windows)
        yield first, last


def conv(x: np.ndarray, w: np.ndarray, padding: Sizes, dilation: Sizes, groups: int) -> np.ndarray:
    """Cross-correlation of x (N, C, *spatial) with w (O, C / groups, *kernel)."""
    o, c = len(w), x.shape[1]
    runs = Runs(x.shape, w.shape[2:], padding, dilation)
    rows = w.reshape(groups, o // groups, -1)
    columns = np.empty((c, math.prod(runs.kernel), runs.length), x.dtype)
    grouped = columns.reshape(groups, -1, runs.length)
    result = np.empty((x.shape[0], o, *runs.out), x.dtype)
    product = np.empty((o, runs.length), x.dtype)
    by_group = product.reshape(groups, o // groups, runs.length)
    for first, last in _collected(x, runs, columns):
        for k in range(groups):
            np.dot(rows[k], grouped[k], out=by_group[k])
        result[first:last] = runs.outputs(product, last - first)
    return result


def conv_input(g: np.ndarray, w: np.ndarray, around: Sizes, dilation: Sizes, groups: int) -> np.ndarray:
    """The gradient of `conv` with respect to x, for cotangent g (N, O, *out): g under the window turned round.

    around: what is left of the window around its first tap, less the padding: the padding that g needs.
    """
    o, width, *kernel = w.shape
    turned = w[(..., *(slice(None, None, -1) for _ in kernel))].reshape(groups, o // groups, width, *kernel)
    turned = np.ascontiguousarray(turned.swapaxes(1, 2)).reshape(groups * width, o // groups, *kernel)
    return conv(g, turned, around, dilation, groups)


def conv_weight(
    g: np.ndarray, x: np.ndarray, kernel: Sizes, padding: Sizes, dilation: Sizes, groups: int
) -> np.ndarray:
    """The gradient of `conv` with respect to w, for cotangent g (N, O, *out)."""
    o, width = g.shape[1], x.shape[1] // groups
    runs = Runs(x.shape, kernel, padding, dilation)
    columns = np.empty((x.shape[1], math.prod(runs.kernel), runs.length), x.dtype)
    grouped = columns.reshape(groups, -1, runs.length)
    spread = np.zeros((o, runs.length), g.dtype)
    by_group = spread.reshape(groups, o // groups, runs.length)
    total = np.zeros((groups, width * math.prod(runs.kernel), o // groups), g.dtype)
    for first, last in _collected(x, runs, columns):
        if last - first < runs.step:
            spread[...] = 0
        runs.outputs(spread, last - first)[...] = g[first:last]
        for k in range(groups):
            total[k] += np.dot(grouped[k], by_group[k].T)  # a quarter faster than its transpose
    return np.ascontiguousarray(total.swapaxes(1, 2)).reshape(o, width, *kernel)
