"""Factorizations of matrices. An op has one result, so the factors come as the blocks of one matrix:

    eigh, eig   (n + 1, n)        the eigenvalues as a row, above the eigenvectors as columns
    svd         (1 + m + n, k)    the singular values, U, and V, with x = U S V^H and k = min(m, n)
    qr          (m, l + n)        Q beside R, which is filled up with rows of zeros; l = k, or m if `complete`
    lu          (m, n + 2)        L (without its diagonal) and U, the permutation p with x[p] = L U, and the row swaps

The gradient rules are PyTorch's: of a Hermitian matrix the gradient is Hermitian, and where it depends on the free
choice of a sign or phase it means nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from graphc.errors import LinAlgError
from graphc.ops.aval import Aval
from graphc.ops.dtypes import INT64, complex_of
from graphc.ops.gradient import is_complex
from graphc.ops.linalg import swap_last
from graphc.ops.matrices import (
    adjoint,
    columns,
    differences,
    eye,
    halved,
    hermitian_part,
    quotient,
    real_values,
    rows,
    square,
)
from graphc.ops.samples import Definite, Regular, Sample
from graphc.ops.solving import failure
from graphc.ops.spec import Check, Op, Rule, Trait, op

INDEFINITE = (
    "linalg.cholesky: {batch}The factorization could not be completed because the input is not positive-definite (the "
    "leading minor of order {at} is not positive-definite)."
)
COMPLETE = "The QR decomposition is not differentiable when mode='complete' and nrows > ncols."


def _half_sum(xp: Any, x: Any) -> Any:
    """The Hermitian part of x."""
    return (x + xp.conj(xp.swapaxes(x, -1, -2))) / 2


def _sizes(x: Aval) -> tuple[tuple[int, ...], int, int]:
    if x.ndim < 2:
        raise RuntimeError("The input tensor A must have at least 2 dimensions.")
    return x.shape[:-2], *x.shape[-2:]


# --- Cholesky


def minors(x: np.ndarray) -> np.ndarray:
    """The order of the first leading minor that is not positive, 0 if all are; one number a matrix."""
    from scipy.linalg import lapack

    (potrf,) = lapack.get_lapack_funcs(("potrf",), (x,))
    return np.array([potrf(m, lower=1)[1] for m in x.reshape(-1, *x.shape[-2:])], np.int32).reshape(x.shape[:-2])


def _np_cholesky(x):
    h = _half_sum(np, x)
    try:
        return np.linalg.cholesky(h)
    except np.linalg.LinAlgError:
        raise failure(INDEFINITE, minors(h)) from None


def _definite(xp, x):
    return True if xp is np else ~xp.any(xp.isnan(xp.linalg.cholesky(_half_sum(xp, x))) & ~xp.any(xp.isnan(x)))


def _cholesky_vjp(F, g, r, input_dtype):
    # x^-H phi(r^H g) x^-1, phi the lower triangle with half of the diagonal
    inner = halved(F, F.tril(adjoint(F, r) @ g, diagonal=0), input_dtype)
    upper = adjoint(F, r)
    left = F.solve_triangular(upper, inner, upper=True, unit=False)
    return hermitian_part(F, adjoint(F, F.solve_triangular(upper, adjoint(F, left), upper=True, unit=False)))


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
    "cholesky", "input", impl=lambda xp, x: xp.linalg.cholesky(_half_sum(xp, x)), numpy=_np_cholesky, rule=Rule(square),
    label="LinalgCholeskyEx", ref=_ref_cholesky, vjp=dict(input=_cholesky_vjp),
    check=Check(_definite, LinAlgError, "linalg.cholesky: The factorization could not be completed because the input is not "
                "positive-definite."),
    samples=(Sample(Definite((3, 3))), Sample(Definite((2, 2, 2)))),
)  # fmt: skip


# --- LU


def _lu_shape(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    batch, m, n = _sizes(avals[0])
    return Aval((*batch, m, n + 2), avals[0].dtype)


def _np_lu(x):
    from scipy.linalg import lapack

    m, n = x.shape[-2:]
    result = np.zeros((*x.shape[:-1], n + 2), x.dtype)
    (getrf,) = lapack.get_lapack_funcs(("getrf",), (x,))
    for at in np.ndindex(x.shape[:-2]):
        factors, swaps, _ = getrf(x[at]) if x.size else (x[at], np.zeros(0, int), 0)
        order = list(range(m))
        for i, k in enumerate(swaps):
            order[i], order[k] = order[k], order[i]
        result[at][:, :n] = factors
        result[at][:, n] = order
        result[at][: len(swaps), n + 1] = swaps
    return result


def _ref_lu(x):
    m, n = x.shape[-2:]
    result = np.zeros((*x.shape[:-1], n + 2), x.dtype)
    for at in np.ndindex(x.shape[:-2]):
        a, order = x[at].copy(), np.arange(m)
        for k in range(min(m, n)):
            pivot = k + np.argmax(abs(a[k:, k]))
            a[[k, pivot]], order[[k, pivot]] = a[[pivot, k]], order[[pivot, k]]
            result[at][k, n + 1] = pivot
            a[k + 1 :, k] /= a[k, k]
            a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
        result[at][:, :n], result[at][:, n] = a, order
    return result


def unpermuted(F, x, order):
    """y with y[order] = x, for matrices x and permutations of their rows as columns of integers."""
    axis = len(x.shape) - 2
    inverse = F.argsort(order, axis=axis, descending=False)
    return F.gather(x, F.broadcast_to(inverse, shape=tuple(x.shape)), axis=axis)


def _lu_vjp(F, g, r, input_shape, input_dtype):
    # x[p] = L U. With x = [x1 x2] or [x1; x2], x1 square, x2 = L U2 or L2 U is a system to solve, whose gradient
    # flows on to the square part: d(x1) = L^-T (tril(L^T dL) + triu(dU U^T)) U^-T
    m, n = input_shape[-2:]
    k = min(m, n)
    one = eye(F, k, input_dtype)
    factors, g = columns(F, r, 0, n), columns(F, g, 0, n)
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
    order = columns(F, r, n, n + 1)
    return unpermuted(F, d, F.cast(F.real(order) if is_complex(order) else order, dtype=INT64))


lu = op(
    "lu", "input", impl=_np_lu, numpy=_np_lu, rule=Rule(_lu_shape), traits=Trait.HOLOMORPHIC, label="LinalgLuFactorEx",
    ref=_ref_lu, vjp=dict(input=_lu_vjp),
    samples=(Sample(Regular((3, 3))), Sample((2, 4)), Sample((2, 3, 2))),
)  # fmt: skip


# --- QR


def _qr_shape(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    batch, m, n = _sizes(avals[0])
    return Aval((*batch, m, (m if params["complete"] else min(m, n)) + n), avals[0].dtype)


def _qr(xp, x, complete):
    q, r = xp.linalg.qr(x, mode="complete" if complete else "reduced")
    short = x.shape[-2] - r.shape[-2]
    if short:
        r = xp.concatenate([r, xp.zeros((*x.shape[:-2], short, x.shape[-1]), x.dtype)], axis=-2)
    return xp.concatenate([q, r], axis=-1)


def _ref_qr(x, complete):
    """By Gram and Schmidt, with LAPACK's signs: Householder's reflections leave a diagonal opposite to the column's."""
    packed = _qr(np, x, complete)
    width = packed.shape[-1] - x.shape[-1]
    q = np.zeros_like(packed[..., :width])
    for at in np.ndindex(x.shape[:-2]):
        for k in range(width):
            column = x[at][:, k] if k < x.shape[-1] else packed[at][:, k]
            rest = column - q[at] @ (q[at].T @ column)
            unit = rest / np.linalg.norm(rest)
            q[at][:, k] = unit * np.sign(unit @ packed[at][:, k])
    r = np.swapaxes(q, -1, -2) @ x
    r = np.concatenate([np.triu(r), np.zeros((*x.shape[:-2], x.shape[-2] - width, x.shape[-1]))], axis=-2)
    return np.concatenate([q, r], axis=-1)


