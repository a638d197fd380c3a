"""Kernels for JAX, where the shared `impl` of an op would be wrong or slow under XLA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from graphc.ops.kernels import lowest

Pair = tuple[int, int]


def cast(x: Any, dtype: np.dtype) -> Any:
    """Float to integer as C does it: what does not fit becomes the smallest integer (XLA would saturate)."""
    if x.dtype.kind != "f" or dtype.kind not in "iu":
        return x.astype(dtype)
    wide = np.dtype(np.int64) if dtype.itemsize == 8 else np.dtype(np.int32)
    low = float(np.iinfo(wide).min)
    fits = (x >= low) & (x < -low)
    return jnp.where(fits, x, low).astype(wide).astype(dtype)


def pad_zeros(x: Any, low: tuple[int, ...], high: tuple[int, ...], interior: tuple[int, ...]) -> Any:
    return lax.pad(x, jnp.zeros((), x.dtype), list(zip(low, high, interior, strict=True)))


def conv2d(x: Any, w: Any, stride: Pair, padding: Pair, dilation: Pair, groups: int) -> Any:
    return lax.conv_general_dilated(
        x,
        w,
        window_strides=stride,
        padding=[(p, p) for p in padding],
        rhs_dilation=dilation,
        dimension_numbers=("NCHW", "OIHW", "NCHW"),
        feature_group_count=groups,
    )


def conv2d_input(g: Any, w: Any, shape: tuple[int, ...], **window: Any) -> Any:
    # conv2d is linear in x: XLA's form of its transpose is what JAX derives
    (dx,) = jax.linear_transpose(lambda x: conv2d(x, w, **window), jax.ShapeDtypeStruct(shape, g.dtype))(g)
    return dx


def conv2d_weight(g: Any, x: Any, shape: tuple[int, ...], **window: Any) -> Any:
    (dw,) = jax.linear_transpose(lambda w: conv2d(x, w, **window), jax.ShapeDtypeStruct(shape, g.dtype))(g)
    return dw


# --- pooling: windows that tile the image are a reshape, 2x faster than reduce_window


def _tiles(shape: tuple[int, ...], kernel: Pair, stride: Pair, padding: Pair) -> bool:
    return kernel == stride and padding == (0, 0) and all(n % k == 0 for n, k in zip(shape[2:], kernel, strict=True))


def _tiled(x: Any, kernel: Pair) -> Any:
    """(N, C, OH, kh, OW, kw)"""
    n, c, h, w = x.shape
    return x.reshape(n, c, h // kernel[0], kernel[0], w // kernel[1], kernel[1])


def _padding(padding: Pair) -> list[Pair]:
    return [(0, 0), (0, 0), (padding[0], padding[0]), (padding[1], padding[1])]


def max_pool2d(x: Any, kernel: Pair, stride: Pair, padding: Pair) -> Any:
    if _tiles(x.shape, kernel, stride, padding):
        return _tiled(x, kernel).max(axis=(3, 5))
    floor = np.array(lowest(x.dtype), x.dtype)
    return lax.reduce_window(x, floor, lax.max, (1, 1, *kernel), (1, 1, *stride), _padding(padding))


def _winner(x: Any, kernel: Pair) -> Any:
    """One-hot over the taps of tiling windows, (N, C, OH, kh, OW, kw): the first maximum of each window."""
    taps = _tiled(x, kernel)
    top = taps.max(axis=(3, 5), keepdims=True)
    number = (jnp.arange(kernel[0])[:, None] * kernel[1] + jnp.arange(kernel[1])).reshape(kernel[0], 1, kernel[1])
    hit = jnp.where((taps == top) | (taps != taps), number, kernel[0] * kernel[1])
    return number == hit.min(axis=(3, 5), keepdims=True)


def max_pool2d_spread(g: Any, x: Any, kernel: Pair, stride: Pair, padding: Pair) -> Any:
    if _tiles(x.shape, kernel, stride, padding):
        spread = jnp.where(_winner(x, kernel), g[:, :, :, None, :, None], jnp.zeros((), g.dtype))
        return spread.reshape(x.shape)
    _, back = jax.vjp(lambda t: max_pool2d(t, kernel, stride, padding), x)
    return back(g.astype(x.dtype))[0]


def max_pool2d_pick(t: Any, x: Any, kernel: Pair, stride: Pair, padding: Pair) -> Any:
    # the transpose of the spread, which is linear in g
    (picked,) = jax.linear_transpose(
        lambda g: max_pool2d_spread(g, x, kernel, stride, padding),
        jax.eval_shape(lambda s: max_pool2d(s, kernel, stride, padding), jax.ShapeDtypeStruct(t.shape, t.dtype)),
    )(t)
    return picked


def avg_pool2d(x: Any, kernel: Pair, stride: Pair, padding: Pair) -> Any:
    zero = np.zeros((), x.dtype)
    total = lax.reduce_window(x, zero, lax.add, (1, 1, *kernel), (1, 1, *stride), _padding(padding))
    return total * x.dtype.type(1 / (kernel[0] * kernel[1]))


def avg_pool2d_spread(g: Any, shape: tuple[int, ...], kernel: Pair, stride: Pair, padding: Pair) -> Any:
    (dx,) = jax.linear_transpose(
        lambda x: avg_pool2d(x, kernel, stride, padding), jax.ShapeDtypeStruct(shape, g.dtype)
    )(g)
    return dx


OVERRIDES: dict[str, Callable[..., Any]] = {
    f.__name__: f
    for f in (cast, pad_zeros, conv2d, conv2d_input, conv2d_weight, max_pool2d, max_pool2d_spread, max_pool2d_pick,
              avg_pool2d, avg_pool2d_spread)
}  # fmt: skip
