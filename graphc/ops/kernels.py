"""NumPy kernels for windows that slide over images: convolution and pooling.

Arrays are (N, C, H, W). A window op is described by `kernel`, `stride`, `padding` and `dilation`, each a pair.
"""

from __future__ import annotations

import numpy as np

Pair = tuple[int, int]


def out_size(size: int, kernel: int, stride: int, padding: int, dilation: int = 1) -> int:
    """How many windows fit along one axis."""
    return (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1


def padded(x: np.ndarray, padding: Pair, value: float = 0.0) -> np.ndarray:
    """`x` with a border of `value` around each image."""
    ph, pw = padding
    if not ph and not pw:
        return x
    n, c, h, w = x.shape
    result = np.full((n, c, h + 2 * ph, w + 2 * pw), value, x.dtype)
    result[:, :, ph : ph + h, pw : pw + w] = x
    return result


def _fits(*sizes: int) -> None:
    """Raise ValueError if a window is larger than the image; the shape rule then words the error."""
    if min(sizes) < 1:
        raise ValueError("the window is larger than the padded image")


def windows(x: np.ndarray, kernel: Pair, stride: Pair, dilation: Pair) -> np.ndarray:
    """A view (N, C, kh, kw, OH, OW) of the padded `x`: element [..., i, j, p, q] is tap (i, j) of window (p, q)."""
    n, c, h, w = x.shape
    sn, sc, sh, sw = x.strides
    oh = out_size(h, kernel[0], stride[0], 0, dilation[0])
    ow = out_size(w, kernel[1], stride[1], 0, dilation[1])
    _fits(oh, ow)
    return np.lib.stride_tricks.as_strided(
        x,
        (n, c, *kernel, oh, ow),
        (sn, sc, sh * dilation[0], sw * dilation[1], sh * stride[0], sw * stride[1]),
        writeable=False,
    )


def fold(cols: np.ndarray, shape: tuple[int, ...], stride: Pair, padding: Pair, dilation: Pair) -> np.ndarray:
    """Add windows (N, C, kh, kw, OH, OW) back to images of `shape`: the transpose of `windows` after padding."""
    n, c, h, w = shape
    kh, kw, oh, ow = cols.shape[2:]
    ph, pw = padding
    result = np.zeros((n, c, h + 2 * ph, w + 2 * pw), cols.dtype)
    for i in range(kh):
        top = i * dilation[0]
        for j in range(kw):
            left = j * dilation[1]
            result[:, :, top : top + oh * stride[0] : stride[0], left : left + ow * stride[1] : stride[1]] += cols[
                :, :, i, j
            ]
    return result[:, :, ph : ph + h, pw : pw + w]


def _columns(x: np.ndarray, kernel: Pair, stride: Pair, padding: Pair, dilation: Pair, groups: int) -> np.ndarray:
    """(N, groups, C/groups * kh * kw, OH * OW): each window of `x` as a column."""
    n, c = x.shape[:2]
    view = windows(padded(x, padding), kernel, stride, dilation)
    return view.reshape(n, groups, c // groups * kernel[0] * kernel[1], view.shape[4] * view.shape[5])


def conv2d(x: np.ndarray, w: np.ndarray, stride: Pair, padding: Pair, dilation: Pair, groups: int) -> np.ndarray:
    """Cross-correlation of x (N, C, H, W) with w (O, C/groups, kh, kw)."""
    n, _, h, wd = x.shape
    o, _, kh, kw = w.shape
    cols = _columns(x, (kh, kw), stride, padding, dilation, groups)
    result = np.matmul(w.reshape(groups, o // groups, -1), cols)
    oh = out_size(h, kh, stride[0], padding[0], dilation[0])
    return result.reshape(n, o, oh, out_size(wd, kw, stride[1], padding[1], dilation[1]))


def conv2d_input(
    g: np.ndarray, w: np.ndarray, shape: tuple[int, ...], stride: Pair, padding: Pair, dilation: Pair, groups: int
) -> np.ndarray:
    """The gradient of conv2d with respect to an x of `shape`, for cotangent g (N, O, OH, OW)."""
    n, o, oh, ow = g.shape
    kh, kw = w.shape[2:]
    flat = w.reshape(groups, o // groups, -1).transpose(0, 2, 1)
    cols = np.matmul(flat, g.reshape(n, groups, o // groups, oh * ow))
    return fold(cols.reshape(n, shape[1], kh, kw, oh, ow), shape, stride, padding, dilation)


def conv2d_weight(
    g: np.ndarray, x: np.ndarray, shape: tuple[int, ...], stride: Pair, padding: Pair, dilation: Pair, groups: int
) -> np.ndarray:
    """The gradient of conv2d with respect to a w of `shape`, for cotangent g (N, O, OH, OW)."""
    n, o, oh, ow = g.shape
    cols = _columns(x, (shape[2], shape[3]), stride, padding, dilation, groups)
    if groups == 1:  # one large product instead of N small ones
        rows = g.transpose(1, 0, 2, 3).reshape(o, -1)
        return np.matmul(rows, cols[:, 0].transpose(0, 2, 1).reshape(n * oh * ow, -1)).reshape(shape)
    rows = g.reshape(n, groups, o // groups, oh * ow)
    return np.matmul(rows, cols.transpose(0, 1, 3, 2)).sum(axis=0).reshape(shape)


def _flat_windows(x: np.ndarray, kernel: Pair, stride: Pair, padding: Pair, fill: float) -> np.ndarray:
    """(N, C, OH, OW, kh * kw), taps last."""
    view = windows(padded(x, padding, fill), kernel, stride, (1, 1)).transpose(0, 1, 4, 5, 2, 3)
    return view.reshape(*view.shape[:4], -1)


def lowest(dtype: np.dtype) -> float:
    """The value that no maximum prefers: -inf, or the smallest integer."""
    return -np.inf if dtype.kind == "f" else float(np.iinfo(dtype).min)


def max_pool2d(x: np.ndarray, kernel: Pair, stride: Pair, padding: Pair) -> np.ndarray:
    """The largest element of each window; padding never wins; nan does."""
    view = windows(padded(x, padding, lowest(x.dtype)), kernel, stride, (1, 1))
    result = view[:, :, 0, 0].copy()
    for i in range(kernel[0]):  # one pass a tap is much faster than a reduction over two short axes
        for j in range(kernel[1]):
            np.maximum(result, view[:, :, i, j], out=result)
    return result


def _winners(x: np.ndarray, kernel: Pair, stride: Pair, padding: Pair) -> np.ndarray:
    """(N, C, OH, OW): the first tap of each window that holds its maximum (PyTorch's choice on ties)."""
    return _flat_windows(x, kernel, stride, padding, lowest(x.dtype)).argmax(axis=-1)


def max_pool2d_spread(g: np.ndarray, x: np.ndarray, kernel: Pair, stride: Pair, padding: Pair) -> np.ndarray:
    """The transpose of `max_pool2d_pick`: each g goes to the place of its window's maximum in x."""
    winners = _winners(x, kernel, stride, padding)
    n, c, oh, ow = g.shape
    cols = np.zeros((n, c, *kernel, oh, ow), g.dtype)
    for i in range(kernel[0]):
        for j in range(kernel[1]):
            np.multiply(g, winners == i * kernel[1] + j, out=cols[:, :, i, j])
    return fold(cols, x.shape, stride, padding, (1, 1))


def max_pool2d_pick(t: np.ndarray, x: np.ndarray, kernel: Pair, stride: Pair, padding: Pair) -> np.ndarray:
    """The element of t at the place of each window's maximum in x."""
    winners = _winners(x, kernel, stride, padding)
    taps = _flat_windows(t, kernel, stride, padding, 0.0)
    return np.take_along_axis(taps, winners[..., None], axis=-1)[..., 0]


def avg_pool2d(x: np.ndarray, kernel: Pair, stride: Pair, padding: Pair) -> np.ndarray:
    """The mean of each window; padding counts as zeros."""
    view = windows(padded(x, padding), kernel, stride, (1, 1))
    return view.sum(axis=(2, 3)) * x.dtype.type(1 / (kernel[0] * kernel[1]))


def avg_pool2d_spread(g: np.ndarray, shape: tuple[int, ...], kernel: Pair, stride: Pair, padding: Pair) -> np.ndarray:
    """The transpose of `avg_pool2d`: each g is shared evenly by its window, in images of `shape`."""
    share = g * g.dtype.type(1 / (kernel[0] * kernel[1]))
    cols = np.broadcast_to(share[:, :, None, None], (*g.shape[:2], *kernel, *g.shape[2:]))
    return fold(cols, shape, stride, padding, (1, 1))
