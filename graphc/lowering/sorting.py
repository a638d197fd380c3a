"""JAX kernels of the ops in `graphc.ops.sorting` that NumPy has as `ufunc.accumulate`."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from graphc.ops.index import along
from graphc.ops.sorting import bisect, logaddexp, zeros_alike


def argcummax(x: Any, axis: int, largest: bool) -> Any:
    x = x.astype("uint8") if x.dtype == bool else x
    running = (lax.cummax if largest else lax.cummin)(x, axis=axis)
    places = lax.broadcasted_iota("int64", x.shape, axis)
    return lax.cummax(jnp.where((x == running) | (x != x), places, 0), axis=axis)


def sort(x: Any, axis: int, descending: bool) -> tuple[Any, Any]:
    # of the reversed array, last to first, as in `graphc.ops.sorting`; values and places in one pass
    places = lax.broadcasted_iota("int32", x.shape, axis % max(x.ndim, 1))
    if descending:
        x, last = lax.rev(x, [axis % x.ndim]), x.shape[axis] - 1
        values, places = lax.sort((x, places), dimension=axis, is_stable=True, num_keys=1)
        return lax.rev(values, [axis % x.ndim]), (last - lax.rev(places, [axis % x.ndim])).astype("int64")
    values, places = lax.sort((x, places), dimension=axis, is_stable=True, num_keys=1)
    return values, places.astype("int64")


def max_dim(x: Any, axis: int, keepdims: bool) -> tuple[Any, Any]:
    return _extreme(x, axis, keepdims, largest=True)


def min_dim(x: Any, axis: int, keepdims: bool) -> tuple[Any, Any]:
    return _extreme(x, axis, keepdims, largest=False)


def _extreme(x: Any, axis: int, keepdims: bool, largest: bool) -> tuple[Any, Any]:
    if not x.ndim:
        return x, jnp.zeros((), "int64")
    axis, dtype = axis % x.ndim, x.dtype
    values, places = _with_place(axis, largest, x.astype("uint8") if dtype.kind == "b" else x)
    values = values.astype(dtype)
    return (lax.expand_dims(values, [axis]), lax.expand_dims(places, [axis])) if keepdims else (values, places)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0, 1))
def _with_place(axis: int, largest: bool, x: Any) -> tuple[Any, Any]:
    """The extreme and its place in one pass: the first of equals, the first nan before all."""

    def better(a: Any, b: Any) -> tuple[Any, Any]:
        (value, place), (other, where) = a, b
        beyond = (value > other if largest else value < other) | ((value != value) & (other == other))
        same = (value == other) | ((value != value) & (other != other))
        first = beyond | (same & (place < where))
        return lax.select(first, value, other), lax.select(first, place, where)

    start = lax.full((), _worst(x.dtype, largest), x.dtype), lax.full((), 0, "int32")
    values, places = lax.reduce((x, lax.broadcasted_iota("int32", x.shape, axis)), start, better, (axis,))
    return values, places.astype("int64")


@_with_place.defjvp
def _with_place_jvp(axis: int, largest: bool, primals: Any, tangents: Any) -> Any:
    values, places = _with_place(axis, largest, *primals)
    moved = jnp.take_along_axis(tangents[0], lax.expand_dims(places, [axis]), axis)
    return (values, places), (lax.squeeze(moved, [axis]), np.zeros(places.shape, jax.dtypes.float0))


def _worst(dtype: Any, largest: bool) -> Any:
    """The number of `dtype` that is no better than any other."""
    if dtype.kind == "f" or dtype.name == "bfloat16":
        return -np.inf if largest else np.inf
    return np.iinfo(dtype).min if largest else np.iinfo(dtype).max


def logcumsumexp(x: Any, axis: int) -> Any:
    if x.dtype.kind == "c":
        return lax.associative_scan(functools.partial(logaddexp, jnp), zeros_alike(jnp, x), axis=axis) if x.size else x
    return lax.cumlogsumexp(x, axis=axis)


def searchsorted(sequence: Any, values: Any, right: bool) -> Any:
    def row(s: Any, v: Any) -> Any:
        return bisect(jnp, s, v, right)

    if sequence.ndim == 1:
        return row(sequence, values)
    if not sequence.size or not values.size:
        return jnp.zeros(values.shape, "int64")
    rows = sequence.reshape(-1, sequence.shape[-1]), values.reshape(-1, values.shape[-1])
    return jax.vmap(row)(*rows).reshape(values.shape)


def scatter_reduce(x: Any, index: Any, src: Any, axis: int, reduce: str) -> Any:
    if x.dtype == bool:
        reduce = "amin" if reduce == "prod" else reduce
    if reduce == "prod":
        return _scatter_prod(axis, x, index, src)
    target = x.at[along(jnp, index, axis)]
    return target.max(src) if reduce == "amax" else target.min(src)


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _scatter_prod(axis: int, x: Any, index: Any, src: Any) -> Any:
    return x.at[along(jnp, index, axis)].multiply(src)


@_scatter_prod.defjvp
def _scatter_prod_jvp(axis: int, primals: Any, tangents: Any) -> Any:
    # JAX differentiates products into places that do not repeat: one slice of `src` after the other
    def by_slices(x: Any, index: Any, src: Any) -> Any:
        for k in range(index.shape[axis]):
            at = lax.slice_in_dim(index, k, k + 1, axis=axis)
            factor = lax.slice_in_dim(src, k, k + 1, axis=axis)
            x = x.at[along(jnp, at, axis)].multiply(factor, unique_indices=True)
        return x

    return jax.jvp(lambda x, src: by_slices(x, primals[1], src), primals[::2], tangents[::2])


OVERRIDES = {f.__name__: f for f in (argcummax, logcumsumexp, max_dim, min_dim, scatter_reduce, searchsorted, sort)}
