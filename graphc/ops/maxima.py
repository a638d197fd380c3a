"""NumPy kernels for max pooling: the largest element of each window, and where it is.

A window's maximum is taken along one axis after the other, of all windows that begin anywhere in memory, those that
nobody asks for as well: such a pass is over flat memory, and ten times as fast as one over short rows with gaps.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from graphc.ops.dtypes import is_floating
from graphc.ops.kernels import MANY_TAPS, Borders, Sizes, padded, strided, windows


def lowest(dtype: np.dtype) -> float:
    """The value that no maximum prefers: -inf, or the smallest integer."""
    return -np.inf if is_floating(dtype) else float(np.iinfo(dtype).min)


def max_pool(x: np.ndarray, kernel: Sizes, stride: Sizes, padding: Borders, dilation: Sizes) -> np.ndarray:
    """The largest element of each window; padding never wins; nan does."""
    x = padded(x, padding, lowest(x.dtype))
    view = windows(x, kernel, stride, dilation)
    if _are_few(view, x, kernel):
        return np.maximum.reduce(view, axis=tuple(range(2, 2 + len(kernel))))
    best = np.ascontiguousarray(x).reshape(-1)
    for _, k, shift in _axes(x, kernel, dilation):
        n, parts = best.size - (k - 1) * shift, best
        best = parts[:n]
        for t in range(1, k):
            # the first result is new memory, which takes the others
            best = np.maximum(best, parts[t * shift : t * shift + n], out=best if t > 1 else None)
    return np.array(_at_windows(best, view, x, stride), order="C")


def max_pool_index(x: np.ndarray, kernel: Sizes, stride: Sizes, padding: Borders, dilation: Sizes) -> np.ndarray:
    """Where each window has its maximum: positions in the flattened image, as int64."""
    winners = _winners(x, kernel, stride, padding, dilation)
    steps = [math.prod(x.shape[3 + i :]) for i in range(len(kernel))]
    taps = np.zeros(kernel, np.int64)
    first = np.zeros(winners.shape[2:], np.int64)
    for i, step in enumerate(steps):
        along = [-1 if k == i else 1 for k in range(len(kernel))]
        taps += (np.arange(kernel[i]) * dilation[i] * step).reshape(along)
        first += ((np.arange(first.shape[i]) * stride[i] - padding[i][0]) * step).reshape(along)
    found = taps.reshape(-1).take(winners)
    found += first
    return found


def max_pool_spread(
    g: np.ndarray, x: np.ndarray, kernel: Sizes, stride: Sizes, padding: Borders, dilation: Sizes
) -> np.ndarray:
    """The transpose of `max_pool_pick`: each g goes to the place of its window's maximum in x."""
    at = _in_all_images(max_pool_index(x, kernel, stride, padding, dilation), x.shape)
    result = np.zeros(x.size, g.dtype)
    np.add.at(result, at.reshape(-1), g.reshape(-1))
    return result.reshape(x.shape)


def max_pool_pick(
    t: np.ndarray, x: np.ndarray, kernel: Sizes, stride: Sizes, padding: Borders, dilation: Sizes
) -> np.ndarray:
    """The element of t at the place of each window's maximum in x."""
    return t.reshape(-1).take(_in_all_images(max_pool_index(x, kernel, stride, padding, dilation), x.shape))


def _in_all_images(at: np.ndarray, shape: Sizes) -> np.ndarray:
    """Positions in the flattened batch, of positions `at` in each flattened image; in the memory of `at`."""
    images = np.arange(shape[0] * shape[1]) * math.prod(shape[2:])
    at += images.reshape(*shape[:2], *(1 for _ in shape[2:]))
    return at


def _are_few(view: np.ndarray, x: np.ndarray, kernel: Sizes) -> bool:
    """Whether the windows are large and hardly overlap, or there is nothing: then they are looked at one by one."""
    return not x.size or (math.prod(kernel) > MANY_TAPS and view.size <= 2 * x.size)


