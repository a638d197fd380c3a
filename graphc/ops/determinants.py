"""Determinants of square matrices, and their logarithms."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from graphc.ops import exact
from graphc.ops.aval import Aval
from graphc.ops.dtypes import real_of
from graphc.ops.gradient import is_complex
from graphc.ops.linalg import swap_last
from graphc.ops.matrices import FLOATING, adjoint, of_known, square
from graphc.ops.rounding import ELIMINATES
from graphc.ops.samples import Regular, Sample
from graphc.ops.spec import Op, Rule, Trait, op
from graphc.ops.threads import small_alone

_CERTAIN = 2.0**20  # condition, up to which an inverse in float64 has more digits than float32


def _scalar(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    x = square(op, avals, params)
    return Aval(x.shape[:-2], x.dtype)


@functools.partial(of_known, finite=True)
def by_singular_values(x):
    """det(x) x^-T of x = U S V: it needs no inverse."""
    xp = x.__array_namespace__()
    u, s, v = xp.linalg.svd(x)
    one = xp.ones_like(s[..., :1])
    before = xp.cumprod(xp.concatenate([one, s[..., :-1]], axis=-1), axis=-1)
    behind = xp.cumprod(xp.concatenate([one, s[..., :0:-1]], axis=-1), axis=-1)[..., ::-1]
    scale = before * behind
    # det(x) x^-T = det(U) det(V) conj(U S' V), with the products of all singular values but one in S'
    return (xp.linalg.det(u) * xp.linalg.det(v))[..., None, None] * xp.conj((u * scale[..., None, :]) @ v)


@small_alone("numpy")
def _np_cofactor(x):
    # in double precision: of a matrix of small integers it is exact in float32
    wide = np.dtype(np.complex128 if x.dtype.kind == "c" else np.float64)
    given = x.astype(wide)
    found = _by_inverse(given) if x.dtype.itemsize < wide.itemsize else None
    return (by_singular_values(given) if found is None else found).astype(x.dtype)


def _by_inverse(x):
    """det(x) x^-T in a tenth of the time; None unless all inverses are known to more digits than float32 has."""
    if not np.isfinite(x).all():
        return None
    try:
        inverse = np.linalg.inv(x)
    except np.linalg.LinAlgError:
        return None
    condition = np.linalg.norm(x, axis=(-2, -1)) * np.linalg.norm(inverse, axis=(-2, -1))
    if not (condition < _CERTAIN).all():
        return None
    return np.linalg.det(x)[..., None, None] * np.swapaxes(inverse, -2, -1)


def _cofactor_vjp(F, g, r, input):
    # c = det(x) x^-T: dc = tr(x^-1 dx) c - x^-T dx^T c
    t = swap_last(F, F.inv(input, checked=True))
    n = len(r.shape)
    return F.sum(g * r, axis=(n - 2, n - 1), keepdims=True) * t - r @ swap_last(F, g) @ t


def _det_vjp(F, g, r, input, input_shape):
    shape = (*input_shape[:-2], 1, 1)
    if input_shape[-1] >= 2:
        g = F.where(r == 0, 0, g)  # det(x) x^-T, computed like this, is 0 for a singular matrix: PyTorch's choice
    return F.reshape(g, shape=shape) * F.cofactor(input)


def _elimination(avals: list[Aval], result: Any, params: Mapping[str, Any]) -> int:
    return 2 * avals[0].shape[-1] * avals[0].size // 3


det = op(
    "det", "input", impl=lambda xp, x: xp.linalg.det(x), numpy=small_alone("numpy")(of_known(np.linalg.det)),
    rule=Rule(_scalar, accepts=FLOATING), flops=_elimination,
    traits=Trait.HOLOMORPHIC,
    label="LinalgDet", rounding=ELIMINATES, ref=exact.determinant,
    samples=(Sample(Regular((3, 3))), Sample(Regular((2, 2, 2)))),
    vjp=dict(input=_det_vjp),
)  # fmt: skip
cofactor = op(
    "cofactor", "input", impl=lambda xp, x: by_singular_values(x), numpy=_np_cofactor,
    rule=Rule(square, accepts=FLOATING), flops=lambda avals, result, params: 4 * _elimination(avals, result, params),
    traits=Trait.HOLOMORPHIC,
    rounding=ELIMINATES, ref=exact.cofactors,
    samples=(Sample(Regular((3, 3))), Sample(Regular((2, 2, 2)))), vjp=dict(input=_cofactor_vjp),
)  # fmt: skip


def _two_scalars(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> tuple[Aval, ...]:
    sign = _scalar(op, avals, params)
    return sign, Aval(sign.shape, real_of(sign.dtype))


def _slogdet(xp, x):
    sign, logs = xp.linalg.slogdet(x)
    return xp.where(sign == 0, 0, sign), logs  # 0 has no sign, though pivots have


@small_alone("numpy")
@of_known
def _np_slogdet(x):
    sign, logs = map(np.asarray, np.linalg.slogdet(x))
    return np.where(np.isnan(logs), logs, sign).astype(sign.dtype), logs


def _slogdet_vjp(F, g_sign, g_logabsdet, r_sign, input, input_shape, input_dtype):
    # d log det(x) = tr(x^-1 dx): its real part is that of the logarithm, its imaginary part that of the angle
    g = g_logabsdet
    if is_complex(input):
        angle = None if g_sign is None else F.imag(g_sign * F.conj(r_sign))
        zero = 0 * (g if angle is None else angle)
        g = F.complex(zero if g is None else g, zero if angle is None else angle)
    elif g is None:  # the sign is constant
        return F.full(shape=input_shape, value=0, dtype=input_dtype)
    shape = (*g.shape, 1, 1)
    return F.reshape(g, shape=shape) * adjoint(F, F.inv(input, checked=False))


def _ref_slogdet(x):
    d = exact.determinant(x)
    if not np.all(d):
        raise ValueError("a singular matrix")
    return np.sign(d), np.log(np.abs(d))


slogdet = op(
    "slogdet", "input", results="sign logabsdet", impl=_slogdet, numpy=_np_slogdet, flops=_elimination,
    rule=Rule(_two_scalars, accepts=FLOATING), label="LinalgSlogdet", rounding=ELIMINATES, ref=_ref_slogdet,
    samples=(Sample(Regular((3, 3))), Sample(Regular((2, 2, 2)))), vjp=dict(input=_slogdet_vjp),
)  # fmt: skip
