"""NumPy kernels for windows that slide over images: convolution and means, in any number of spatial dimensions.

Arrays are (N, C, *spatial). A window op is described by `kernel`, `stride`, `padding` and `dilation`, with an entry
for each spatial dimension: the `padding` of a convolution is a number, that of a pool a pair (before, after).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from graphc.ops import sliding
from graphc.ops.dtypes import is_inexact

Sizes = tuple[int, ...]
Borders = tuple[tuple[int, int], ...]
TOO_LARGE = "the window is larger than the padded image"


def out_size(size: int, kernel: int, stride: int, padding: int, dilation: int = 1) -> int:
    """How many windows fit along one axis with `padding` on both sides."""
    return (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1


def _both(padding: Sizes) -> Borders:
    return tuple((p, p) for p in padding)


def _taps(kernel: Sizes) -> Iterator[Sizes]:
    """The positions in a window, in memory order."""
    return itertools.product(*map(range, kernel))


def padded(x: np.ndarray, padding: Borders, value: float = 0.0) -> np.ndarray:
    """`x` with a border of `value` around each image."""
    if not any(map(any, padding)):
        return x
    spatial = x.shape[2:]
    result = np.full((*x.shape[:2], *(n + a + b for n, (a, b) in zip(spatial, padding, strict=True))), value, x.dtype)
    result[_inside(spatial, padding)] = x
    return result


def _inside(spatial: Sizes, padding: Borders) -> tuple[slice, ...]:
    return (slice(None), slice(None), *(slice(a, a + n) for n, (a, _) in zip(spatial, padding, strict=True)))


def strided(x: np.ndarray, shape: Sizes, strides: Sizes) -> np.ndarray:
    """A view of the memory of `x`, to be read; `np.lib.stride_tricks.as_strided` takes five times as long."""
    if not (x.flags.c_contiguous and x.dtype.isbuiltin == 1):
        return np.lib.stride_tricks.as_strided(x, shape, strides, writeable=False)
    view = np.ndarray(shape, x.dtype, x, 0, strides)
    view.flags.writeable = False
    return view


def windows(x: np.ndarray, kernel: Sizes, stride: Sizes, dilation: Sizes) -> np.ndarray:
    """A view (N, C, *kernel, *out) of the padded `x`: element [..., i, j, p, q] is tap (i, j) of window (p, q)."""
    out = [out_size(n, k, s, 0, d) for n, k, s, d in zip(x.shape[2:], kernel, stride, dilation, strict=True)]
    if min(out) < 1:
        raise ValueError(TOO_LARGE)
    spatial = x.strides[2:]
    return strided(
        x,
        (*x.shape[:2], *kernel, *out),
        (
            *x.strides[:2],
            *(b * d for b, d in zip(spatial, dilation, strict=True)),
            *(b * s for b, s in zip(spatial, stride, strict=True)),
        ),
    )


def fold(cols: np.ndarray, shape: Sizes, stride: Sizes, padding: Borders, dilation: Sizes) -> np.ndarray:
    """Add windows (N, C, *kernel, *out) back to images of `shape`: the transpose of `windows` after padding."""
    spatial = shape[2:]
    kernel, out = cols.shape[2 : 2 + len(spatial)], cols.shape[2 + len(spatial) :]
    if _size((*kernel, *stride)) == 1 and out == spatial:  # each window is a pixel
        return np.ascontiguousarray(cols).reshape(shape)
    result = np.zeros((*shape[:2], *(n + a + b for n, (a, b) in zip(spatial, padding, strict=True))), cols.dtype)
    for tap in _taps(kernel):
        first = [i * d for i, d in zip(tap, dilation, strict=True)]
        places = (slice(a, a + n * s, s) for a, n, s in zip(first, out, stride, strict=True))
        result[(slice(None), slice(None), *places)] += cols[(slice(None), slice(None), *tap)]
    return np.ascontiguousarray(result[_inside(spatial, padding)])


def _columns(x: np.ndarray, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int) -> np.ndarray:
    """(N, groups, C/groups * taps, windows): each window of `x` as a column."""
    view = windows(padded(x, _both(padding)), kernel, stride, dilation)
    taps, count = _size(kernel), _size(view.shape[2 + len(kernel) :])
    return view.reshape(x.shape[0], groups, x.shape[1] // groups * taps, count)


def _size(shape: Sizes) -> int:
    size = 1
    for n in shape:
        size *= n
    return size


def _slides(kernel: Sizes, stride: Sizes, x: np.ndarray) -> bool:
    """Whether a convolution is one for `graphc.ops.sliding`: its windows overlap."""
    return all(s == 1 for s in stride) and x.size > 0 and _size(kernel) > 1


def _check_fits(x: np.ndarray, kernel: Sizes, padding: Sizes, dilation: Sizes) -> None:
    if min(out_size(n, k, 1, p, d) for n, k, p, d in zip(x.shape[2:], kernel, padding, dilation, strict=True)) < 1:
        raise ValueError(TOO_LARGE)  # the shape rule words the error


def conv(x: np.ndarray, w: np.ndarray, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int) -> np.ndarray:
    """Cross-correlation of x (N, C, *spatial) with w (O, C/groups, *kernel)."""
    o, kernel = w.shape[0], w.shape[2:]
    if _slides(kernel, stride, x):
        _check_fits(x, kernel, padding, dilation)
        return sliding.conv(x, w, padding, dilation, groups)
    cols = _columns(x, kernel, stride, padding, dilation, groups)
    result = np.matmul(w.reshape(groups, o // groups, -1), cols)
    out = (out_size(*sizes) for sizes in zip(x.shape[2:], kernel, stride, padding, dilation, strict=True))
    return result.reshape(x.shape[0], o, *out)


def conv_input(
    g: np.ndarray, w: np.ndarray, shape: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int
) -> np.ndarray:
    """The gradient of conv with respect to an x of `shape`, for cotangent g (N, O, *out)."""
    n, o, *out = g.shape
    around = tuple(d * (k - 1) - p for k, d, p in zip(w.shape[2:], dilation, padding, strict=True))
    if _slides(w.shape[2:], stride, g) and min(around) >= 0:
        return sliding.conv_input(g, w, around, dilation, groups)
    flat = w.reshape(groups, o // groups, -1).transpose(0, 2, 1)
    cols = np.matmul(flat, g.reshape(n, groups, o // groups, _size(tuple(out))))
    return fold(cols.reshape(n, shape[1], *w.shape[2:], *out), shape, stride, _both(padding), dilation)


def conv_weight(
    g: np.ndarray, x: np.ndarray, shape: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int
) -> np.ndarray:
    """The gradient of conv with respect to a w of `shape`, for cotangent g (N, O, *out)."""
    n, o, *out = g.shape
    if _slides(shape[2:], stride, g):
        return sliding.conv_weight(g, x, shape[2:], padding, dilation, groups)
    count = _size(tuple(out))
    cols = _columns(x, shape[2:], stride, padding, dilation, groups)
    if groups == 1:  # one large product instead of N small ones
        rows = np.moveaxis(g, 1, 0).reshape(o, n * count)
        return np.matmul(rows, cols[:, 0].transpose(0, 2, 1).reshape(n * count, _size(shape[1:]))).reshape(shape)
    rows = g.reshape(n, groups, o // groups, count)
    return np.matmul(rows, cols.transpose(0, 1, 3, 2)).sum(axis=0).reshape(shape)


MANY_TAPS = 64


def _over_taps(view: np.ndarray, kernel: Sizes, combine: np.ufunc) -> np.ndarray:
    """Reduce the taps of windows: one pass a tap is much faster than a reduction over two short axes."""
    if _size(kernel) > MANY_TAPS:
        return combine.reduce(view, axis=tuple(range(2, 2 + len(kernel))))
    first, *rest = (view[(slice(None), slice(None), *tap)] for tap in _taps(kernel))
    result = first.copy()
    for part in rest:
        combine(result, part, out=result)
    return result


def avg_pool(x: np.ndarray, kernel: Sizes, stride: Sizes, padding: Borders) -> np.ndarray:
    """The mean of each window; padding counts as zeros."""
    view = windows(padded(x, padding), kernel, stride, (1,) * len(kernel))
    result = _over_taps(view, kernel, np.add)
    if not is_inexact(x.dtype):  # rounded to zero
        return np.sign(result) * (np.abs(result) // _size(kernel))
    result += 0.0  # the sum begins at +0: no -0
    result *= x.dtype.type(1 / _size(kernel))
    return result


def avg_pool_spread(g: np.ndarray, shape: Sizes, kernel: Sizes, stride: Sizes, padding: Borders) -> np.ndarray:
    """The transpose of `avg_pool`: each g is shared evenly by its window, in images of `shape`."""
    share = g * g.dtype.type(1 / _size(kernel))
    ones = (1,) * len(kernel)
    cols = np.broadcast_to(share.reshape(*g.shape[:2], *ones, *g.shape[2:]), (*g.shape[:2], *kernel, *g.shape[2:]))
    return fold(cols, shape, stride, padding, ones)
