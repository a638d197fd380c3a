"""Kernels for JAX, where the shared `impl` of an op would be wrong or slow under XLA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from graphc.lowering import (
    angles,
    barriers,
    bits,
    collectives,
    complexes,
    control,
    draws,
    gathering,
    local,
    matrices,
    orders,
    quotients,
    remainders,
    scans,
    scattering,
    sharding,
    sorting,
    sparse,
    special,
    strided,
    whole_numbers,
)
from graphc.lowering.windows import WINDOWS
from graphc.ops.dtypes import is_floating, is_inexact


def cast(x: Any, dtype: np.dtype) -> Any:
    """Float to integer as C does it: what does not fit becomes the smallest integer (XLA would saturate)."""
    if x.dtype.kind == "c" and dtype.kind != "c":
        if dtype.kind == "b":
            return x != 0
        x = x.real
    if x.dtype == bool and is_inexact(dtype):
        x = x.astype(np.uint8)  # XLA makes x * mask where(mask, x, 0), which forgets nan and infinities
    if not is_floating(x.dtype) or dtype.kind not in "iu":
        return lax.convert_element_type(x, dtype)
    wide = np.dtype(np.int64) if dtype.itemsize == 8 else np.dtype(np.int32)
    low = float(np.iinfo(wide).min)
    fits = (x >= low) & (x < -low)
    return jnp.where(fits, x, low).astype(wide).astype(dtype)


def view_as_complex(x: Any) -> Any:
    return lax.complex(x[..., 0], x[..., 1])


def pad_zeros(x: Any, low: tuple[int, ...], high: tuple[int, ...], interior: tuple[int, ...]) -> Any:
    return lax.pad(x, np.zeros((), x.dtype), list(zip(low, high, interior, strict=True)))


def relu(x: Any) -> Any:
    zero = lax.full_like(x, 0)
    return lax.select(lax.lt(x, zero), zero, x)


def _choice(better: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """`maximum` or `minimum`: the better operand, the first of equals, nan above all."""

    def kernel(x: Any, y: Any) -> Any:
        x, y = jnp.broadcast_arrays(x, y)
        first = lax.bitwise_or(lax.bitwise_or(better(x, y), lax.eq(x, y)), lax.ne(x, x))
        return lax.select(first, x, y)

    return kernel


_MODULES = (angles, barriers, bits, collectives, control, draws, gathering, local, matrices, orders, remainders,
            scans, scattering, sharding, sorting, sparse, special, strided,
            whole_numbers)  # fmt: skip
OVERRIDES: dict[str, Callable[..., Any]] = {
    **{name: kernel for module in _MODULES for name, kernel in module.OVERRIDES.items()},
    "cast": cast,
    "complex": lambda real, imag: lax.complex(*jnp.broadcast_arrays(real, imag)),
    "view_as_complex": view_as_complex,
    "maximum": _choice(lax.gt),
    "minimum": _choice(lax.lt),
    "pad_zeros": pad_zeros,
    "relu": relu,
    **WINDOWS,
}
# where an operand is complex, before those above
COMPLEX: dict[str, Callable[..., Any]] = {**complexes.KERNELS, **quotients.KERNELS}
