"""Eigenvalues and singular values.

    eigh, eig   the eigenvalues, and the eigenvectors as columns
    svd         U, the singular values S, and V^H, with x = U S V^H and min(m, n) columns and rows

The gradient rules are PyTorch's: of a Hermitian matrix the gradient is Hermitian, and where it depends on the free
choice of a sign or phase it means nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from graphc.errors import LinAlgError
from graphc.ops.aval import Aval
from graphc.ops.dtypes import complex_of, real_of
from graphc.ops.linalg import swap_last
from graphc.ops.matrices import (
    FLOATING,
    adjoint,
    all_known,
    as_row,
    differences,
    eye,
    half_sum,
    hermitian_part,
    known,
    matrix_sizes,
    of_known,
    plus,
    quotient,
    square,
)
from graphc.ops.rounding import Rounding, along, norm
from graphc.ops.samples import Definite, Regular, Sample
from graphc.ops.spec import Check, Op, Rule, op
from graphc.ops.threads import small_alone

NOT_CONVERGED = (
    "linalg.{name}: {{place}}The algorithm failed to converge because the input matrix contained non-finite values."
)


def _says(x: np.ndarray, *others: Any, **params: Any) -> str:
    """Which matrix is not known."""
    return f"(Batch element {int(np.flatnonzero(~known(x))[0])}): " if x.ndim > 2 else ""


def converging(name: Callable[[Mapping[str, Any]], str]) -> Check:
    """The check of a decomposition, which finds nothing in nan. name: PyTorch's, by the parameters"""
    return Check(
        lambda xp, x, *others, **params: all_known(x),
        LinAlgError,
        lambda params: NOT_CONVERGED.format(name=name(params)),
        place=_says,
    )


NOT_FINITE = "torch.linalg.eig: input tensor should not contain infs or NaNs."
ROTATED = Rounding(terms=along(-1), operand=norm)
Arrays = Sequence[np.ndarray]


def _turns(vectors: np.ndarray, like: np.ndarray) -> np.ndarray:
    """The sign or phase of each column of `vectors` with which it is as `like` as it can be."""
    overlap = np.sum(np.conj(vectors) * like, axis=-2, keepdims=True)
    size = np.abs(overlap)
    return (np.where(size > 0, overlap, 1) / np.where(size > 0, size, 1)).astype(vectors.dtype)


def _nearest_vectors(result: Arrays, like: Arrays) -> tuple[np.ndarray, ...]:
    """The same eigenvectors with other signs or phases: they may have any."""
    values, vectors = result
    return values, vectors * _turns(vectors, like[1])


def _nearest_pairs(result: Arrays, like: Arrays) -> tuple[np.ndarray, ...]:
    """As `_nearest_vectors`, with the eigenvalues in another order besides."""
    from scipy.optimize import linear_sum_assignment

    values, vectors = (array.copy() for array in result)
    for at in np.ndindex(values.shape[:-1]):
        distances = np.abs(like[0][at][:, None] - values[at][None, :])
        if np.isfinite(distances).all():
            order = linear_sum_assignment(distances)[1]
            values[at], vectors[at] = values[at][order], vectors[at][:, order]
    return _nearest_vectors((values, vectors), like)


def _nearest_triples(result: Arrays, like: Arrays) -> tuple[np.ndarray, ...]:
    """The same singular vectors with other signs or phases, each left one with that of its right one."""
    u, s, vh = result
    turn = _turns(*(np.concatenate([a, _adjoint(np, b)], axis=-2) for a, _, b in (result, like)))
    return u * turn, s, _adjoint(np, turn) * vh


