"""Kernels for JAX, where the shared `impl` of an op would be wrong or slow under XLA."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from graphc.lowering import matrices, sorting, special, strided
from graphc.lowering.windows import WINDOWS
from graphc.ops.dtypes import is_floating
from graphc.ops.rules import accumulation_dtype


def cast(x: Any, dtype: np.dtype) -> Any:
    """Float to integer as C does it: what does not fit becomes the smallest integer (XLA would saturate)."""
    if x.dtype.kind == "c" and dtype.kind not in "cb":
        x = x.real
    if not is_floating(x.dtype) or dtype.kind not in "iu":
        return x.astype(dtype)
    wide = np.dtype(np.int64) if dtype.itemsize == 8 else np.dtype(np.int32)
    low = float(np.iinfo(wide).min)
    fits = (x >= low) & (x < -low)
    return jnp.where(fits, x, low).astype(wide).astype(dtype)


def view_as_complex(x: Any) -> Any:
    return lax.complex(x[..., 0], x[..., 1])


def pad_zeros(x: Any, low: tuple[int, ...], high: tuple[int, ...], interior: tuple[int, ...]) -> Any:
    return lax.pad(x, jnp.zeros((), x.dtype), list(zip(low, high, interior, strict=True)))


def cumsum(x: Any, axis: int, reverse: bool) -> Any:
    return lax.cumsum(x.astype(accumulation_dtype(x.dtype)), axis, reverse=reverse)


OVERRIDES: dict[str, Callable[..., Any]] = {
    **matrices.OVERRIDES,
    **sorting.OVERRIDES,
    **special.OVERRIDES,
    **strided.OVERRIDES,
    "cast": cast,
    "cumsum": cumsum,
    "complex": lambda real, imag: lax.complex(*jnp.broadcast_arrays(real, imag)),
    "view_as_complex": view_as_complex,
    "pad_zeros": pad_zeros,
    **WINDOWS,
}
