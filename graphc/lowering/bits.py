"""`bitcast` under JAX, which looks at the bytes of neither complex numbers nor bools."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

_BYTE = np.dtype(np.uint8)


def converted(x: Any, dtype: np.dtype) -> Any:
    """`lax.bitcast_convert_type`, apart from conversions before it: XLA makes one of two, of a wrong shape."""
    return lax.bitcast_convert_type(x if x.dtype.itemsize == dtype.itemsize else lax.optimization_barrier(x), dtype)


def bitcast(x: Any, dtype: np.dtype) -> Any:
    if x.dtype.kind == "c":  # as pairs
        pairs = jnp.stack([x.real, x.imag], axis=-1)
        x = pairs.reshape(*x.shape[:-1], x.shape[-1] * 2) if x.ndim else pairs
    elif x.dtype.kind == "b":
        x = x.astype(_BYTE)
    part = np.dtype(f"f{dtype.itemsize // 2}") if dtype.kind == "c" else _BYTE if dtype.kind == "b" else dtype
    have, want = x.dtype.itemsize, part.itemsize
    if have < want:
        x = x.reshape(*x.shape[:-1], x.shape[-1] * have // want, want // have)
    x = converted(x, part)
    if have > want:
        x = x.reshape(*x.shape[:-2], x.shape[-2] * x.shape[-1])
    if dtype.kind == "c":
        x = x.reshape(*x.shape[:-1], x.shape[-1] // 2, 2)
        return lax.complex(x[..., 0], x[..., 1])
    return x.astype(bool) if dtype.kind == "b" else x


OVERRIDES = {"bitcast": bitcast}