def _eigh_shape(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> tuple[Aval, ...]:
    x = square(op, avals, params)
    return Aval(x.shape[:-1], real_of(x.dtype)), x


def _eig_shape(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> tuple[Aval, ...]:
    x = square(op, avals, params)
    dtype = complex_of(x.dtype)
    return Aval(x.shape[:-1], dtype), Aval(x.shape, dtype)


@functools.partial(of_known, finite=True)
def _eigh(x, upper):
    xp = x.__array_namespace__()
    # LAPACK's vectors have other signs or phases where it reads the other triangle
    return tuple(xp.linalg.eigh(half_sum(xp, x), UPLO="U" if upper else "L"))


def _eigh_vjp(F, g_values, g_vectors, r_values, r_vectors, input_dtype):
    # V (diag(gL) + V^H gV / E) V^H, E[i, j] = L[j] - L[i]
    if g_vectors is None:
        return hermitian_part(F, (r_vectors * as_row(F, g_values)) @ adjoint(F, r_vectors))
    one = eye(F, r_vectors.shape[-1], input_dtype)
    turn = adjoint(F, r_vectors) @ g_vectors
    turn = turn * (1 - one)
    inner = quotient(F, turn - adjoint(F, turn), 2 * differences(F, as_row(F, r_values)))
    if g_values is not None:
        inner = inner + one * as_row(F, g_values)
    return hermitian_part(F, r_vectors @ inner @ adjoint(F, r_vectors))


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
    values, vectors = np.empty(x.shape[:-1]), np.empty(x.shape)
    for at in np.ndindex(x.shape[:-2]):
        values[at], found = _by_rotations(x[at])
        vectors[at] = _determined(values[at], found)
    return values, vectors


eigh = op(
    "eigh", "input", results="values vectors", params={"upper": False},
    impl=lambda xp, x, upper: _eigh(x, upper), numpy=small_alone("numpy")(_eigh),
    check=converging(lambda params: "eigh"),
    rule=Rule(_eigh_shape, accepts=FLOATING), label="LinalgEigh",
    claims=lambda params, result: (("orthogonal",),) if result else (), rounding=ROTATED, ref=_ref_eigh,
    samples=(Sample(Definite((3, 3)), upper=False), Sample(Definite((2, 3, 3)), upper=True)),
    vjp=dict(input=_eigh_vjp), nearest=_nearest_vectors,
)  # fmt: skip


def _eig(xp, x):
    dtype = complex_of(x.dtype)
    return tuple(found.astype(dtype) for found in xp.linalg.eig(x))


def _eig_vjp(F, g_values, g_vectors, r_values, r_vectors, input_shape, input_dtype):
    # V^-H (diag(gL) + (V^H gV - V^H V diag(Re(V^H gV))) / conj(E)) V^H
    dtype = complex_of(input_dtype)
    one = eye(F, input_shape[-1], dtype)
    back = adjoint(F, r_vectors)
    inner = None if g_values is None else one * as_row(F, g_values)
    if g_vectors is not None:
        turn = back @ g_vectors
        norm = F.sum(F.cast(F.real(turn), dtype=dtype) * one, axis=(len(input_shape) - 2,), keepdims=True)
        turn = (turn - back @ r_vectors * norm) * (1 - one)
        inner = plus(inner, quotient(F, turn, F.conj(differences(F, as_row(F, r_values)))))
    d = F.solve(back, inner @ back, checked=False)
    if input_dtype.kind == "c":
        return d
    return F.real(d) if real_of(dtype) == input_dtype else F.cast(F.real(d), dtype=input_dtype)  # of 16 bits


def _ref_eig(x):
    """The eigenvalues as roots of the characteristic polynomial, the vectors by inverse iteration."""
    n = x.shape[-1]
    values, vectors = np.zeros(x.shape[:-1], complex), np.zeros(x.shape, complex)
    for at in np.ndindex(x.shape[:-2]):
        for k, value in enumerate(np.roots(np.poly(x[at]))):
            vector = np.ones(n, complex)
            for _ in range(3):
                vector = np.linalg.solve(x[at] - (value + 1e-9) * np.eye(n), vector)
                vector = vector / np.sqrt(np.sum(abs(vector) ** 2))
            values[at][k], vectors[at][:, k] = value, vector
    return values, vectors


eig = op(
    "eig", "input", results="values vectors", impl=_eig, numpy=small_alone("numpy")(functools.partial(_eig, np)),
    rule=Rule(_eig_shape, accepts=FLOATING),
    label="LinalgEig", rounding=ROTATED, ref=_ref_eig, vjp=dict(input=_eig_vjp), nearest=_nearest_pairs,
    check=Check(lambda xp, x: all_known(x, finite=True), RuntimeError, NOT_FINITE),
    samples=(Sample(Definite((3, 3))), Sample(Definite((2, 2, 2)))),
)  # fmt: skip


def _adjoint(xp, x):
    return xp.conj(xp.swapaxes(x, -1, -2))


def _svd_shape(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> tuple[Aval, ...]:
    batch, m, n = matrix_sizes(avals[0])
    k, dtype = min(m, n), avals[0].dtype
    return Aval((*batch, m, k), dtype), Aval((*batch, k), real_of(dtype)), Aval((*batch, k, n), dtype)


@functools.partial(of_known, finite=True)
def _svd(x):
    return tuple(x.__array_namespace__().linalg.svd(x, full_matrices=False))


def _svd_vjp(F, g_u, g_s, g_vh, r_u, r_s, r_vh, input_shape, input_dtype):
    # U [(skew(U^H gU) / E) S + S (skew(V^H gV) / E) + diag(gS)] V^H, E[i, j] = S[j]^2 - S[i]^2, and of what of gU and
    # gV is orthogonal to U and V: (1 - U U^H) gU S^-1 V^H + U S^-1 gV^H (1 - V V^H)
    if g_u is None and g_vh is None:
        return (r_u * as_row(F, g_s)) @ r_vh
    m, n = input_shape[-2:]
    k = min(m, n)
    s, v = as_row(F, r_s), adjoint(F, r_vh)
    one = eye(F, k, input_dtype)
    gaps = differences(F, s * s) + one
    inner = outside = None
    if g_u is not None:
        turn = adjoint(F, r_u) @ g_u
        skew = turn - adjoint(F, turn)
        inner = quotient(F, skew * (1 - one), gaps) * s
        if input_dtype.kind == "c":
            inner = inner + quotient(F, skew * one, 2 * s)
        if m > k:
            outside = quotient(F, g_u - r_u @ turn, s) @ r_vh
    if g_vh is not None:
        g_v = adjoint(F, g_vh)
        turn = r_vh @ g_v
        inner = plus(inner, swap_last(F, s) * quotient(F, (turn - adjoint(F, turn)) * (1 - one), gaps))
        if n > k:
            outside = plus(outside, r_u @ adjoint(F, quotient(F, g_v - v @ turn, s)))
    if g_s is not None:
        inner = inner + one * as_row(F, g_s)
    return plus(r_u @ inner @ r_vh, outside)


def _ref_svd(x):
    """From the eigenvalues of x^T x."""
    *batch, m, n = x.shape
    k = min(m, n)
    u, s, vh = np.empty((*batch, m, k)), np.empty((*batch, k)), np.empty((*batch, k, n))
    for at in np.ndindex(*batch):
        values, vectors = _by_rotations(x[at].T @ x[at])
        s[at] = np.linalg.norm(x[at] @ vectors[:, ::-1][:, :k], axis=0)
        v = _determined(values, vectors)[:, ::-1][:, :k]
        # of a value that is nothing but rounding, the left vector is that, too
        u[at] = x[at] @ v / np.where(s[at] > 1e-8 * s[at].max(initial=0), s[at], np.nan)
        vh[at] = v.T
    return u, s, vh


svd = op(
    "svd", "input", results="u s vh", impl=lambda xp, x: _svd(x), numpy=small_alone("numpy")(_svd),
    check=converging(lambda params: "svd"),
    rule=Rule(_svd_shape, accepts=FLOATING), label="LinalgSvd", rounding=ROTATED, ref=_ref_svd,
    vjp=dict(input=_svd_vjp), nearest=_nearest_triples,
    samples=(Sample(Regular((3, 3))), Sample(Regular((4, 2))), Sample(Regular((2, 2, 3)))),
)  # fmt: skip


@functools.partial(of_known, finite=True)
def _pinv(x, atol, rtol, hermitian):
    xp = x.__array_namespace__()
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


_PINV_CHECK = converging(lambda params: "eigh" if params["hermitian"] else "svd")


@small_alone("numpy")
def _np_pinv(x, *others, **params):
    if not all_known(x):  # code that is generated for ops of one result has no checks
        raise _PINV_CHECK.failure(params, None, (x,))
    return _pinv(x, *others, **params)


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
    "pinv", "input atol rtol", params={"hermitian": False}, impl=lambda xp, *given, **params: _pinv(*given, **params),
    numpy=_np_pinv, check=_PINV_CHECK,
    rule=Rule(_pinv_shape, accepts=FLOATING), label="LinalgPinv",
    rounding=Rounding(terms=along((-2, -1)), operand=norm), ref=_ref_pinv,
    samples=tuple(Sample(Regular(shape), (), (), hermitian=False) for shape in ((4, 2), (3, 3), (2, 4))),
    domain=((-2.0, 2.0), (0.0, 1e-9), (0.0, 1e-9)), vjp=dict(input=_pinv_vjp),
)  # fmt: skip
