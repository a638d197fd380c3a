"""Kernels that NumPy or SciPy has as slow loops over numbers, as passes of vectors over blocks that stay in cache."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from graphc.ops import choosing
from graphc.ops.dtypes import FLOAT32, FLOAT64

SMALL = 2**11  # elements, up to which the calls of passes cost more than they save
BLOCK = 2**13
_KINDS = (FLOAT32, FLOAT64)


def in_blocks(
    function: Callable[..., None], dtype: np.dtype, wide: np.dtype, *operands: np.ndarray, size: int = BLOCK
) -> np.ndarray:
    """What `function(*blocks, out)` writes, block by block of the operands, which are broadcast, and cast to `wide`."""
    reads: list[Any] = [["readonly"]] * len(operands)
    loop: Any = np.nditer(
        [*operands, None], ["external_loop", "buffered", "zerosize_ok"], [*reads, ["writeonly", "allocate"]],
        [*[wide] * len(operands), dtype], casting="same_kind", buffersize=size,
    )  # fmt: skip
    with loop, np.errstate(all="ignore"):
        for blocks in loop:
            function(*blocks)
        return loop.operands[-1]


def _pays(x: Any, y: Any) -> bool:
    """Whether operands are many numbers of a type that these kernels are written for."""
    if x.size <= SMALL and y.size <= SMALL:
        return False
    return x.dtype == y.dtype and x.dtype in _KINDS


def _log_of_sum(x: np.ndarray, y: np.ndarray, out: np.ndarray) -> None:
    apart = np.subtract(x, y)
    np.abs(apart, out=apart)
    np.negative(apart, out=apart)
    np.exp(apart, out=apart)
    np.log1p(apart, out=apart)
    apart += np.maximum(x, y)
    if np.isfinite(apart.max(initial=0.0)):
        out[...] = apart
    else:  # equal infinities are a nan apart
        out[...] = np.logaddexp(x, y)


def logaddexp(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """`np.logaddexp`, in a quarter of the time, and with half of its error in float32, which is computed in float64."""
    return in_blocks(_log_of_sum, x.dtype, FLOAT64, x, y) if _pays(x, y) else np.logaddexp(x, y)


def softplus(x: np.ndarray) -> np.ndarray:
    """log(1 + exp(x))."""
    return logaddexp(x, np.zeros((), x.dtype))


_HEAD = np.int64(-(1 << 27))  # the bits of half a float64
_LARGEST = {FLOAT32: 2.0**29, FLOAT64: 2.0**26}  # quotients up to which the remainder has no rounding


def _rest(dtype: np.dtype, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """`np.fmod` in float64, of numbers of `dtype`: x - y trunc(x / y).

    The product of a float32 and such a quotient is exact, and so is that of half of the bits of a float64. The quotient
    was rounded: it may be 1 too large.
    """
    whole = np.divide(x, y)
    np.trunc(whole, out=whole)
    if not max(whole.max(initial=0.0), -whole.min(initial=0.0)) <= _LARGEST[dtype] or np.isinf(y).any():
        return np.fmod(x, y)
    if dtype == FLOAT32:
        rest = np.subtract(x, np.multiply(whole, y, out=whole), out=whole)
    else:
        head = (y.view(np.int64) & _HEAD).view(FLOAT64)
        rest = x - whole * head
        rest -= np.multiply(whole, y - head, out=whole)
    beyond = (rest < 0) != (x < 0)
    beyond &= rest != 0
    if beyond.any():
        rest[beyond] += np.copysign(y, x)[beyond]
    return np.copysign(rest, x, out=rest)


def _truncated(dtype: np.dtype, x: np.ndarray, y: np.ndarray, out: np.ndarray) -> None:
    out[...] = _rest(dtype, x, y)


def _signed_as_divisor(r: np.ndarray, y: np.ndarray) -> np.ndarray:
    """A zero keeps the sign of the dividend, where NumPy gives it the divisor's."""
    return choosing.where((r != 0) & ((y < 0) != (r < 0)), r + y, r)


def _floored(dtype: np.dtype, x: np.ndarray, y: np.ndarray, out: np.ndarray) -> None:
    out[...] = _signed_as_divisor(_rest(dtype, x, y), y)  # the sum of two float32 is rounded twice to the same


