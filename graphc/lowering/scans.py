"""Running sums, products and extremes under XLA on the CPU: in each of many blocks at once, then over the blocks.

XLA adds in a tree there, and jumps through memory unless rows are long. Along the last axis blocks do not pay, unless
what is computed of two numbers takes longer than to transpose them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import lax

from graphc.lowering.zeros import unsigned
from graphc.ops.rules import accumulation_dtype
from graphc.ops.sorting import logaddexp, zeros_alike

LONG = 2**13  # elements, from which blocks pay
SHORT = 2**7  # of them along the axis, up to which they do not
WIDE = 2**5  # behind the axis, from which they do
BLOCK = 2**6


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


def cumsum(x: Any, axis: int, reverse: bool) -> Any:
    x = x.astype(accumulation_dtype(x.dtype))
    return unsigned(along(x, axis, lax.add, lax.cumsum, reverse)) if x.ndim else lax.cumsum(x, axis, reverse=reverse)


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
