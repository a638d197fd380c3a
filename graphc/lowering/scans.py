"""Running sums, products and extremes under XLA on the CPU: in each of many blocks at once, then over the blocks.

XLA adds in a tree there, and jumps through memory unless rows are long. Along the last axis blocks do not pay, unless
what is computed of two numbers takes longer than to transpose them; sums are products with a triangle of ones.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from graphc.lowering.zeros import unsigned
from graphc.ops.rules import accumulation_dtype
from graphc.ops.sorting import logaddexp, zeros_alike

LONG = 2**13  # elements, from which blocks pay
SHORT = 2**7  # of them along the axis, up to which they do not
WIDE = 2**5  # behind the axis, from which they do
BLOCK = 2**6
TRIANGLE = 2**5


def along(
    x: Any, axis: int, combine: Callable[[Any, Any], Any], other: Callable[..., Any], reverse: bool = False,
    costly: bool = False,
) -> Any:  # fmt: skip
    """The associative `combine` of all up to each element; `other(x, axis=, reverse=)` where that is faster."""

    def there(x: Any) -> Any:
        return other(x, axis=axis, reverse=reverse)

    def here(x: Any) -> Any:
        x = lax.rev(x, (axis,)) if reverse else x
        r = _scanned(x.reshape(math.prod(x.shape[:axis]), x.shape[axis], -1), combine).reshape(x.shape)
        return lax.rev(r, (axis,)) if reverse else r

    if not x.ndim or x.size < LONG or x.shape[axis] <= SHORT:
        return there(x)
    axis %= x.ndim
    if not costly and math.prod(x.shape[axis + 1 :]) < WIDE:
        return there(x)
    return lax.platform_dependent(x, cpu=here, default=there)


def _scanned(x: Any, combine: Callable[[Any, Any], Any]) -> Any:
    """Along the middle one of three axes."""
    outer, count, inner = x.shape
    blocks = -(-count // BLOCK)
    # the last block ends with numbers that nothing is read from
    whole = jnp.pad(x, ((0, 0), (0, blocks * BLOCK - count), (0, 0)), mode="edge") if count % BLOCK else x
    lanes = jnp.moveaxis(whole.reshape(outer, blocks, BLOCK, inner), 2, 0)

    def step(carry: Any, row: Any) -> tuple[Any, Any]:
        carry = combine(carry, row)
        return carry, carry

    last, rest = lax.scan(step, lanes[0], lanes[1:])
    within = jnp.concatenate([lanes[:1], rest])
    if blocks > 1:
        before = jnp.broadcast_to(jnp.roll(_scanned(last, combine), 1, 1), within.shape)
        first = lax.broadcasted_iota("int32", within.shape, 2) == 0
        within = jnp.where(first, within, combine(before, within))
    return jnp.moveaxis(within, 0, 2).reshape(outer, blocks * BLOCK, inner)[:, :count]


def _by_products(x: Any, reverse: bool) -> Any:
    """The running sums of floats along the last axis: a triangle of ones times parts, then those of the parts' sums."""
    *lead, count = x.shape
    ones = np.tri(TRIANGLE, dtype=x.dtype)
    ones = ones if reverse else ones.T
    parts = -(-count // TRIANGLE)
    if parts == 1:
        return jnp.matmul(x, ones[:count, :count], precision=lax.Precision.HIGHEST)
    rest = parts * TRIANGLE - count
    whole = jnp.pad(x, [*[(0, 0)] * len(lead), (0, rest)]) if rest else x
    within = jnp.matmul(whole.reshape(-1, TRIANGLE), ones, precision=lax.Precision.HIGHEST)
    within = within.reshape(*lead, parts, TRIANGLE)
    sums = _by_products(within[..., 0 if reverse else -1], reverse)
    before = [*[(0, 0)] * len(lead), (0, 1) if reverse else (1, 0)]
    sums = jnp.pad(sums[..., 1:] if reverse else sums[..., :-1], before)
    return (within + sums[..., None]).reshape(*lead, -1)[..., :count]


def _sums_of_rows(x: Any, axis: int, reverse: bool) -> Any:
    """`lax.cumsum` along the last axis, in a third of its time; and it, where 0 * inf would be among the products."""
    fast = _by_products(x, reverse)
    finite = jnp.isfinite(fast[..., 0 if reverse else -1]).all()  # what is not reaches the last sum
    return lax.cond(finite, lambda: fast, lambda: lax.cumsum(x, axis=axis, reverse=reverse))


def cumsum(x: Any, axis: int, reverse: bool) -> Any:
    x = x.astype(accumulation_dtype(x.dtype))
    if not x.ndim:
        return lax.cumsum(x, axis, reverse=reverse)
    if x.size >= LONG and axis % x.ndim == x.ndim - 1 and x.dtype in ("float32", "float64"):
        by_rows = functools.partial(_sums_of_rows, axis=x.ndim - 1, reverse=reverse)
        other = functools.partial(lax.cumsum, axis=x.ndim - 1, reverse=reverse)
        return unsigned(lax.platform_dependent(x, cpu=by_rows, default=other))
    return unsigned(along(x, axis, lax.add, lax.cumsum, reverse))


def cumprod(x: Any, axis: int) -> Any:
    return along(x.astype(accumulation_dtype(x.dtype)), axis, lax.mul, lax.cumprod)


def argcummax(x: Any, axis: int, largest: bool) -> Any:
    x = x.astype("uint8") if x.dtype == bool else x
    running = along(x, axis, lax.max, lax.cummax) if largest else along(x, axis, lax.min, lax.cummin)
    places = lax.broadcasted_iota("int64", x.shape, axis)
    return along(jnp.where((x == running) | (x != x), places, 0), axis, lax.max, lax.cummax)


def logcumsumexp(x: Any, axis: int) -> Any:
    if x.dtype.kind == "c":
        combine = functools.partial(logaddexp, jnp)
        return lax.associative_scan(combine, zeros_alike(jnp, x), axis=axis) if x.size else x
    return unsigned(along(x, axis, jnp.logaddexp, lax.cumlogsumexp, costly=True))


OVERRIDES = {f.__name__: f for f in (argcummax, cumprod, cumsum, logcumsumexp)}