def _qr_vjp(F, g, r, input, input_shape, input_dtype, complete):
    m, n = input_shape[-2:]
    k = min(m, n)
    if complete and m > n:
        raise RuntimeError(COMPLETE)
    q, upper = columns(F, r, 0, k), rows(F, columns(F, r, k, k + n), 0, k)
    g_q, g_r = columns(F, g, 0, k), rows(F, columns(F, g, k, k + n), 0, k)
    g_rest = None
    if n > k:  # x = [x1 x2], x2 = Q R2
        g_rest = columns(F, g_r, k, n)
        g_q = g_q + columns(F, input, k, n) @ adjoint(F, g_rest)
        upper, g_r = columns(F, upper, 0, k), columns(F, g_r, 0, k)
    inner = F.triu(g_r @ adjoint(F, upper) - adjoint(F, q) @ g_q, diagonal=0)
    d = g_q + q @ halved(F, inner + adjoint(F, inner), input_dtype)
    d = adjoint(F, F.solve_triangular(upper, adjoint(F, d), upper=True, unit=False))
    return d if g_rest is None else F.cat(d, q @ g_rest, axis=len(input_shape) - 1)


qr = op(
    "qr", "input", params={"complete": False}, impl=_qr, rule=Rule(_qr_shape), label="LinalgQr", ref=_ref_qr,
    samples=(Sample(Regular((3, 3)), complete=False), Sample((4, 2), complete=False), Sample((2, 2, 3), complete=False)),
    vjp=dict(input=_qr_vjp),
)  # fmt: skip


