"""Factorizations of matrices.

    qr    Q, R: l = min(m, n) columns and rows, or m if `complete`
    lu    L (without its diagonal) and U in one matrix; the permutation p with x[p] = L U; and as LAPACK has that, the
          row, from 1, with which each is exchanged

The gradient with respect to a Hermitian matrix is Hermitian, as in PyTorch.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from graphc.errors import LinAlgError
from graphc.ops.aval import Aval
from graphc.ops.dtypes import INT32, INT64
from graphc.ops.gradient import numpy_dtype
from graphc.ops.linalg import swap_last
from graphc.ops.matrices import (
    FLOATING,
    adjoint,
    columns,
    eye,
    half_sum,
    halved,
    matrix_sizes,
    of_known,
    plus,
    rows,
    square,
)
from graphc.ops.rounding import ELIMINATES, Rounding, along, norm
from graphc.ops.samples import Definite, Ints, Regular, Sample
from graphc.ops.solving import failure
from graphc.ops.spec import Check, Op, Rule, Trait, op
from graphc.ops.threads import small_alone

INDEFINITE = (
    "linalg.cholesky: {batch}The factorization could not be completed because the input is not positive-definite (the "
    "leading minor of order {at} is not positive-definite)."
)
COMPLETE = "The QR decomposition is not differentiable when mode='complete' and nrows > ncols."


def minors(x: np.ndarray) -> np.ndarray:
    """The order of the first leading minor that is not positive, 0 if all are; one number a matrix."""
    from scipy.linalg import lapack

    (potrf,) = lapack.get_lapack_funcs(("potrf",), (x,))
    orders = []
    for m in x.reshape(-1, *x.shape[-2:]):
        factor, order = potrf(m, lower=1)
        unknown = np.flatnonzero(np.isnan(np.diagonal(factor)))
        orders.append(order or (unknown[0] + 1 if unknown.size else 0))
    return np.array(orders, np.int32).reshape(x.shape[:-2])


@small_alone("numpy")
def _np_cholesky(x):
    h = half_sum(np, x)
    try:
        factor = np.linalg.cholesky(h)
    except np.linalg.LinAlgError:
        raise failure(INDEFINITE, minors(h)) from None
    if factor.size and np.isnan(factor[..., -1, -1]).any():  # nan anywhere reaches the last element
        raise failure(INDEFINITE, minors(h))
    return factor


def _definite(xp, x):
    return True if xp is np else ~xp.any(xp.isnan(xp.linalg.cholesky(half_sum(xp, x))))


def _cholesky_vjp(F, g, r):
    # r^-H phi(r^H g) r^-1, phi half of the lower triangle and of its mirror image
    half = 0.5 * F.tril(adjoint(F, r) @ g, diagonal=0)
    inner = half + adjoint(F, F.tril(half, diagonal=-1))
    upper = adjoint(F, r)
    left = F.solve_triangular(upper, inner, upper=True, unit=False)
    return adjoint(F, F.solve_triangular(upper, adjoint(F, left), upper=True, unit=False))


def _ref_cholesky(x):
    result = np.zeros_like(x)
    for at in np.ndindex(x.shape[:-2]):
        m, low = x[at], result[at]
        for i in range(len(m)):
            for j in range(i + 1):
                rest = m[i, j] - low[i, :j] @ low[j, :j]
                low[i, j] = np.sqrt(rest) if i == j else rest / low[j, j]
    return result


cholesky = op(
    "cholesky", "input", impl=lambda xp, x: xp.linalg.cholesky(half_sum(xp, x)), numpy=_np_cholesky,
    rule=Rule(square, accepts=FLOATING),
    label="LinalgCholeskyEx", rounding=ELIMINATES, ref=_ref_cholesky,
    band=lambda shape, params, x: (shape[-1] - 1, 0), vjp=dict(input=_cholesky_vjp),
    check=Check(_definite, LinAlgError, "linalg.cholesky: The factorization could not be completed because the input "
                "is not positive-definite."),
    samples=(Sample(Definite((3, 3))), Sample(Definite((2, 2, 2)))),
)  # fmt: skip


def _lu_shape(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> tuple[Aval, ...]:
    batch, m, n = matrix_sizes(avals[0])
    return avals[0], Aval((*batch, m), INT64), Aval((*batch, min(m, n)), INT32)


def _empty_lu(x):
    m, n = x.shape[-2:]
    order = np.broadcast_to(np.arange(m), x.shape[:-1]).copy()
    return x.copy(), order, np.zeros((*x.shape[:-2], min(m, n)), np.int32)


@small_alone("scipy")
@of_known
def _np_lu(x):
    from scipy.linalg import lapack

    factors, order, pivots = _empty_lu(x)
    (getrf,) = lapack.get_lapack_funcs(("getrf",), (x,))
    for at in np.ndindex(x.shape[:-2] if x.size else (0,)):
        factors[at], swaps, _ = getrf(x[at])
        pivots[at] = swaps + 1
        line = order[at]
        for i, k in enumerate(swaps):
            line[i], line[k] = line[k], line[i]
    return factors, order, pivots


def _ref_lu(x):
    factors, order, pivots = _empty_lu(x)
    for at in np.ndindex(x.shape[:-2]):
        a, line = factors[at], order[at]
        for k in range(min(a.shape)):
            pivot = k + np.argmax(abs(a[k:, k]))
            a[[k, pivot]], line[[k, pivot]] = a[[pivot, k]], line[[pivot, k]]
            pivots[at][k] = pivot + 1
            a[k + 1 :, k] /= a[k, k]
            a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return factors, order, pivots


def unpermuted(F, x, order):
    """y with y[order] = x, for matrices x and permutations of their rows."""
    return permuted(F, x, F.argsort(order, axis=len(order.shape) - 1, descending=False))


def permuted(F, x, order):
    """x[order], for matrices x and permutations of their rows."""
    column = F.reshape(order, shape=(*order.shape, 1))
    return F.gather(x, F.broadcast_to(column, shape=tuple(x.shape)), axis=len(x.shape) - 2)


def _lu_vjp(F, g_factors, r_factors, r_order, input_shape, input_dtype):
    # x[p] = L U. With x = [x1 x2] or [x1; x2], x1 square, x2 = L U2 or L2 U is a system to solve, whose gradient
    # flows on to the square part: d(x1) = L^-T (tril(L^T dL) + triu(dU U^T)) U^-T
    m, n = input_shape[-2:]
    k = min(m, n)
    one = eye(F, k, input_dtype)
    factors, g = r_factors, g_factors
    corner, g_corner = rows(F, columns(F, factors, 0, k), 0, k), rows(F, columns(F, g, 0, k), 0, k)
    lower, upper = F.tril(corner, diagonal=-1) + one, F.triu(corner, diagonal=0)
    lower_t, upper_t = swap_last(F, lower), swap_last(F, upper)
    inner_l = lower_t @ F.tril(g_corner, diagonal=-1)
    inner_u = F.triu(g_corner, diagonal=0) @ upper_t
    if n > k:
        g_wide = columns(F, g, k, n)
        inner_l = inner_l - g_wide @ swap_last(F, columns(F, factors, k, n))
        wide = F.solve_triangular(lower_t, g_wide, upper=True, unit=True)
    if m > k:
        g_tall = rows(F, g, k, m)
        inner_u = inner_u - swap_last(F, rows(F, factors, k, m)) @ g_tall
        tall = swap_last(F, F.solve_triangular(upper, swap_last(F, g_tall), upper=True, unit=False))
    inner = F.tril(inner_l, diagonal=-1) + F.triu(inner_u, diagonal=0)
    left = F.solve_triangular(lower_t, inner, upper=True, unit=True)
    d = swap_last(F, F.solve_triangular(upper, swap_last(F, left), upper=True, unit=False))
    axis = len(input_shape) - 2
    if n > k:
        d = F.cat(d, wide, axis=axis + 1)  # type: ignore[possibly-undefined]
    if m > k:
        d = F.cat(d, tall, axis=axis)  # type: ignore[possibly-undefined]
    return unpermuted(F, d, r_order)


lu = op(
    "lu", "input", results="factors order pivots", impl=_np_lu, numpy=_np_lu,
    rule=Rule(_lu_shape, accepts=FLOATING), traits=Trait.HOLOMORPHIC,
    label="LinalgLuFactorEx", rounding=ELIMINATES,
    ref=_ref_lu, vjp=dict(input=_lu_vjp),
    samples=(Sample(Regular((3, 3))), Sample(Regular((2, 4))), Sample(Regular((2, 3, 2)))),
)  # fmt: skip


def _permutation(swaps, size):
    order = np.broadcast_to(np.arange(size), (*swaps.shape[:-1], size)).copy()
    for at in np.ndindex(swaps.shape[:-1]):
        line = order[at]
        for i, k in enumerate(swaps[at]):
            line[i], line[k] = line[k], line[i]
    return order


def _ref_permutation(swaps, size):
    order = np.broadcast_to(np.eye(size), (*swaps.shape[:-1], size, size))
    for i in range(swaps.shape[-1]):
        turn = np.stack([np.eye(size)] * max(swaps[..., 0].size, 1)).reshape(*swaps.shape[:-1], size, size).copy()
        for at in np.ndindex(swaps.shape[:-1]):
            turn[at][[i, swaps[at][i]]] = turn[at][[swaps[at][i], i]]
        order = turn @ order
    return np.argmax(order, axis=-1)


# what LAPACK's row swaps, counted from 0, make of 0, 1, ..., size - 1
permutation = op(
    "permutation", "swaps", params={"size": 0}, impl=_permutation, numpy=_permutation, ref=_ref_permutation,
    rule=Rule(lambda op, avals, params: Aval((*avals[0].shape[:-1], params["size"]), INT64)),
    samples=(Sample(Ints((3,), 5), size=5), Sample(Ints((2, 2), 3), size=3)),
)  # fmt: skip


def _qr_shape(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> tuple[Aval, ...]:
    batch, m, n = matrix_sizes(avals[0])
    k = m if params["complete"] else min(m, n)
    return Aval((*batch, m, k), avals[0].dtype), Aval((*batch, k, n), avals[0].dtype)


def _qr(xp, x, complete):
    return tuple(xp.linalg.qr(x, mode="complete" if complete else "reduced"))


def _ref_qr(x, complete):
    """By Householder's reflections, each written out, with LAPACK's choice: away from the column's sign."""
    *batch, m, n = x.shape
    width = m if complete else min(m, n)
    factors = np.zeros((*batch, m, width)), np.zeros((*batch, width, n))
    for at in np.ndindex(*batch):
        q, r = np.eye(m), x[at].astype(float)
        for k in range(min(m - 1, n)):
            v = np.zeros(m)
            v[k:] = r[k:, k]
            v[k] += np.copysign(np.sqrt(v @ v), v[k])
            turn = np.eye(m) - 2 * np.outer(v, v) / (v @ v)
            q, r = q @ turn, turn @ r
        factors[0][at], factors[1][at] = q[:, :width], np.triu(r)[:width]
    return factors


