"""Kernels for JAX of windows that slide over images: convolution and pooling. See graphc/ops/kernels.py."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from graphc.lowering.zeros import unsigned
from graphc.ops.kernels import lowest

Sizes = tuple[int, ...]
Borders = tuple[tuple[int, int], ...]


def conv(x: Any, w: Any, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int) -> Any:
    letters = "DHW"[-len(stride) :]
    return lax.conv_general_dilated(
        x,
        w,
        window_strides=stride,
        padding=[(p, p) for p in padding],
        rhs_dilation=dilation,
        dimension_numbers=(f"NC{letters}", f"OI{letters}", f"NC{letters}"),
        feature_group_count=groups,
    )


def conv_input(g: Any, w: Any, shape: Sizes, **window: Any) -> Any:
    if jnp.issubdtype(g.dtype, jnp.integer):
        return _whole_input(g, w, shape, **window)
    # conv is linear in x: XLA's form of its transpose is what JAX derives
    (dx,) = jax.linear_transpose(lambda x: conv(x, w, **window), jax.ShapeDtypeStruct(shape, g.dtype))(g)
    return dx


def conv_weight(g: Any, x: Any, shape: Sizes, **window: Any) -> Any:
    if jnp.issubdtype(g.dtype, jnp.integer):
        return _whole_weight(g, x, shape, **window)
    (dw,) = jax.linear_transpose(lambda w: conv(x, w, **window), jax.ShapeDtypeStruct(shape, g.dtype))(g)
    return dw


# JAX derives nothing for integers: there the transposes are sums over the taps


def _whole_input(g: Any, w: Any, shape: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int) -> Any:
    borders = tuple((p, p) for p in padding)
    parts = g.reshape(g.shape[0], groups, g.shape[1] // groups, *g.shape[2:])
    weights = w.reshape(groups, w.shape[0] // groups, *w.shape[1:])
    total = jnp.zeros((*shape[:2], *(n + 2 * p for n, p in zip(shape[2:], padding, strict=True))), g.dtype)
    taps = itertools.product(*map(range, w.shape[2:]))
    for tap, cut in zip(taps, _cuts(shape, w.shape[2:], stride, borders, dilation), strict=True):
        part = jnp.einsum("ngo...,goc->ngc...", parts, weights[(..., *tap)])
        total = total.at[(..., *cut)].add(part.reshape(*shape[:2], *g.shape[2:]))
    return total[(..., *(slice(p, p + n) for n, p in zip(shape[2:], padding, strict=True)))]


def _whole_weight(g: Any, x: Any, shape: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, groups: int) -> Any:
    borders = tuple((p, p) for p in padding)
    parts = g.reshape(g.shape[0], groups, g.shape[1] // groups, -1)
    padded = jnp.pad(x, [(0, 0), (0, 0), *borders])
    rows = []
    for cut in _cuts(x.shape, shape[2:], stride, borders, dilation):
        met = padded[(..., *cut)].reshape(x.shape[0], groups, x.shape[1] // groups, -1)
        rows.append(jnp.einsum("ngop,ngcp->goc", parts, met).reshape(shape[:2]))
    return jnp.stack(rows, axis=-1).reshape(shape)


# --- pooling: windows that tile the image are a reshape, 2x faster than reduce_window


def _tiles(shape: Sizes, kernel: Sizes, stride: Sizes, padding: Borders, dilation: Sizes) -> bool:
    exact = all(n % k == 0 for n, k in zip(shape[2:], kernel, strict=True))
    return exact and kernel == stride and not any(map(any, padding)) and set(dilation) == {1}


def _tiled(x: Any, kernel: Sizes) -> Any:
    """(N, C, OH, kh, OW, kw)"""
    split = (part for n, k in zip(x.shape[2:], kernel, strict=True) for part in (n // k, k))
    return x.reshape(*x.shape[:2], *split)


def _taps(kernel: Sizes) -> Sizes:
    return tuple(range(3, 3 + 2 * len(kernel), 2))


def _window(kernel: Sizes, stride: Sizes, padding: Borders) -> tuple[Sizes, Sizes, list[tuple[int, int]]]:
    return (1, 1, *kernel), (1, 1, *stride), [(0, 0), (0, 0), *padding]


def max_pool(x: Any, kernel: Sizes, stride: Sizes, padding: Borders, dilation: Sizes) -> Any:
    if _tiles(x.shape, kernel, stride, padding, dilation):
        return _tiled(x, kernel).max(axis=_taps(kernel))
    if set(dilation) != {1}:  # JAX has no derivative of a dilated reduce_window
        values = jnp.pad(x, [(0, 0), (0, 0), *padding], constant_values=lowest(x.dtype))
        return functools.reduce(
            jnp.maximum, (values[(..., *cut)] for cut in _cuts(x.shape, kernel, stride, padding, dilation))
        )
    floor = np.array(lowest(x.dtype), x.dtype)
    return lax.reduce_window(x, floor, lax.max, *_window(kernel, stride, padding))


def _winner(x: Any, kernel: Sizes) -> Any:
    """One-hot over the taps of tiling windows, (N, C, OH, kh, OW, kw): each one's first maximum, but its last nan."""
    taps = _tiled(x, kernel)
    top = taps.max(axis=_taps(kernel), keepdims=True)
    number = jnp.arange(math.prod(kernel)).reshape(tuple(part for k in kernel for part in (1, k)))
    first = jnp.where(taps == top, number, math.prod(kernel)).min(axis=_taps(kernel), keepdims=True)
    last = jnp.where(taps != taps, number, -1).max(axis=_taps(kernel), keepdims=True)
    return number == jnp.where(last < 0, first, last)