def _axes(x: np.ndarray, kernel: Sizes, dilation: Sizes) -> list[tuple[int, int, int]]:
    """(number of taps inside, taps, elements from one tap to the next) of each spatial axis, the last one first."""
    found = [
        (math.prod(kernel[i + 1 :]), k, d * math.prod(x.shape[3 + i :]))
        for i, (k, d) in enumerate(zip(kernel, dilation, strict=True))
    ]
    return found[::-1]


def _at_windows(flat: np.ndarray, view: np.ndarray, x: np.ndarray, stride: Sizes) -> np.ndarray:
    """A view (N, C, *out) of the elements of `flat` where the windows `view` of `x` begin."""
    rank = len(stride)
    steps = [math.prod(x.shape[i + 1 :]) for i in range(x.ndim)]
    apart = tuple(n * flat.itemsize for n in (*steps[:2], *(n * s for n, s in zip(steps[2:], stride, strict=True))))
    return strided(flat, (*view.shape[:2], *view.shape[2 + rank :]), apart)


def _winners(x: np.ndarray, kernel: Sizes, stride: Sizes, padding: Borders, dilation: Sizes) -> np.ndarray:
    """(N, C, *out): the first tap of each window that holds its maximum, or the last nan: PyTorch's choice."""
    low = lowest(x.dtype)
    bordered = padded(x, padding, low)
    view = windows(bordered, kernel, stride, dilation)
    if _are_few(view, bordered, kernel):
        best, winners = _of_few(view, kernel)
    else:
        best, winners = (_at_windows(a, view, bordered, stride) for a in _sliding(bordered, kernel, dilation))
    if any(map(any, padding)) and (best == low).any():
        # an element that is the lowest number ties with the border, which must not win
        real = windows(padded(np.ones(x.shape, np.bool_), padding, 0.0), kernel, stride, dilation)
        winners, tied = np.array(winners), best == low
        for number, tap in reversed(list(enumerate(itertools.product(*map(range, kernel))))):
            np.copyto(winners, number, where=real[(slice(None), slice(None), *tap)] & tied)
    return winners


def _of_few(view: np.ndarray, kernel: Sizes) -> tuple[np.ndarray, np.ndarray]:
    """The maximum and its tap of each of the windows (N, C, *kernel, *out)."""
    rank = len(kernel)
    taps = np.moveaxis(view, range(2, 2 + rank), range(-rank, 0))
    taps = taps.reshape(*taps.shape[: 2 + rank], math.prod(kernel))
    winners = taps.argmax(-1)
    best = np.take_along_axis(taps, winners[..., None], -1)[..., 0]
    if is_floating(taps.dtype) and (odd := np.isnan(best)).any():
        winners[odd] = taps.shape[-1] - 1 - np.isnan(taps[odd])[:, ::-1].argmax(-1)
    return best, winners


def _sliding(x: np.ndarray, kernel: Sizes, dilation: Sizes) -> tuple[np.ndarray, np.ndarray]:
    """The maximum and its tap of the windows that begin at each element of `x`, flattened."""
    best = np.ascontiguousarray(x).reshape(-1)
    has_nan = is_floating(x.dtype) and bool(np.isnan(np.maximum.reduce(best)))
    winners = np.zeros(best.size, np.int8 if math.prod(kernel) < 2**7 else np.int32)
    for inside, k, shift in _axes(x, kernel, dilation):
        n, parts, numbers = best.size - (k - 1) * shift, best, winners
        best, winners = np.array(parts[:n]), np.array(numbers[:n])
        for t in range(1, k):
            part = parts[t * shift : t * shift + n]
            wins = part > best
            if has_nan:
                wins |= np.isnan(part)
            np.maximum(best, part, out=best)
            # taps are counted in order: a later one that wins has the larger number
            number = numbers[t * shift : t * shift + n] + winners.dtype.type(t * inside)
            number *= wins.view(np.int8)
            np.maximum(winners, number, out=winners)
    return best, winners
