"""Sines, tangents and their inverses under XLA on the CPU, in loops over vectors.

XLA calls the C library there, for one number after the other, which takes ten to twenty times longer. Elsewhere it has
functions of its own. What is complex, or of 16 bits, goes to XLA.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import lax

from graphc.lowering.slopes import with_slopes
from graphc.ops.spec import MANY


class _Precision(NamedTuple):
    """What depends on the dtype.

    largest  angle whose multiple of pi/2 is taken off without an error
    quarter  pi/2, in parts of so few bits that to subtract multiples of the first two is exact
    terms    of the series of sine and cosine, for angles up to pi/4
    atan     (1 - atan(z) / z) / z^2 as a polynomial in z^2: interpolates at Chebyshev nodes, for z up to tan(pi/8)
    half_pi  pi/2, and what is lost by its rounding
    """

    largest: float
    quarter: tuple[float, ...]
    terms: int
    atan: tuple[float, ...]
    half_pi: tuple[float, float]


_SINGLE = _Precision(
    2.0**13, (1.5703125, 0.0004837512969970703, 7.549533620476723e-08, 2.5633440682570896e-12), 4,
    (0.333333317611685199, -0.199995404836489634, 0.142639555979846392, -0.10743731490791083, 0.0645192820812174876),
    (1.5707963705062866, -4.3711390001862426e-08),
)  # fmt: skip
_DOUBLE = _Precision(
    2.0**20, (1.5707963109016418, 1.5893254712295857e-08, 6.123233932053594e-17, 6.36831716351095e-25), 8,
    (0.333333333333333302, -0.199999999999955207, 0.142857142846665429, -0.111111110152563617, 0.0909090457812390189,
     -0.0769218319082608656, 0.06664511447381948, -0.0585814891280220988, 0.0508544973794025986, -0.0392316582955871913,
     0.019176887119062259),
    (1.5707963267948966, 6.123233995736766e-17),
)  # fmt: skip
_PRECISIONS = {np.dtype(np.float32): _SINGLE, np.dtype(np.float64): _DOUBLE}


def _on_cpu(x: Any, here: Callable[..., Any], there: Callable[..., Any], *more: Any) -> Any:
    if x.dtype not in _PRECISIONS or x.size < MANY:
        return there(x, *more)
    return lax.platform_dependent(x, *more, cpu=here, default=there)


def _series(t: Any, coefficients: Sequence[float]) -> Any:
    total: Any = t.dtype.type(coefficients[-1])
    for c in coefficients[-2::-1]:
        total = total * t + t.dtype.type(c)
    return total


def _parted(x: Any) -> tuple[Any, Any, Any]:
    """(k, r, rest): x is k pi/2 + r + rest, where r is at most pi/4, and the rest below its rounding."""
    first, second, third, last = (x.dtype.type(part) for part in _PRECISIONS[x.dtype].quarter)
    k = lax.round(x * x.dtype.type(2 / math.pi), lax.RoundingMethod.TO_NEAREST_EVEN)
    near, off = (x - k * first) - k * second, k * third
    r = near - off
    back = r - near  # Knuth's sum of two numbers, with its error
    rest = (near - (r - back)) - (off + back)
    return k, r, rest - k * last


def _sine(r: Any, rest: Any) -> Any:
    t = r * r
    factors = [(-1) ** n / math.factorial(2 * n + 1) for n in range(1, _PRECISIONS[r.dtype].terms + 1)]
    return r + (r * t * _series(t, factors) + rest * (1 - t * r.dtype.type(0.5)))


def _cosine(r: Any, rest: Any) -> Any:
    t = r * r
    factors = [(-1) ** n / math.factorial(2 * n) for n in range(2, _PRECISIONS[r.dtype].terms + 2)]
    head = _head(r)
    half = head * head * r.dtype.type(0.5)  # exact
    near = 1 - half
    lost = (r - head) * (r + head) * r.dtype.type(0.5) + r * rest
    return near + (((1 - near) - half) + (t * t * _series(t, factors) - lost))


def _head(x: Any) -> Any:
    """`x` with the first half of its bits, whose products are exact."""
    found = jnp.finfo(x.dtype)
    return lax.reduce_precision(x, found.nexp, found.nmant // 2)


def _turned(quarters: int, x: Any) -> Any:
    """The sine of x, so many quarters of a turn ahead."""
    k, r, rest = _parted(x)
    turn = k.astype(np.int32) + np.int32(quarters)
    size = jnp.where(turn & 1 == 0, _sine(r, rest), _cosine(r, rest))
    size = jnp.where(turn & 2 == 0, size, -size)
    return jnp.where(x == 0, x, size) if quarters == 0 else size  # -0 stays


def _quotient(x: Any) -> Any:
    k, r, rest = _parted(x)
    sine, cosine = _sine(r, rest), _cosine(r, rest)
    even = k.astype(np.int32) & 1 == 0
    return jnp.where(x == 0, x, jnp.where(even, sine, -cosine) / jnp.where(even, cosine, sine))


def _periodic(vectors: Callable[[Any], Any], other: Callable[[Any], Any], slope: Callable[..., Any]) -> Any:
    """`other`, by `vectors` on the CPU unless an angle is too large for them. slope(x, result): the derivative."""

    def here(x: Any) -> Any:
        within = ~(lax.abs(x) > x.dtype.type(_PRECISIONS[x.dtype].largest)) | jnp.isinf(x)
        return lax.cond(within.all(), vectors, other, x)

    return with_slopes(lambda x: _on_cpu(x, here, other), lambda x, r: (slope(x, r),))


sin = _periodic(functools.partial(_turned, 0), jnp.sin, lambda x, r: cos(x))
cos = _periodic(functools.partial(_turned, 1), jnp.cos, lambda x, r: -sin(x))
tan = _periodic(_quotient, jnp.tan, lambda x, r: 1 + r * r)


def _angle(y: Any, x: Any) -> Any:
    """The angle of the point (x, y) in [-pi, pi]."""
    kind, precision = x.dtype.type, _PRECISIONS[x.dtype]
    right, up = lax.abs(x), lax.abs(y)
    # large numbers are made smaller: their sum might overflow
    scale = jnp.where(jnp.maximum(right, up) > np.finfo(x.dtype).max / 4, kind(0.25), kind(1))
    right, up = right * scale, up * scale
    steep, flat = up > right * kind(1 + math.sqrt(2)), (up < right * kind(math.sqrt(2) - 1)) | (up == 0)
    above = jnp.where(steep, -right, jnp.where(flat, up, up - right))
    below = jnp.where(steep, up, jnp.where(flat, right, up + right))
    above = jnp.where(jnp.isinf(right) & jnp.isinf(up), 0, above)
    z = jnp.where(above == 0, 0, above / below)
    z = jnp.where((up != up) | (right != right), kind(np.nan), z)
    t = z * z
    lost = z * t * _series(t, precision.atan)
    # the angle is `eighths` pi/4 + atan(z); left of the origin it is taken from pi
    eighths = jnp.where(steep, 2, jnp.where(flat, 0, 1)).astype(x.dtype)
    left = jnp.signbit(x)
    eighths, z, lost = jnp.where(left, 4 - eighths, eighths), jnp.where(left, -z, z), jnp.where(left, -lost, lost)
    high, low = (kind(part / 2) for part in precision.half_pi)
    whole = eighths * high
    size = whole + z
    off = (size - whole) - z
    return jnp.copysign(size - (off + (lost - eighths * low)), y)


def _inverse(vectors: Callable[..., Any], other: Callable[..., Any], slope: Callable[..., Any]) -> Any:
    """`other`, by `vectors` on the CPU. slope(*operands): the derivatives."""
    return with_slopes(lambda x, *more: _on_cpu(x, vectors, other, *more), lambda *given: slope(*given[:-1]))


def _opposite(x: Any) -> Any:
    """The cosine whose sine is x, or the reverse."""
    return lax.sqrt((1 - x) * (1 + x))


def _of_point(y: Any, x: Any) -> tuple[Any, Any]:
    square = x * x + y * y
    return x / square, -y / square


atan = _inverse(lambda x: _angle(x, jnp.ones_like(x)), jnp.arctan, lambda x: (1 / (1 + x * x),))
asin = _inverse(lambda x: _angle(x, _opposite(x)), jnp.arcsin, lambda x: (lax.rsqrt(1 - x * x),))
acos = _inverse(lambda x: _angle(_opposite(x), x), jnp.arccos, lambda x: (-lax.rsqrt(1 - x * x),))
_atan2 = _inverse(_angle, jnp.arctan2, _of_point)


def atan2(y: Any, x: Any) -> Any:
    return _atan2(*jnp.broadcast_arrays(y, x))


OVERRIDES = {"acos": acos, "asin": asin, "atan": atan, "atan2": atan2, "cos": cos, "sin": sin, "tan": tan}
