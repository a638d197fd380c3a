"""Functions of whole numbers, up to the least and the largest: JAX's `gcd` never ends at the least, and its powers of
arrays are wrong from the exponent 64 on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import lax


def gcd(x: Any, y: Any) -> Any:
    x, y = jnp.broadcast_arrays(x, y)

    def step(pair: tuple[Any, Any]) -> tuple[Any, Any]:
        x, y = pair
        return jnp.where(y == 0, x, y), jnp.where(y == 0, 0, lax.rem(x, jnp.where(y == 0, 1, y)))

    return jnp.abs(lax.while_loop(lambda pair: (pair[1] != 0).any(), step, (x, y))[0])


def lcm(x: Any, y: Any) -> Any:
    x, y = jnp.broadcast_arrays(x, y)
    common = gcd(x, y)
    return jnp.where(common == 0, 0, lax.div(jnp.abs(x), jnp.where(common == 0, 1, common)) * jnp.abs(y))


def integer_pow(x: Any, y: Any) -> Any:
    """Modulo the range of the dtype; to a negative power only 1 and -1 have integers."""
    x, y = jnp.broadcast_arrays(x, y)

    def step(known: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        base, rest, power = known
        return base * base, rest >> 1, jnp.where(rest & 1 == 1, power * base, power)

    start = (x, jnp.maximum(y, 0), jnp.ones_like(x))
    power = lax.while_loop(lambda known: (known[1] > 0).any(), step, start)[2]
    inverse = jnp.where(x == 1, 1, jnp.where(x == -1, 1 - 2 * (y & 1), 0))
    return jnp.where(y < 0, inverse, power).astype(x.dtype)


OVERRIDES: dict[str, Callable[..., Any]] = {f.__name__: f for f in (gcd, integer_pow, lcm)}