def max_pool_spread(g: Any, x: Any, kernel: Sizes, stride: Sizes, padding: Borders, dilation: Sizes) -> Any:
    if _tiles(x.shape, kernel, stride, padding, dilation):
        over = g.reshape(*g.shape[:2], *(part for n in g.shape[2:] for part in (n, 1)))
        return unsigned(jnp.where(_winner(x, kernel), over, jnp.zeros((), g.dtype))).reshape(x.shape)
    at = max_pool_index(x, kernel, stride, padding, dilation)
    flat = jnp.zeros((math.prod(x.shape[:2]), math.prod(x.shape[2:])), g.dtype)
    rows = jnp.arange(flat.shape[0])[:, None]
    return flat.at[rows, at.reshape(flat.shape[0], -1)].add(g.reshape(flat.shape[0], -1)).reshape(x.shape)


def max_pool_pick(t: Any, x: Any, kernel: Sizes, stride: Sizes, padding: Borders, dilation: Sizes) -> Any:
    at = max_pool_index(x, kernel, stride, padding, dilation)
    flat = t.reshape(*t.shape[:2], -1)
    return jnp.take_along_axis(flat, at.reshape(*at.shape[:2], -1), axis=-1).reshape(at.shape)


def max_pool_index(x: Any, kernel: Sizes, stride: Sizes, padding: Borders, dilation: Sizes) -> Any:
    """The position of each window's maximum in the flattened image: the first of equals, the last nan above all."""
    spatial = x.shape[2:]
    place = jnp.arange(math.prod(spatial)).reshape(spatial)
    padded = jnp.pad(place, padding, constant_values=-1)
    values = jnp.pad(x, [(0, 0), (0, 0), *padding], constant_values=lowest(x.dtype))
    best, at = None, None
    for cut in _cuts(x.shape, kernel, stride, padding, dilation):
        value, position = values[(..., *cut)], padded[cut]
        if best is None or at is None:
            best, at = value, jnp.broadcast_to(position, value.shape)
            continue
        better = (value > best) | (value != value) | ((at < 0) & (position >= 0))
        best, at = jnp.where(better, value, best), jnp.where(better, position, at)
    return at


def _cuts(shape: Sizes, kernel: Sizes, stride: Sizes, padding: Borders, dilation: Sizes) -> Iterator[tuple[slice, ...]]:
    """For each tap of the window, the elements of the padded image that it meets."""
    sizes = zip(shape[2:], kernel, stride, padding, dilation, strict=True)
    out = [(n + a + b - d * (k - 1) - 1) // s + 1 for n, k, s, (a, b), d in sizes]
    for tap in itertools.product(*map(range, kernel)):
        steps = zip(tap, dilation, out, stride, strict=True)
        yield tuple(slice(i * d, i * d + (n - 1) * s + 1, s) for i, d, n, s in steps)


def avg_pool(x: Any, kernel: Sizes, stride: Sizes, padding: Borders) -> Any:
    total = lax.reduce_window(x, np.zeros((), x.dtype), lax.add, *_window(kernel, stride, padding))
    count = math.prod(kernel)
    if jnp.issubdtype(x.dtype, jnp.integer):  # rounded to zero
        return jnp.sign(total) * (abs(total) // count)
    return total * x.dtype.type(1 / count)


def avg_pool_spread(g: Any, shape: Sizes, kernel: Sizes, stride: Sizes, padding: Borders) -> Any:
    (dx,) = jax.linear_transpose(lambda x: avg_pool(x, kernel, stride, padding), jax.ShapeDtypeStruct(shape, g.dtype))(
        g
    )
    return dx


WINDOWS: dict[str, Callable[..., Any]] = {
    f"{family}{rank}d{relative}": globals()[family + relative]
    for rank in (1, 2, 3)
    for family, relatives in {
        "conv": ("", "_input", "_weight"),
        "max_pool": ("", "_spread", "_pick", "_index"),
        "avg_pool": ("", "_spread"),
    }.items()
    for relative in relatives
}
