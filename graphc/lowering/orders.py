"""`sort` and `argsort` under JAX, by keys: see `graphc.ops.orders`."""

from __future__ import annotations

import functools
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from graphc.ops.orders import INT64, keys, packed, places_in

BLOCK = 64  # elements of which the largest is asked first
PART = 8  # a search for the first elements pays up to this part of a row
_INT32 = np.dtype(np.int32)
_LEAST, _MOST = (np.int32(getattr(np.iinfo(_INT32), name)) for name in ("min", "max"))


def words(x: Any, axis: int, first: int | None) -> int:
    """The bytes that `sort` and `argsort` of an array order: of each element its key and place, in 64 bits, or, where
    they search for the `first` ones, a key of 32."""
    n = x.shape[axis] if x.shape else 0
    if x.dtype.itemsize < 8 and first is not None and 0 < PART * min(first, n) <= n:
        return 4 * x.size
    return 8 * x.size if n else 0


def argsort(x: Any, axis: int, descending: bool) -> Any:
    return _order(lax.stop_gradient(x), axis, descending, None)


def sort(x: Any, axis: int, descending: bool, first: int | None) -> tuple[Any, Any]:
    places = _order(lax.stop_gradient(x), axis, descending, first)
    return (jnp.take_along_axis(x, places, axis) if x.ndim else x), places


def _order(x: Any, axis: int, descending: bool, first: int | None) -> Any:
    if not x.ndim:
        return jnp.zeros((), INT64)
    axis %= x.ndim
    n = x.shape[axis]
    wanted = n if first is None else min(first, n)
    key = keys(jnp, x)
    key = ~key if descending else key
    if x.dtype.itemsize == 8:
        return _by_halves(key, axis, wanted)
    packing = functools.partial(_by_packing, axis=axis, count=wanted)
    if 0 < PART * wanted <= n and x.size:
        search = functools.partial(_by_search, axis=axis, count=wanted)
        return lax.platform_dependent(key, cpu=search, default=packing)
    return packing(key)


def _by_packing(key: Any, axis: int, count: int) -> Any:
    """The places of the `count` smallest keys."""
    found = lax.sort(packed(jnp, key, axis), dimension=axis, is_stable=False)
    return places_in(lax.slice_in_dim(found, 0, count, axis=axis))


def _by_halves(key: Any, axis: int, count: int) -> Any:
    """The same of keys of 64 bits: in the order of their low halves, and this in the order of the high ones."""
    before = _by_packing(key.astype(_INT32) ^ _LEAST, axis, key.shape[axis])
    high = jnp.take_along_axis((key >> 32).astype(_INT32), before, axis)
    return jnp.take_along_axis(before, _by_packing(high, axis, count), axis)


def _by_search(key: Any, axis: int, count: int) -> Any:
    """The same of few keys of at most 32 bits, of long rows from the blocks alone that have the largest of them.

    What comes before the largest of a block is in an earlier one of those, so that no more blocks than keys are needed.
    """
    rows = jnp.moveaxis(~key.astype(_INT32), axis, -1)
    shape, n = rows.shape[:-1], rows.shape[-1]
    rows = rows.reshape(-1, n)
    if n < BLOCK * PART * count:
        return _in_place(_largest(rows, count), shape, axis)
    blocks = -(-n // BLOCK)
    parts = jnp.pad(rows, ((0, 0), (0, blocks * BLOCK - n)), constant_values=_LEAST).reshape(-1, blocks, BLOCK)
    chosen = jnp.sort(_largest(lax.reduce_max(parts, (2,)), count), axis=1)
    few = jnp.take_along_axis(parts, chosen[:, :, None], axis=1).reshape(-1, count * BLOCK)
    found = _largest(few, count)
    places = jnp.take_along_axis(chosen, found // BLOCK, axis=1) * BLOCK + found % BLOCK
    return _in_place(places, shape, axis)


def _largest(rows: Any, count: int) -> Any:
    """The places of the largest of each row: XLA searches among float32, which on the CPU it compares by bits."""
    numbers = lax.bitcast_convert_type(jnp.where(rows < 0, rows ^ _MOST, rows), jnp.float32)
    return lax.top_k(numbers, count)[1]


def _in_place(places: Any, shape: tuple[int, ...], axis: int) -> Any:
    return jnp.moveaxis(places.reshape(*shape, -1), -1, axis).astype(INT64)


OVERRIDES = {"argsort": argsort, "sort": sort}
