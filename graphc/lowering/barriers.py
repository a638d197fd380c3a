"""Keeping XLA from merging what is to be computed twice.

XLA's CPU backend drops `lax.optimization_barrier` before its schedule and its common subexpressions are settled:
measured, a program with such barriers takes no less memory than without recomputation. A select by a predicate that
depends on a value, and that XLA does not know to be always true, holds until machine code is made, which drops it.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import lax


def held(x: Any, until: Any) -> Any:
    """`x`, once `until` is known."""
    if not until.size or not x.size:
        return x
    one = lax.reshape(lax.slice(until, (0,) * until.ndim, (1,) * until.ndim), ())
    one = lax.real(one) if one.dtype.kind == "c" else one
    if one.dtype.kind == "b":
        bits = one.astype(jnp.uint32)
    else:
        bits = lax.bitcast_convert_type(one, jnp.dtype(f"uint{8 * one.dtype.itemsize}"))
    # fused into what asks for it, the predicate would keep all of `until` alive: XLA fuses no sort of two
    bits = lax.sort(jnp.stack([bits, bits.dtype.type(0)]))[1]
    known = lax.lt(bits & bits.dtype.type(1), bits.dtype.type(2))  # the lowest bit is 0 or 1
    return lax.select(jnp.broadcast_to(known, x.shape), x, lax.full_like(x, 0))


OVERRIDES = {"held": held}