# --- eigenvalues and singular values


def _eigen_shape(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    x = square(op, avals, params)
    n = x.shape[-1]
    return Aval((*x.shape[:-2], n + 1, n), complex_of(x.dtype) if op.name == "eig" else x.dtype)


def _eigh(xp, x):
    values, vectors = xp.linalg.eigh(_half_sum(xp, x))
    return xp.concatenate([values[..., None, :].astype(x.dtype), vectors], axis=-2)


def _eigh_vjp(F, g, r, input_shape, input_dtype):
    # V (diag(gL) + V^H gV / E) V^H, E[i, j] = L[j] - L[i]
    n = input_shape[-1]
    values, vectors = rows(F, r, 0, 1), rows(F, r, 1, n + 1)
    one = eye(F, n, input_dtype)
    turn = adjoint(F, vectors) @ rows(F, g, 1, n + 1)
    turn = turn * (1 - one)
    inner = quotient(F, turn - adjoint(F, turn), 2 * differences(F, values))
    inner = inner + one * real_values(F, rows(F, g, 0, 1), input_dtype)
    return hermitian_part(F, vectors @ inner @ adjoint(F, vectors))


def _ref_eigh(x):
    """By Jacobi's rotations, with the signs of the kernel's vectors."""
    packed = _eigh(np, x)
    result = np.empty_like(packed)
    for at in np.ndindex(x.shape[:-2]):
        a, v = x[at].copy(), np.eye(x.shape[-1])
        for _ in range(30):
            for i, j in zip(*np.triu_indices(len(a), 1), strict=True):
                angle = 0.5 * np.arctan2(2 * a[i, j], a[j, j] - a[i, i])
                turn = np.eye(len(a))
                turn[i, i] = turn[j, j] = np.cos(angle)
                turn[i, j], turn[j, i] = np.sin(angle), -np.sin(angle)
                a, v = turn.T @ a @ turn, v @ turn
        order = np.argsort(np.diagonal(a))
        v = v[:, order]
        result[at][0], result[at][1:] = np.diagonal(a)[order], v * np.sign(np.sum(v * packed[at][1:], axis=0))
    return result


eigh = op(
    "eigh", "input", impl=_eigh, rule=Rule(_eigen_shape), label="LinalgEigh", ref=_ref_eigh, vjp=dict(input=_eigh_vjp),
    samples=(Sample(Definite((3, 3))), Sample(Definite((2, 2, 2)))),
)  # fmt: skip


def _eig(xp, x):
    values, vectors = xp.linalg.eig(x)
    packed = xp.concatenate([values[..., None, :], vectors], axis=-2)
    return packed.astype(complex_of(x.dtype))


def _eig_vjp(F, g, r, input_shape, input_dtype):
    # V^-H (diag(gL) + (V^H gV - V^H V diag(Re(V^H gV))) / conj(E)) V^H
    n = input_shape[-1]
    dtype = complex_of(input_dtype)
    values, vectors = rows(F, r, 0, 1), rows(F, r, 1, n + 1)
    one = eye(F, n, dtype)
    back = adjoint(F, vectors)
    turn = back @ rows(F, g, 1, n + 1)
    norm = F.sum(real_values(F, turn, dtype) * one, axis=(len(input_shape) - 2,), keepdims=True)
    turn = (turn - back @ vectors * norm) * (1 - one)
    inner = quotient(F, turn, F.conj(differences(F, values))) + one * rows(F, g, 0, 1)
    d = F.solve(back, inner @ back, checked=False)
    return d if input_dtype.kind == "c" else F.real(d)


def _ref_eig(x):
    """The eigenvalues as roots of the characteristic polynomial, and the kernel's vectors, if they are ones."""
    packed = _eig(np, x)
    result = packed.copy()
    for at in np.ndindex(x.shape[:-2]):
        roots = np.roots(np.poly(x[at]))
        values, vectors = packed[at][0], packed[at][1:]
        result[at][0] = [roots[np.argmin(abs(roots - v))] for v in values]
        images = x[at] @ vectors / values
        result[at][1:] = images / np.linalg.norm(images, axis=0)
    return result


eig = op(
    "eig", "input", impl=_eig, rule=Rule(_eigen_shape), label="LinalgEig", ref=_ref_eig, vjp=dict(input=_eig_vjp),
    samples=(Sample(Definite((3, 3))), Sample(Definite((2, 2, 2)))),
)  # fmt: skip


def _svd_shape(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    batch, m, n = _sizes(avals[0])
    return Aval((*batch, 1 + m + n, min(m, n)), avals[0].dtype)


def _svd(xp, x):
    u, s, vh = xp.linalg.svd(x, full_matrices=False)
    v = xp.conj(xp.swapaxes(vh, -1, -2))
    return xp.concatenate([s[..., None, :].astype(x.dtype), u, v], axis=-2)


def _svd_vjp(F, g, r, input_shape, input_dtype):
    # U [(skew(U^H gU) / E) S + S (skew(V^H gV) / E) + diag(gS)] V^H, E[i, j] = S[j]^2 - S[i]^2, and of what of gU and gV
    # is orthogonal to U and V: (1 - U U^H) gU S^-1 V^H + U S^-1 gV^H (1 - V V^H)
    m, n = input_shape[-2:]
    k = min(m, n)
    s, u, v = rows(F, r, 0, 1), rows(F, r, 1, 1 + m), rows(F, r, 1 + m, 1 + m + n)
    g_s, g_u, g_v = rows(F, g, 0, 1), rows(F, g, 1, 1 + m), rows(F, g, 1 + m, 1 + m + n)
    one = eye(F, k, input_dtype)
    gaps = differences(F, s * s) + one
    turn_u, turn_v = adjoint(F, u) @ g_u, adjoint(F, v) @ g_v
    skew_u, skew_v = turn_u - adjoint(F, turn_u), turn_v - adjoint(F, turn_v)
    inner = quotient(F, skew_u * (1 - one), gaps) * s + swap_last(F, s) * quotient(F, skew_v * (1 - one), gaps)
    inner = inner + one * real_values(F, g_s, input_dtype)
    if input_dtype.kind == "c":
        inner = inner + quotient(F, skew_u * one, 2 * s)
    vh = adjoint(F, v)
    d = u @ inner @ vh
    if m > k:
        d = d + quotient(F, g_u - u @ turn_u, s) @ vh
    if n > k:
        d = d + u @ adjoint(F, quotient(F, g_v - v @ turn_v, s))
    return d


def _ref_svd(x):
    """From the eigenvalues of x^T x, with the signs of the kernel's vectors."""
    packed = _svd(np, x)
    m, n = x.shape[-2:]
    k = min(m, n)
    result = np.empty_like(packed)
    for at in np.ndindex(x.shape[:-2]):
        v = _ref_eigh(x[at].T @ x[at])[1:, ::-1][:, :k]
        v = v * np.sign(np.sum(v * packed[at][1 + m :], axis=0))
        image = x[at] @ v
        s = np.linalg.norm(image, axis=0)
        result[at][0], result[at][1 : 1 + m], result[at][1 + m :] = s, image / s, v
    return result


svd = op(
    "svd", "input", impl=_svd, rule=Rule(_svd_shape), label="LinalgSvd", ref=_ref_svd, vjp=dict(input=_svd_vjp),
    samples=(Sample(Regular((3, 3))), Sample((4, 2)), Sample((2, 2, 3))),
)  # fmt: skip


# --- the pseudoinverse


def _pinv(xp, x, atol, rtol):
    u, s, vh = xp.linalg.svd(x, full_matrices=False)
    top = xp.max(s, axis=-1, initial=0)
    cutoff = xp.maximum(atol, rtol * top)[..., None]
    kept = s > cutoff
    inverse = xp.where(kept, 1 / xp.where(kept, s, 1), 0).astype(s.dtype)
    return xp.conj(xp.swapaxes((u * inverse[..., None, :]) @ vh, -1, -2))


def _pinv_shape(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    batch, m, n = _sizes(avals[0])
    return Aval((*batch, n, m), avals[0].dtype)


def _pinv_vjp(F, g, r, input, input_shape):
    # Golub and Pereyra, "The Differentiation of Pseudo-Inverses", 1973; the smaller products first
    m, n = input_shape[-2:]
    rh, gh = adjoint(F, r), adjoint(F, g)
    if m <= n:
        k = gh @ r
        kr = k @ rh
        return -adjoint(F, r @ k) + kr - input @ r @ kr + rh @ r @ (gh - k @ input)
    k = r @ gh
    rk = rh @ k
    return -adjoint(F, k @ r) + (gh - input @ k) @ r @ rh + rk - rk @ r @ input


pinv = op(
    "pinv", "input atol rtol", impl=_pinv, rule=Rule(_pinv_shape), label="LinalgPinv",
    ref=lambda x, atol, rtol: np.stack([np.linalg.solve(m.T @ m, m.T) for m in x.reshape(-1, *x.shape[-2:])]).reshape(*x.shape[:-2], x.shape[-1], x.shape[-2]),
    samples=(Sample((4, 2), (), ()), Sample(Regular((3, 3)), (), ())), domain=((-2.0, 2.0), (0.0, 1e-9), (0.0, 1e-9)), vjp=dict(input=_pinv_vjp),
)  # fmt: skip
