"""JAX kernels of the ops in `graphc.ops.sorting` that take more than a function of jax.numpy."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from graphc.lowering.primitives import keeps_nan
from graphc.lowering.scattering import even
from graphc.ops.index import along
from graphc.ops.sorting import bisect

FEW = 16


def reduced(x: Any, axis: Any, keepdims: bool = False, largest: bool = True) -> Any:
    """The extreme along axes, nan where any element is: asked by one sum of all, nan also where infinities cancel."""
    extreme = functools.partial(jnp.max if largest else jnp.min, axis=axis, keepdims=keepdims)
    if keeps_nan(x.shape, x.dtype):
        return extreme(x)

    def exact(x: Any) -> Any:
        lost = jnp.sum(jnp.where(x != x, x, jnp.zeros((), x.dtype)), axis, keepdims=keepdims)
        return jnp.where(lost != lost, lost, extreme(x))

    def asked(x: Any) -> Any:
        total = jnp.sum(lax.stop_gradient(x))
        return lax.cond(total != total, exact, extreme, x)

    if not jax.sharding.get_abstract_mesh().empty:
        return exact(x)  # a sum of all would be a collective
    return lax.platform_dependent(x, cpu=asked, default=extreme)


def _arg(x: Any, axis: int, keepdims: bool, largest: bool) -> Any:
    if not x.ndim:
        return jnp.zeros((), "int64")
    places = _place(axis % x.ndim, largest, x)
    return places if keepdims else lax.squeeze(places, [axis % x.ndim])


def _place(axis: int, largest: bool, x: Any) -> Any:
    """The place of the extreme, kept as an extent of 1: the first of equals, the first nan before all.

    In two passes, of which XLA makes loops over vectors. One that carries the place along is five to ten times slower,
    but of lines of `FEW` elements, which it unrolls.
    """
    x = x.astype("uint8") if x.dtype == bool else x
    if x.shape[axis] <= FEW:
        return (jnp.argmax if largest else jnp.argmin)(x, axis, keepdims=True).astype("int64")
    x = lax.optimization_barrier(x)  # or XLA would compute it once for each pass
    extreme = (lax.reduce_max if largest else lax.reduce_min)(x, (axis,))
    hit = lax.eq(x, lax.broadcast_in_dim(extreme, x.shape, _others(axis, x.ndim)))
    count, place = x.shape[axis], lax.broadcasted_iota("int32", x.shape, axis)
    places = lax.select(hit, place, lax.full(x.shape, count, "int32"))
    places = lax.select(lax.ne(x, x), place - count, places)  # below all others: the extreme may have passed over nan
    first = lax.reduce_min(places, (axis,))
    return lax.expand_dims(lax.select(first < 0, first + count, first), [axis]).astype("int64")


def _others(axis: int, ndim: int) -> tuple[int, ...]:
    return tuple(k for k in range(ndim) if k != axis)


def _extreme(x: Any, axis: int, keepdims: bool, largest: bool) -> tuple[Any, Any]:
    if not x.ndim:
        return x, jnp.zeros((), "int64")
    axis %= x.ndim
    places = _place(axis, largest, lax.stop_gradient(x))
    values = jnp.take_along_axis(x, places, axis)
    return (values, places) if keepdims else (lax.squeeze(values, [axis]), lax.squeeze(places, [axis]))


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
    index, src = even(index), even(src)
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


OVERRIDES = {
    "amax": functools.partial(reduced, largest=True), "amin": functools.partial(reduced, largest=False),
    "argmax": functools.partial(_arg, largest=True), "argmin": functools.partial(_arg, largest=False),
    "max_dim": functools.partial(_extreme, largest=True), "min_dim": functools.partial(_extreme, largest=False),
    "scatter_reduce": scatter_reduce, "searchsorted": searchsorted,
}  # fmt: skip
