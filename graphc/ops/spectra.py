"""Eigenvalues and singular values. An op has one result, so they come with their vectors as one matrix:

    eigh, eig   (n + 1, n)        the eigenvalues as a row, above the eigenvectors as columns
    svd         (1 + m + n, k)    the singular values, U, and V, with x = U S V^H and k = min(m, n)

The gradient rules are PyTorch's: of a Hermitian matrix the gradient is Hermitian, and where it depends on the free
choice of a sign or phase it means nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from graphc.errors import LinAlgError
from graphc.ops.aval import Aval
from graphc.ops.dtypes import complex_of, real_of
from graphc.ops.linalg import swap_last
from graphc.ops.matrices import (
    FLOATING,
    adjoint,
    differences,
    eye,
    half_sum,
    hermitian_part,
    matrix_sizes,
    quotient,
    real_values,
    rows,
    square,
)
from graphc.ops.rounding import Rounding, norm, packed
from graphc.ops.samples import Definite, Regular, Sample
from graphc.ops.spec import Check, Op, Rule, op

NOT_CONVERGED = (
    "linalg.{name}: {batch}The algorithm failed to converge because the input matrix contained non-finite values."
)


def converging(name: str, kernel: Callable[..., Any]) -> Callable[..., Any]:
    """The NumPy kernel of a decomposition, with PyTorch's error where it does not converge."""

    def run(x: np.ndarray, *args: Any, **params: Any) -> Any:
        try:
            return kernel(np, x, *args, **params)
        except np.linalg.LinAlgError:
            unknown = np.isnan(x).any((-2, -1))
            first = int(np.flatnonzero(unknown)[0]) if unknown.any() else 0
            batch = f"(Batch element {first}): " if x.ndim > 2 else ""
            raise LinAlgError(NOT_CONVERGED.format(name=name, batch=batch)) from None

    return run


def _known(xp: Any, x: Any, *args: Any, **params: Any) -> Any:
    # the NumPy kernels raise by themselves
    return True if xp is np else ~xp.any(xp.isnan(x))


NOT_FINITE = "torch.linalg.eig: input tensor should not contain infs or NaNs."
ROTATED_VECTORS = Rounding(terms=packed(-1), operand=norm)
SVD_CHECK = Check(_known, LinAlgError, NOT_CONVERGED.format(name="svd", batch=""))


def _nearest_vectors(result: np.ndarray, like: np.ndarray) -> np.ndarray:
    """The same decomposition with vectors of other signs or phases: vectors below the first row may have any."""
    vectors = result[..., 1:, :]
    overlap = np.sum(np.conj(vectors) * like[..., 1:, :], axis=-2, keepdims=True)
    size = np.abs(overlap)
    turn = np.where(size > 0, overlap, 1) / np.where(size > 0, size, 1)
    return np.concatenate([result[..., :1, :], vectors * turn], axis=-2).astype(result.dtype)


def _nearest_pairs(result: np.ndarray, like: np.ndarray) -> np.ndarray:
    """As `_nearest_vectors`, with the eigenvalues in another order besides."""
    from scipy.optimize import linear_sum_assignment

    sorted_ = result.copy()
    for at in np.ndindex(result.shape[:-2]):
        distances = np.abs(like[at][0][:, None] - result[at][0][None, :])
        if np.isfinite(distances).all():
            sorted_[at] = result[at][:, linear_sum_assignment(distances)[1]]
    return _nearest_vectors(sorted_, like)


