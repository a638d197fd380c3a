"""Functions of complex numbers at infinities, nan and zeros, as C's Annex G has them, which NumPy and PyTorch follow.

XLA forgets the sign of a zero, and so the side of a cut, and has nan where one part is no number. What is chosen here
is chosen where the result is not finite, or is a sign, so that derivatives stay JAX's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax

from graphc.lowering import quotients

_HALF_PI = math.pi / 2
_Function = Callable[[Any], Any]


def _like(part: Any, sign: Any) -> Any:
    """`part` with the sign of `sign`: a choice, so that it has a derivative."""
    return jnp.where(jnp.signbit(part) != jnp.signbit(sign), -part, part)


def _turned(function: _Function) -> _Function:
    """i f(-i z): the sine of the hyperbolic sine, and so on."""

    def kernel(z: Any) -> Any:
        found = function(lax.complex(z.imag, -z.real))
        return lax.complex(-found.imag, found.real)

    return kernel


def abs(z: Any) -> Any:
    return jnp.where(jnp.isinf(z.real) | jnp.isinf(z.imag), jnp.inf, jnp.abs(z))


def _logarithm(function: _Function) -> _Function:
    def kernel(z: Any) -> Any:
        found = function(z)
        return lax.complex(jnp.where(jnp.isinf(z.real) | jnp.isinf(z.imag), jnp.inf, found.real), found.imag)

    return kernel


def sqrt(z: Any) -> Any:
    x, y, found = z.real, z.imag, jnp.sqrt(z)
    lost = jnp.isnan(y)
    real = jnp.where(jnp.isinf(y) | (lost & (x == jnp.inf)), jnp.inf, found.real)
    imag = jnp.where(lost & (x == -jnp.inf), jnp.inf, jnp.where(jnp.isinf(y), y, _like(found.imag, y)))
    return lax.complex(real, imag)


def rsqrt(z: Any) -> Any:
    return quotients.reciprocal(sqrt(z))


def exp(z: Any) -> Any:
    x, y, size = z.real, z.imag, jnp.exp(z.real)
    no_angle = ~jnp.isfinite(y)
    real = jnp.where(no_angle & jnp.isinf(x), size, size * jnp.cos(y))
    imag = jnp.where((y == 0) & ~jnp.isfinite(size), y, size * jnp.sin(y))
    return lax.complex(real, jnp.where(no_angle & (x == -jnp.inf), jnp.copysign(size, y), imag))


def exp2(z: Any) -> Any:
    two = jnp.asarray(math.log(2), z.real.dtype)
    return exp(lax.complex(z.real * two, z.imag * two))


def expm1(z: Any) -> Any:
    x, y = z.real, z.imag
    half = jnp.sin(y / 2)
    return lax.complex(jnp.expm1(x) * jnp.cos(y) - 2 * half * half, jnp.exp(x) * jnp.sin(y))


def sinh(z: Any) -> Any:
    x, y, odd, even = z.real, z.imag, jnp.sinh(z.real), jnp.cosh(z.real)
    no_angle = ~jnp.isfinite(y)
    real = jnp.where((no_angle & (x == 0)) | ((y == 0) & ~jnp.isfinite(x)), x, odd * jnp.cos(y))
    imag = jnp.where((y == 0) & ~jnp.isfinite(even), y, even * jnp.sin(y))
    return lax.complex(jnp.where(no_angle & jnp.isinf(x), jnp.inf, real), imag)


def cosh(z: Any) -> Any:
    x, y, odd, even = z.real, z.imag, jnp.sinh(z.real), jnp.cosh(z.real)
    no_angle = ~jnp.isfinite(y)
    real = jnp.where(no_angle & jnp.isinf(x), jnp.inf, even * jnp.cos(y))
    imag = jnp.where((y == 0) & ~jnp.isfinite(odd), jnp.where(x < 0, -y, y), odd * jnp.sin(y))
    return lax.complex(real, jnp.where(no_angle & (x == 0), 0.0, imag))


def cos(z: Any) -> Any:
    return cosh(lax.complex(-z.imag, z.real))


def tanh(z: Any) -> Any:
    x, y, found = z.real, z.imag, jnp.tanh(z)
    no_angle, far = ~jnp.isfinite(y), jnp.isinf(x)
    real = jnp.where(far, jnp.sign(x), jnp.where(no_angle & (x == 0), x, found.real))
    edge = jnp.where(no_angle, jnp.copysign(0, y), jnp.copysign(0, jnp.sin(2 * y)))
    return lax.complex(real, jnp.where(far, edge, jnp.where(y == 0, _like(found.imag, y), found.imag)))


def asinh(z: Any) -> Any:
    x, y, found = z.real, z.imag, jnp.arcsinh(z)
    lost = (jnp.isnan(x) & jnp.isfinite(y)) | (jnp.isnan(y) & jnp.isfinite(x))
    real = jnp.where(lost, jnp.nan, _like(found.real, x))
    return lax.complex(real, jnp.where(lost, jnp.where(y == 0, y, jnp.nan), _like(found.imag, y)))


def acos(z: Any) -> Any:
    x, y, found = z.real, z.imag, jnp.arccos(z)
    lost = (jnp.isnan(x) & jnp.isfinite(y)) | (jnp.isnan(y) & jnp.isfinite(x))
    real = jnp.where(lost, jnp.where(x == 0, _HALF_PI, jnp.nan), found.real)
    return lax.complex(real, jnp.where(lost, jnp.nan, _like(found.imag, -y)))


def acosh(z: Any) -> Any:
    x, y, found = z.real, z.imag, acos(z)  # i or -i times this, so that the real part is not negative
    on_cut = (y == 0) & (x > 1)  # of acos, which has no derivative there
    inside = jnp.where(on_cut, x, 2)
    real = jnp.where(on_cut, jnp.arccosh(inside), _like(found.imag, jnp.zeros_like(found.imag)))
    return lax.complex(real, jnp.where(on_cut, y * lax.rsqrt(inside * inside - 1), _like(found.real, y)))


def atanh(z: Any) -> Any:
    x, y, found = z.real, z.imag, jnp.arctanh(z)
    lost = jnp.isnan(x) | jnp.isnan(y)
    real = jnp.where(jnp.isinf(y) | (jnp.isnan(y) & (jnp.isinf(x) | (x == 0))), 0.0, jnp.nan)
    imag = jnp.where(jnp.isinf(y), _HALF_PI, jnp.nan)
    return lax.complex(_like(jnp.where(lost, real, found.real), x), _like(jnp.where(lost, imag, found.imag), y))


def pow(x: Any, y: Any) -> Any:
    x, y = jnp.broadcast_arrays(x, y)
    odd = (y != 0) & ~((x != 0) & jnp.isfinite(x) & jnp.isfinite(y))
    found = jnp.power(jnp.where(odd, 1, x), y)
    return lax.cond(odd.any(), lambda: jnp.where(odd, _odd_power(x, y), found), lambda: found)


def _odd_power(x: Any, y: Any) -> Any:
    """As NumPy has it: by products for small whole exponents, by exp(y log(x)) for others."""
    count = jnp.where((y.imag == 0) & (jnp.abs(y.real) < 100), y.real, 0)
    whole = (count != 0) & (count == jnp.floor(count))
    bits = jnp.abs(count).astype(np.int32)
    power, factor = x, x  # of the lowest bit that is set there is no product: 1 * x is not x
    begun = jnp.zeros(x.shape, bool)
    for k in range(7):
        taken = (bits >> k) & 1 == 1
        power = jnp.where(taken, jnp.where(begun, power * factor, factor), power)
        begun |= taken
        factor = factor * factor
    power = jnp.where(count < 0, quotients.reciprocal(power), power)
    other = exp(_product(y, KERNELS["log"](x)))
    nothing = jnp.where(y.real > 0, 0, lax.complex(*[jnp.asarray(jnp.nan, x.real.dtype)] * 2))
    return jnp.where(x == 0, nothing, jnp.where(whole, power, other))


def _product(x: Any, y: Any) -> Any:
    """A product that stays infinite, as Annex G has it."""
    found = _multiplied(x, y)
    sides = [(jnp.isinf(z.real) | jnp.isinf(z.imag)) for z in (x, y)]
    boxed = [_boxed(z, far) for z, far in zip((x, y), sides, strict=True)]
    again = _multiplied(*boxed)
    lost = jnp.isnan(found.real) & jnp.isnan(found.imag) & (sides[0] | sides[1])
    return jnp.where(lost, lax.complex(again.real * jnp.inf, again.imag * jnp.inf), found)


def _boxed(z: Any, far: Any) -> Any:
    """A point on the unit square in the direction of what is infinite; 0 for nan."""
    parts = [
        jnp.where(far, jnp.copysign(jnp.isinf(p).astype(p.dtype), p), jnp.where(jnp.isnan(p), jnp.copysign(0, p), p))
        for p in (z.real, z.imag)
    ]
    return lax.complex(*parts)


def _multiplied(x: Any, y: Any) -> Any:
    return lax.complex(x.real * y.real - x.imag * y.imag, x.real * y.imag + x.imag * y.real)


KERNELS: dict[str, Callable[..., Any]] = {
    **{f.__name__: f for f in (abs, acos, acosh, asinh, atanh, cos, cosh, exp, exp2, expm1, rsqrt, sinh, sqrt, tanh)},
    **{name: _logarithm(getattr(jnp, name)) for name in ("log", "log2", "log10", "log1p")},
    "sin": _turned(sinh), "tan": _turned(tanh), "asin": _turned(asinh), "atan": _turned(atanh), "pow": pow,
}  # fmt: skip
