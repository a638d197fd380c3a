"""Quotients of complex numbers as PyTorch and NumPy have them: XLA has others of infinities and of zeros."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax


def div(x: Any, y: Any) -> Any:
    return _of_complex(*jnp.broadcast_arrays(x, y))


def reciprocal(x: Any) -> Any:
    return div(jnp.ones((), x.dtype), x)


@jax.custom_jvp  # what is not chosen has derivatives that are infinite
def _of_complex(x: Any, y: Any) -> Any:
    # R. L. Smith, Algorithm 116: Complex division, 1962
    a, b, c, d = x.real, x.imag, y.real, y.imag
    steep = jnp.abs(c) < jnp.abs(d)
    large, small = jnp.where(steep, d, c), jnp.where(steep, c, d)
    ratio = small / large
    scale = 1 / (large + small * ratio)
    real = jnp.where(steep, a * ratio + b, a + b * ratio) * scale
    imag = jnp.where(steep, b * ratio - a, b - a * ratio) * scale
    zero = (c == 0) & (d == 0)
    return lax.complex(jnp.where(zero, a / jnp.abs(c), real), jnp.where(zero, b / jnp.abs(c), imag))


@_of_complex.defjvp
def _jvp(primals: Any, tangents: Any) -> Any:
    y = primals[1]
    found = _of_complex(*primals)
    return found, _of_complex(tangents[0] - found * tangents[1], y)


KERNELS: dict[str, Callable[..., Any]] = {f.__name__: f for f in (div, reciprocal)}