def _eigen_shape(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    x = square(op, avals, params)
    n = x.shape[-1]
    return Aval((*x.shape[:-2], n + 1, n), x.dtype)


def _complex_eigen_shape(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    aval = _eigen_shape(op, avals, params)
    return Aval(aval.shape, complex_of(aval.dtype))


def _eigh(xp, x, upper):
    # LAPACK's vectors have other signs or phases where it reads the other triangle
    values, vectors = xp.linalg.eigh(half_sum(xp, x), UPLO="U" if upper else "L")
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


def _by_rotations(a):
    """The eigenvalues of a symmetric matrix in ascending order, and its eigenvectors, by Jacobi's rotations."""
    v = np.eye(len(a))
    for _ in range(30):
        for i, j in zip(*np.triu_indices(len(a), 1), strict=True):
            angle = 0.5 * np.arctan2(2 * a[i, j], a[j, j] - a[i, i])
            turn = np.eye(len(a))
            turn[i, i] = turn[j, j] = np.cos(angle)
            turn[i, j], turn[j, i] = np.sin(angle), -np.sin(angle)
            a, v = turn.T @ a @ turn, v @ turn
    order = np.argsort(np.diagonal(a))
    return np.diagonal(a)[order], v[:, order]


def _determined(values, vectors):
    """`vectors`, with nan for those of values that are equal but for rounding: any basis of their span is right."""
    gaps = np.abs(values[:, None] - values) + np.where(np.eye(len(values), dtype=bool), np.inf, 0)
    return np.where(gaps.min(axis=0) > 1e-8 * np.abs(values).max(initial=0), vectors, np.nan)


def _ref_eigh(x, upper):
    result = np.empty((*x.shape[:-2], x.shape[-1] + 1, x.shape[-1]))
    for at in np.ndindex(x.shape[:-2]):
        values, vectors = _by_rotations(x[at])
        result[at][0], result[at][1:] = values, _determined(values, vectors)
    return result


eigh = op(
    "eigh", "input", params={"upper": False}, impl=_eigh, numpy=converging("eigh", _eigh),
    rule=Rule(_eigen_shape, accepts=FLOATING), label="LinalgEigh", rounding=ROTATED_VECTORS, ref=_ref_eigh,
    samples=(Sample(Definite((3, 3)), upper=False), Sample(Definite((2, 3, 3)), upper=True)),
    vjp=dict(input=_eigh_vjp), nearest=_nearest_vectors,
)  # fmt: skip


def _eig(xp, x):
    values, vectors = xp.linalg.eig(x)
    packed = xp.concatenate([values[..., None, :], vectors], axis=-2)
    return packed.astype(complex_of(x.dtype))


def _np_eig(x):
    if not np.isfinite(x).all():
        raise RuntimeError(NOT_FINITE)
    return _eig(np, x)


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
    if input_dtype.kind == "c":
        return d
    return F.real(d) if real_of(dtype) == input_dtype else F.cast(F.real(d), dtype=input_dtype)  # of 16 bits


def _ref_eig(x):
    """The eigenvalues as roots of the characteristic polynomial, the vectors by inverse iteration."""
    n = x.shape[-1]
    result = np.zeros((*x.shape[:-2], n + 1, n), complex)
    for at in np.ndindex(x.shape[:-2]):
        for k, value in enumerate(np.roots(np.poly(x[at]))):
            vector = np.ones(n, complex)
            for _ in range(3):
                vector = np.linalg.solve(x[at] - (value + 1e-9) * np.eye(n), vector)
                vector = vector / np.sqrt(np.sum(abs(vector) ** 2))
            result[at][0, k], result[at][1:, k] = value, vector
    return result


eig = op(
    "eig", "input", impl=_eig, numpy=_np_eig, rule=Rule(_complex_eigen_shape, accepts=FLOATING), label="LinalgEig",
    rounding=ROTATED_VECTORS, ref=_ref_eig,
    vjp=dict(input=_eig_vjp), nearest=_nearest_pairs,
    check=Check(lambda xp, x: True if xp is np else xp.all(xp.isfinite(x)), RuntimeError, NOT_FINITE),
    samples=(Sample(Definite((3, 3))), Sample(Definite((2, 2, 2)))),
)  # fmt: skip


def _adjoint(xp, x):
    return xp.conj(xp.swapaxes(x, -1, -2))


def _svd_shape(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    batch, m, n = matrix_sizes(avals[0])
    return Aval((*batch, 1 + m + n, min(m, n)), avals[0].dtype)


def _svd(xp, x):
    u, s, vh = xp.linalg.svd(x, full_matrices=False)
    v = _adjoint(xp, vh)
    return xp.concatenate([s[..., None, :].astype(x.dtype), u, v], axis=-2)


def _svd_vjp(F, g, r, input_shape, input_dtype):
    # U [(skew(U^H gU) / E) S + S (skew(V^H gV) / E) + diag(gS)] V^H, E[i, j] = S[j]^2 - S[i]^2, and of what of gU and
    # gV is orthogonal to U and V: (1 - U U^H) gU S^-1 V^H + U S^-1 gV^H (1 - V V^H)
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
    """From the eigenvalues of x^T x."""
    m, n = x.shape[-2:]
    k = min(m, n)
    result = np.empty((*x.shape[:-2], 1 + m + n, k))
    for at in np.ndindex(x.shape[:-2]):
        values, vectors = _by_rotations(x[at].T @ x[at])
        s = np.linalg.norm(x[at] @ vectors[:, ::-1][:, :k], axis=0)
        v = _determined(values, vectors)[:, ::-1][:, :k]
        # of a value that is nothing but rounding, the left vector is that, too
        u = x[at] @ v / np.where(s > 1e-8 * s.max(initial=0), s, np.nan)
        result[at][0], result[at][1 : 1 + m], result[at][1 + m :] = s, u, v
    return result


svd = op(
    "svd", "input", impl=_svd, numpy=converging("svd", _svd), check=SVD_CHECK, rule=Rule(_svd_shape, accepts=FLOATING),
    label="LinalgSvd", rounding=ROTATED_VECTORS, ref=_ref_svd, vjp=dict(input=_svd_vjp), nearest=_nearest_vectors,
    samples=(Sample(Regular((3, 3))), Sample(Regular((4, 2))), Sample(Regular((2, 2, 3)))),
)  # fmt: skip


# --- the pseudoinverse


def _pinv(xp, x, atol, rtol, hermitian):
    if hermitian:
        s, u = xp.linalg.eigh(x, **({} if xp is np else {"symmetrize_input": False}))
        vh = _adjoint(xp, u)
    else:
        u, s, vh = xp.linalg.svd(x, full_matrices=False)
    size = xp.abs(s)
    cutoff = xp.maximum(atol, rtol * xp.max(size, axis=-1, initial=0))[..., None]
    kept = size > cutoff
    inverse = xp.where(kept, 1 / xp.where(kept, s, 1), 0).astype(s.dtype)
    left, right = (u, vh) if hermitian else (_adjoint(xp, vh), _adjoint(xp, u))
    return (left * inverse[..., None, :]) @ right


def _pinv_shape(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    batch, m, n = matrix_sizes(avals[0])
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


def _ref_pinv(x, atol, rtol, hermitian):
    """By the normal equations, of matrices of full rank whose singular values are far from the cutoff."""
    if hermitian:
        x = np.tril(x) + np.tril(x, -1).conj().swapaxes(-1, -2)
    if x.shape[-2] < x.shape[-1]:
        return _ref_pinv(x.conj().swapaxes(-1, -2), atol, rtol, False).conj().swapaxes(-1, -2)
    turned = x.conj().swapaxes(-1, -2)
    squares = np.linalg.eigvalsh(turned @ x)
    largest, least = squares.max(axis=-1, initial=0), squares.min(axis=-1, initial=np.inf)
    if not ((least > 1e-6 * largest) & (least > 4 * atol**2) & (least > 4 * rtol**2 * largest)).all():
        raise ValueError("some singular values are nearly, or counted as, zero")
    return np.linalg.solve(turned @ x, turned)


pinv = op(
    "pinv", "input atol rtol", params={"hermitian": False}, impl=_pinv,
    numpy=converging("svd", _pinv), check=SVD_CHECK, rule=Rule(_pinv_shape, accepts=FLOATING), label="LinalgPinv",
    rounding=Rounding(terms=packed((-2, -1)), operand=norm), ref=_ref_pinv,
    samples=tuple(Sample(Regular(shape), (), (), hermitian=False) for shape in ((4, 2), (3, 3), (2, 4))),
    domain=((-2.0, 2.0), (0.0, 1e-9), (0.0, 1e-9)), vjp=dict(input=_pinv_vjp),
)  # fmt: skip
