"""Kernels for JAX of special functions: those that XLA lacks run on the host, in SciPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy import special

from graphc.ops.bessel import ON_HOST
from graphc.ops.spec import Op
from graphc.ops.special import incomplete_gamma


def _on_host(op: Op) -> Callable[..., Any]:
    def kernel(*arrays: Any) -> Any:
        shape = jnp.broadcast_shapes(*(a.shape for a in arrays))
        result = jax.ShapeDtypeStruct(shape, arrays[0].dtype)
        return jax.pure_callback(
            lambda *values: np.asarray(op.kernel(*map(np.asarray, values)), result.dtype),
            result,
            *arrays,
            vmap_method="broadcast_all",
        )

    return kernel


def log_ndtr(x: Any) -> Any:
    # jax.scipy.special.log_ndtr switches to a short asymptotic series
    left = jnp.minimum(x, -1)
    tail = jnp.log(special.erfcx(-left * math.sqrt(0.5)) / 2) - left * left / 2
    return jnp.where(x < -1, tail, jnp.log1p(-special.erfc(jnp.maximum(x, -1) * math.sqrt(0.5)) / 2))


def igamma(a: Any, x: Any) -> Any:
    return incomplete_gamma(jnp, special.gammainc(a, x), a, x, 0)


def igammac(a: Any, x: Any) -> Any:
    return incomplete_gamma(jnp, special.gammaincc(a, x), a, x, 1)


@jax.custom_jvp
def nextafter(x: Any, y: Any) -> Any:
    return jnp.nextafter(x, y)


@nextafter.defjvp
def _(primals: Any, tangents: Any) -> Any:
    x, y = primals
    # JAX has no derivative of it
    return nextafter(x, y), jnp.where(x == y, 0, tangents[0])


OVERRIDES: dict[str, Callable[..., Any]] = {
    **{op.name: _on_host(op) for op in ON_HOST},
    "igamma": igamma,
    "igammac": igammac,
    "nextafter": nextafter,
    "special_log_ndtr": log_ndtr,
}
