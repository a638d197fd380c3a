"""Kernels for JAX of special functions: those that XLA lacks run on the host, in SciPy."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy import special

from graphc.lowering.callbacks import on_host
from graphc.lowering.slopes import with_slopes
from graphc.lowering.zeros import unsigned
from graphc.ops.bessel import ON_HOST
from graphc.ops.spec import Op
from graphc.ops.special import incomplete_gamma


def _on_host(op: Op) -> Callable[..., Any]:
    def kernel(*arrays: Any) -> Any:
        shape: Any = jnp.broadcast_shapes(*(a.shape for a in arrays))
        result = shape, arrays[0].dtype
        return on_host(lambda *values: [op.kernel(*values)], [result], *arrays)[0]

    return kernel


def log1p(x: Any) -> Any:
    if x.dtype != np.float64:
        return jnp.log1p(x)
    low = x < -0.3  # XLA's loses 7 bits of float64 between -0.4142 and -0.35
    return jnp.where(low, jnp.log(1 + x), jnp.log1p(jnp.where(low, 0, x)))


def atanh(x: Any) -> Any:
    return (log1p(x) - log1p(-x)) / 2 if x.dtype == np.float64 else jnp.arctanh(x)


def xlog1py(x: Any, y: Any) -> Any:
    if x.dtype != np.float64:
        return special.xlog1py(x, y)
    vanishing = (x == 0) & ((y <= -1) | (y == jnp.inf))
    r = x * log1p(jnp.where(vanishing, 0, y))
    return jnp.where(x == 0, unsigned(r), r)


def entr(x: Any) -> Any:
    r = special.entr(x)
    return jnp.where(x == 0, unsigned(r), r)


def _unscaled(scaled: Any, x: Any) -> Any:
    """exp(|x|) scaled, in float32 also where exp(|x|) alone is infinite: SciPy computes that in float64."""
    if x.dtype.itemsize >= 8:
        return jnp.exp(jnp.abs(x)) * scaled
    root = jnp.exp(jnp.abs(x) / 2)
    return root * scaled * root


i0 = with_slopes(lambda x: _unscaled(special.i0e(x), x), lambda x, r: (i1(x),))  # JAX's derivative is exp(|x|) at 0


def i1(x: Any) -> Any:
    return _unscaled(i1e(x), x)


def i1e(x: Any) -> Any:
    return special.i1e(unsigned(x))


def erfcx(x: Any) -> Any:
    # XLA flushes erfc where it is denormal, and jax.scipy.special.erfcx is 0 there (x from 9.2 to 9.6 in float32)
    far = x > (9 if x.dtype.itemsize < 8 else 26)
    large = jnp.where(far, x, 30)
    s = 0.5 / jnp.square(large)
    series = 1 - s * (1 - 3 * s * (1 - 5 * s * (1 - 7 * s * (1 - 9 * s * (1 - 11 * s * (1 - 13 * s))))))
    return jnp.where(far, series / (large * math.sqrt(math.pi)), special.erfcx(jnp.where(far, 1, x)))  # DLMF 7.12.1


def log_ndtr(x: Any) -> Any:
    # jax.scipy.special.log_ndtr switches to a short asymptotic series
    low = x < -1
    left = jnp.where(low, x, -2)
    tail = jnp.log(erfcx(-left * math.sqrt(0.5)) / 2) - left * (left / 2)  # the square may be out of range
    return jnp.where(low, tail, log1p(-special.erfc(jnp.where(low, 0, x) * math.sqrt(0.5)) / 2))


def _incomplete_gamma(function: Any, at_zero: int, a: Any, x: Any) -> Any:
    # JAX has nan where a is 0, and anything where it is infinite
    at_0, at_infinity = (a == 0) & (x > 0), jnp.isposinf(a) & (x >= 0) & (x < jnp.inf)
    plain = (a != 0) & ~jnp.isposinf(a)
    r = jnp.where(plain, function(jnp.where(plain, a, 1), x), jnp.nan)
    r = jnp.where(at_0, 1 - at_zero, jnp.where(at_infinity, at_zero, r))
    return incomplete_gamma(jnp, r.astype(x.dtype), a, x, at_zero)


def digamma(x: Any) -> Any:
    # JAX has nan at 0
    return jnp.where(x == 0, -jnp.copysign(jnp.inf, x), special.digamma(jnp.where(x == 0, 1, x))).astype(x.dtype)


def zeta(s: Any, q: Any) -> Any:
    # JAX takes no q < 0: there the terms with a negative base are those of two other series, up to their sign
    pole = (q <= 0) & (q == jnp.floor(q))
    left = (q < 0) & ~pole
    size = jnp.where(left, -q, 0.5)
    low = size - jnp.floor(size)
    sign = jnp.where(jnp.abs(s) % 2 == 1, -1, 1)
    # half-way between integers the first two cancel, exactly, and may be much larger than the third
    mirrored = (sign * special.zeta(s, low) + special.zeta(s, 1 - low)) - sign * special.zeta(s, size + 1)
    direct = special.zeta(s, jnp.where((q > 0) & (q < jnp.inf), q, 1))
    direct = jnp.where((q == jnp.inf) | (q != q), jnp.nan, direct)
    result = jnp.where(left, jnp.where(s == jnp.floor(s), mirrored, jnp.nan), direct)
    result = jnp.where(pole, jnp.inf, result)
    result = jnp.where(s == jnp.inf, jnp.where(q < 1, jnp.inf, jnp.where(q == 1, 1, jnp.nan)), result)
    return jnp.where(s < 1, jnp.nan, jnp.where(s == 1, jnp.inf, result)).astype(q.dtype)


@jax.custom_jvp
def nextafter(x: Any, y: Any) -> Any:
    return jnp.nextafter(x, y)


@nextafter.defjvp
def _(primals: Any, tangents: Any) -> Any:
    x, y = primals
    # JAX has no derivative of it
    return nextafter(x, y), jnp.where(x == y, 0, tangents[0])


def sinc(x: Any) -> Any:
    """JAX's is 0 at infinity from 0.12 on; PyTorch and NumPy have nan."""
    scaled = x * math.pi
    return jnp.where(x == 0, 1, jnp.sin(scaled) / jnp.where(x == 0, 1, scaled))


OVERRIDES: dict[str, Callable[..., Any]] = {
    **{op.name: _on_host(op) for op in ON_HOST},
    "atanh": atanh,
    "digamma": digamma,
    "i0": i0,
    "igamma": functools.partial(_incomplete_gamma, special.gammainc, 0),
    "igammac": functools.partial(_incomplete_gamma, special.gammaincc, 1),
    "log1p": log1p,
    "nextafter": nextafter,
    "sinc": sinc,
    "special_entr": entr,
    "special_erfcx": erfcx,
    "special_i1": i1,
    "special_i1e": i1e,
    "special_log_ndtr": log_ndtr,
    "special_modified_bessel_i0": i0,
    "special_modified_bessel_i1": i1,
    "special_xlog1py": xlog1py,
    "special_zeta": zeta,
}
