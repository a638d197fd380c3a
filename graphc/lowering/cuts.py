"""Functions of complex numbers with cuts, on the side of the cut that the sign of a zero says: XLA takes -0 for 0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import lax

from graphc.lowering import angles, quotients


def _like(part: Any, sign: Any) -> Any:
    """`part` with the sign of `sign`: a choice, so that it has a derivative."""
    return jnp.where(jnp.signbit(part) != jnp.signbit(sign), -part, part)


def sqrt(x: Any) -> Any:
    found = jnp.sqrt(x)
    return lax.complex(found.real, _like(found.imag, x.imag)) if x.dtype.kind == "c" else found


def rsqrt(x: Any) -> Any:
    return quotients.reciprocal(sqrt(x))


def asin(x: Any) -> Any:
    if x.dtype.kind != "c":
        return angles.asin(x)
    found = jnp.arcsin(x)
    return lax.complex(_like(found.real, x.real), _like(found.imag, x.imag))


def acos(x: Any) -> Any:
    if x.dtype.kind != "c":
        return angles.acos(x)
    found = jnp.arccos(x)
    return lax.complex(found.real, _like(found.imag, -x.imag))


def asinh(x: Any) -> Any:
    found = jnp.arcsinh(x)
    if x.dtype.kind != "c":
        return found
    return lax.complex(_like(found.real, x.real), _like(found.imag, x.imag))


def acosh(x: Any) -> Any:
    found = jnp.arccosh(x)
    return lax.complex(found.real, _like(found.imag, x.imag)) if x.dtype.kind == "c" else found


OVERRIDES: dict[str, Callable[..., Any]] = {f.__name__: f for f in (acos, acosh, asin, asinh, rsqrt, sqrt)}