def fmod(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """`np.fmod`, the same bits, in a third of the time unless quotients are large."""
    if not _pays(x, y):
        return np.fmod(x, y)
    return in_blocks(functools.partial(_truncated, x.dtype), x.dtype, FLOAT64, x, y)


def remainder(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """`fmod` with the sign of the divisor."""
    if x.dtype.kind in "iu" and y.dtype == x.dtype:
        return np.remainder(x, y)  # there is one zero
    if not _pays(x, y):
        return _signed_as_divisor(np.fmod(x, y), y)
    return in_blocks(functools.partial(_floored, x.dtype), x.dtype, FLOAT64, x, y)


def _whole(dtype: np.dtype, x: np.ndarray, y: np.ndarray, out: np.ndarray) -> None:
    rest = _rest(dtype, x, y)
    rest, x, y = (v.astype(dtype, copy=False) for v in (rest, x, y))
    if not y.all():
        out[...] = np.floor_divide(x, y)
        return
    quotient = np.subtract(x, rest)
    quotient /= y
    quotient -= (rest != 0) & ((y < 0) != (rest < 0))
    np.floor(quotient, out=out)
    quotient -= out
    out += quotient > 0.5
    np.copysign(out, np.divide(x, y, out=quotient), out=out)


def floor_divide(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """`np.floor_divide`, the same bits."""
    if not _pays(x, y):
        return np.floor_divide(x, y)
    return in_blocks(functools.partial(_whole, x.dtype), x.dtype, FLOAT64, x, y)


_FEW = 2**11
_FLAT = 4.0  # from 3.92 on erf is 1 in float32
# (artanh(erf(x)) - x) / x as a polynomial in x^2 up to there, with the least error of erf in ULP
_BEND = tuple(
    np.array(c, FLOAT32)
    for c in (
        0.1283792001823265, 0.10277121888814135, -0.00020153552747178118, -0.0006046477260391511, 7.712075978316761e-05,
        -2.062656827234501e-06, -4.822284891382524e-07, 5.131726697523674e-08, -1.5624410994419837e-09,
    )
)  # fmt: skip


def _erf(x: np.ndarray, out: np.ndarray) -> None:
    """The tangent, which has vectors, of the angle that the polynomial gives: flat where erf is, it rounds well."""
    square = np.multiply(x, x)
    np.minimum(square, np.float32(_FLAT * _FLAT), out=square)
    angle = np.multiply(square, _BEND[-1])
    for c in _BEND[-2:0:-1]:
        np.add(angle, c, angle)
        np.multiply(angle, square, angle)
    np.add(angle, _BEND[0], angle)
    np.multiply(angle, x, angle)
    np.add(angle, x, angle)
    np.tanh(angle, out)


def erf(x: np.ndarray) -> np.ndarray:
    """The error function of float32, to 3 ULP, in a tenth of SciPy's time."""
    if x.dtype != FLOAT32 or x.size <= _FEW:
        import scipy.special

        return scipy.special.erf(x)
    return in_blocks(_erf, FLOAT32, FLOAT32, x, size=2**15)


_NEAR = 5.0  # of -log(1 - x^2): |x| < 0.997
# erfinv(x) / x as a polynomial in -log(1 - x^2) - 2.5, through the Chebyshev nodes up to there
_INVERSE = tuple(
    np.array(c, FLOAT32)
    for c in (
        1.5014094114303589, 0.24664027988910675, -0.004177392926067114, -0.0012527264188975096, 0.00021834939252585173,
        -4.972419901605463e-06, -3.4639851946849376e-06, 4.681313612309168e-07, 2.333596782477798e-08,
        -8.931926309685423e-09,
    )
)  # fmt: skip


def _erfinv(x: np.ndarray, out: np.ndarray) -> None:
    w = np.subtract(1, x)
    w *= np.add(1, x)
    np.log(w, w)
    np.negative(w, w)
    far = ~(w < _NEAR)  # nan, too
    w -= np.float32(_NEAR / 2)
    np.multiply(w, _INVERSE[-1], out)
    for c in _INVERSE[-2:0:-1]:
        np.add(out, c, out)
        np.multiply(out, w, out)
    np.add(out, _INVERSE[0], out)
    np.multiply(out, x, out)
    if far.any():
        out[far] = _scipy_erfinv(x[far])


def _scipy_erfinv(x: np.ndarray) -> np.ndarray:
    import scipy.special

    return np.copysign(scipy.special.erfinv(x), x)  # SciPy loses the sign of zero


def erfinv(x: np.ndarray) -> np.ndarray:
    """The inverse of the error function; of many float32 numbers to 3 ULP, as SciPy has it, in a quarter of its time.

    The kind of approximation is that of M. Giles, "Approximating the erfinv function" (2010).
    """
    if x.dtype != FLOAT32 or x.size <= _FEW:
        return _scipy_erfinv(x)
    return in_blocks(_erfinv, FLOAT32, FLOAT32, x, size=2**15)
