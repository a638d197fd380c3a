"""JAX kernels of the ops in `graphc.ops.sorting` that NumPy has as `ufunc.accumulate`."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from graphc.ops.index import along
from graphc.ops.sorting import bisect, logaddexp, zeros_alike


def argcummax(x: Any, axis: int, largest: bool) -> Any:
    x = x.astype("uint8") if x.dtype == bool else x
    running = (lax.cummax if largest else lax.cummin)(x, axis=axis)
    places = lax.broadcasted_iota("int64", x.shape, axis)
    return lax.cummax(jnp.where((x == running) | (x != x), places, 0), axis=axis)


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


OVERRIDES = {f.__name__: f for f in (argcummax, logcumsumexp, scatter_reduce, searchsorted)}