def _qr_vjp(F, g_q, g_r, r_q, r_r, input_shape, input_dtype, complete):
    m, n = input_shape[-2:]
    k = min(m, n)
    if complete and m > n:
        raise RuntimeError(COMPLETE)
    upper, g_rest = r_r, None
    if n > k:  # x = [x1 x2], x2 = Q R2
        upper = columns(F, r_r, 0, k)
        if g_r is not None:
            g_rest = columns(F, g_r, k, n)
            g_q = plus(g_q, r_q @ columns(F, r_r, k, n) @ adjoint(F, g_rest))
            g_r = columns(F, g_r, 0, k)
    inner = None if g_r is None else g_r @ adjoint(F, upper)
    inner = inner if g_q is None else plus(inner, -(adjoint(F, r_q) @ g_q))
    inner = F.triu(inner, diagonal=0)
    d = plus(g_q, r_q @ halved(F, inner + adjoint(F, inner), input_dtype))
    d = adjoint(F, F.solve_triangular(upper, adjoint(F, d), upper=True, unit=False))
    if n > k:
        none = F.full(shape=(*input_shape[:-1], n - k), value=0, dtype=numpy_dtype(d))
        rest = none if g_rest is None else r_q @ g_rest
        d = F.cat(d, rest, axis=len(input_shape) - 1)
    return d


qr = op(
    "qr", "input", results="q r", params={"complete": False}, impl=_qr,
    numpy=small_alone("numpy")(functools.partial(_qr, np)), rule=Rule(_qr_shape, accepts=FLOATING),
    label="LinalgQr",
    claims=lambda params, result: (("band", 0, math.inf),) if result else (("orthogonal",),),
    rounding=Rounding(terms=along(-2), operand=norm), ref=_ref_qr,
    samples=(Sample(Regular((3, 3)), complete=False), Sample(Regular((4, 2)), complete=False),
             Sample(Regular((2, 2, 3)), complete=False), Sample(Regular((2, 2)), complete=True)),
    vjp=dict(input=_qr_vjp),
)  # fmt: skip
