"""Factorizations: Cholesky, LU, QR, LDL."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from eager import return_types
from eager.core import operands
from eager.core.interpreter import on_arrays
from eager.core.state import sequence
from eager.core.tensor import Tensor
from eager.engine.crossing import beside
from eager.engine.language import E
from eager.engine.node_names import undifferentiated
from eager.functional.arguments import shape_of
from eager.functional.outputs import with_out
from eager.functional.shapes import tril, triu
from eager.functional.static import required, valueless
from eager.linalg.matrix_arguments import (
    aligned,
    check_floating,
    check_matrix,
    check_same_dtype,
    check_square,
    hermitian,
    independent,
    not_implemented,
    result,
    results,
)
from eager.linalg.solving import check_fits
from graphc.errors import LinAlgError
from graphc.ops.dtypes import INT32, INT64, is_half, is_inexact
from graphc.ops.factorizations import INDEFINITE, minors, permuted, unpermuted
from graphc.ops.matrices import adjoint, as_row, columns, rows
from graphc.ops.rules import torch_name
from graphc.ops.solving import failure


def cholesky_factor(A: Tensor, upper: bool, name: str, node: str) -> Tensor:
    """The factor of a positive definite matrix. Raises PyTorch's errors in the name of `name`."""
    check_square(A, name)
    check_floating(A, name)
    since = next(sequence)
    try:
        factor = E.cholesky(hermitian(A, upper))
    except LinAlgError as error:
        raise LinAlgError(str(error).replace("linalg.cholesky", name)) from None
    return result(adjoint(E, factor) if upper else factor, node, since)


@functools.partial(with_out, "linalg_cholesky_ex")
def cholesky(A: Tensor, *, upper: bool = False) -> Tensor:
    """L with A = L L^H, or its adjoint, of positive definite matrices. As `torch.linalg.cholesky`.

    LinAlgError for one that is not. One triangle of A is read.
    """
    return cholesky_factor(A, upper, "linalg.cholesky", "LinalgCholeskyExBackward0")


@functools.partial(with_out, "linalg_cholesky_ex")
def cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False) -> Any:
    """(L, info): info is 0, or the order of the first leading minor that is not positive. As in PyTorch.

    Under a trace a matrix with such a minor is a LinAlgError.
    """
    check_square(A, "linalg.cholesky")
    check_floating(A, "linalg.cholesky")
    if valueless(A):
        info = beside(E.full(shape=tuple(A._d.shape[:-2]), value=0, dtype=INT32), A)
        return return_types.linalg_cholesky_ex(cholesky(A, upper=upper), info)
    values = hermitian(Tensor._wrap(A._values_for("cholesky_ex")), upper)._array()
    info = minors(values) if values.size else np.zeros(values.shape[:-2], np.int32)
    if info.any() and check_errors:
        raise failure(INDEFINITE, info)
    if info.any():  # the rows above the minor that failed
        factor = Tensor._wrap(np.tril(_partial(values)))
        factor = adjoint(E, factor) if upper else factor
    else:
        factor = cholesky(A, upper=upper)
    return return_types.linalg_cholesky_ex(factor, Tensor._wrap(np.asarray(info)))


def _partial(values: np.ndarray) -> np.ndarray:
    from scipy.linalg import lapack

    (potrf,) = lapack.get_lapack_funcs(("potrf",), (values,))
    flat = values.reshape(-1, *values.shape[-2:])
    return np.stack([potrf(m, lower=1)[0] for m in flat]).reshape(values.shape)


def _check_lu(A: Tensor, name: str, pivot: bool) -> None:
    shape = tuple(shape_of(A, name, "A"))
    if len(shape) < 2:
        raise RuntimeError(f"{name}: Expected tensor with 2 or more dimensions. Got size: {list(shape)} instead")
    if not is_inexact(A._dtype()) or is_half(A._dtype()):
        raise not_implemented("lu_cpu", A)
    if not pivot:
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU")


def _first_zero(factors: Tensor, k: int) -> Tensor:
    axis = len(factors._d.shape) - 2
    batch = tuple(factors._d.shape[:-2])
    if not k:
        return E.full(shape=batch, value=0, dtype=INT32)
    zero = E.eq(E.diagonal(E.stop_gradient(factors), offset=0, dim1=axis, dim2=axis + 1), 0)
    first = E.add(E.argmax(E.cast(zero, dtype=INT32), axis=axis, keepdims=False), 1)
    return E.cast(E.where(E.any(zero, axis=(axis,), keepdims=False), first, 0), dtype=INT32)


def _factor(A: Tensor, name: str, pivot: bool) -> tuple[Tensor, Tensor, Tensor]:
    _check_lu(A, name, pivot)
    factors, _, pivots = E.lu(A)
    return factors, pivots, _first_zero(factors, min(A._d.shape[-2:]))


ZERO_PIVOT = (
    "torch.linalg.lu_factor: {batch}U[{at},{at}] is zero and using it on lu_solve would result in a division by zero. "
    "If you still want to perform the factorization, consider calling linalg.lu(A, pivot) or linalg.lu_factor_ex(A, "
    "pivot)"
)
SINGULAR_LU = ZERO_PIVOT.format(batch="", at="i")


@functools.partial(with_out, "linalg_lu_factor")
def lu_factor(A: Tensor, *, pivot: bool = True) -> Any:
    """(LU, pivots): L and U in one matrix, and the rows swapped with the 1st, 2nd, ..., from 1. As in PyTorch.

    RuntimeError for a matrix with a zero pivot.
    """
    factors, swaps, info = _factor(A, "torch.lu_factor", pivot)
    if valueless(info):
        regular = E.eq(info, 0)
        factors = result(required(factors, regular, SINGULAR_LU), "LinalgLuFactorExBackward0", next(sequence))
        swaps = required(swaps, regular, SINGULAR_LU)
    elif on_arrays(info) and info._array().any():
        raise RuntimeError(str(failure(ZERO_PIVOT, info._array())))
    return return_types.linalg_lu_factor(factors, swaps)


@functools.partial(with_out, "linalg_lu_factor_ex")
def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False) -> Any:
    """`lu_factor` with `info`: 0, or the number of the pivot that is zero. As `torch.linalg.lu_factor_ex`."""
    if check_errors:
        lu_factor(A, pivot=pivot)
    return return_types.linalg_lu_factor_ex(*_factor(A, "torch.lu_factor", pivot))


def _triangles(factors: Tensor) -> tuple[Tensor, Tensor]:
    """(L, U) of what holds both."""
    m, n = factors._d.shape[-2:]
    k = min(m, n)
    lower = E.add(tril(columns(E, factors, 0, k), -1), Tensor._wrap(np.eye(m, k, dtype=factors._dtype())))
    return lower, triu(rows(E, factors, 0, k))


def permutation_matrix(order: Tensor, dtype: np.dtype) -> Tensor:
    """P with P[order[i], i] = 1."""
    m = order._d.shape[-1]
    return E.cast(E.eq(Tensor._wrap(np.arange(m).reshape(m, 1)), as_row(E, order)), dtype=dtype)


@functools.partial(with_out, "linalg_lu")
def lu(A: Tensor, *, pivot: bool = True) -> Any:
    """(P, L, U) with A = P L U. As `torch.linalg.lu`."""
    _check_lu(A, "linalg.lu", pivot)
    since = next(sequence)
    factors, order, _ = E.lu(A)
    lower, upper = results(_triangles(factors), "LinalgLuBackward0", since)
    return return_types.linalg_lu(permutation_matrix(order, A._dtype()), lower, upper)


def order_of(pivots: Tensor, m: int) -> Tensor:
    """The permutations that swapping rows 0, 1, ... with `pivots` (from 1 on) gives."""
    return E.permutation(E.sub(E.cast(pivots, dtype=INT64), 1), size=m)


@functools.partial(with_out, "lu_unpack")
def lu_unpack(LU_data: Tensor, LU_pivots: Tensor, unpack_data: bool = True, unpack_pivots: bool = True) -> Any:
    """(P, L, U) of what `lu_factor` gives. As `torch.lu_unpack`."""
    if operands.kind_of(LU_pivots) != INT32:
        raise RuntimeError("torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of torch.int32 dtype.")
    since = next(sequence)
    nothing = Tensor._wrap(np.zeros(0, LU_data._dtype()))
    lower = upper = permuted = nothing
    if unpack_data:
        lower, upper = results(_triangles(LU_data), "LuUnpackBackward0", since)
    if unpack_pivots:
        permuted = permutation_matrix(order_of(LU_pivots, LU_data._d.shape[-2]), LU_data._dtype())
    return return_types.lu_unpack(permuted, lower, upper)


@functools.partial(with_out, "linalg_lu_solve")
def lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False) -> Tensor:
    """X with AX = B (XA = B; A^H instead of A) from what `lu_factor` gives of A. As `torch.linalg.lu_solve`."""
    name = "linalg.lu_solve"
    check_square(LU, name)
    check_matrix(B, name, "B")
    check_same_dtype(LU, B, name)
    if operands.kind_of(pivots) != INT32:
        raise RuntimeError("linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32")
    check_fits(LU, B, left, name)
    since = next(sequence)
    x = _lu_solved(LU, pivots, B if left else _adjoint(B), adjoint if left else not adjoint)
    return result(x if left else _adjoint(x), "LinalgLuSolveBackward0", since)


def _adjoint(x: Tensor) -> Tensor:
    return adjoint(E, x)


def _lu_solved(LU: Tensor, pivots: Tensor, B: Tensor, adjoint: bool) -> Tensor:
    n = LU._d.shape[-1]
    factors, B = aligned(LU, B)
    order = order_of(pivots, n)
    wide = tuple(factors._d.shape[:-1])
    order = E.broadcast_to(order, shape=wide) if tuple(order._d.shape) != wide else order
    if adjoint:
        x = E.solve_triangular(_adjoint(factors), B, upper=False, unit=False)
        x = E.solve_triangular(_adjoint(factors), x, upper=True, unit=True)
        return unpermuted(E, x, order)
    x = E.solve_triangular(factors, permuted(E, B, order), upper=False, unit=True)
    return E.solve_triangular(factors, x, upper=True, unit=False)


def orthogonal(A: Tensor, complete: bool, name: str = "linalg.qr") -> tuple[Tensor, Tensor]:
    """(Q, R), reduced or complete."""
    check_matrix(A, name)
    check_floating(A, name)
    return E.qr(A, complete=complete)


@functools.partial(with_out, "linalg_qr")
def qr(A: Tensor, mode: str = "reduced") -> Any:
    """(Q, R) with A = QR, Q orthonormal columns ("reduced") or square ("complete"), or R alone ("r").

    As `torch.linalg.qr`. "complete" has no gradient for more rows than columns.
    """
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'"
        )
    q, r = orthogonal(A, mode == "complete")
    return return_types.linalg_qr(Tensor._wrap(np.zeros(0, A._dtype())) if mode == "r" else q, r)


def reflected(A: Tensor, tau: Tensor, width: int) -> Tensor:
    """The first `width` columns of the product of reflections 1 - tau v v^H, v the columns of A below its diagonal."""
    m = A._d.shape[-2]
    batch = tuple(A._d.shape[:-2])
    q = E.broadcast_to(Tensor._wrap(np.eye(m, width, dtype=A._dtype())), shape=(*batch, m, width))
    if not tau._d.shape[-1]:
        return undifferentiated(E.clone(q), "", A, tau) if on_arrays() else independent(q, A, tau)
    below = tril(A, -1)
    for k in reversed(range(tau._d.shape[-1])):
        unit = Tensor._wrap(np.eye(m, dtype=A._dtype())[:, k : k + 1])
        v = E.add(columns(E, below, k, k + 1), unit)
        scale = tau[..., k : k + 1]
        scale = E.reshape(scale, shape=(*scale._d.shape, 1))
        q = E.sub(q, E.mul(scale, E.matmul(v, E.matmul(_adjoint(v), q))))
    return q


def check_tau(name: str, a: tuple[int, ...], tau: tuple[int, ...]) -> None:
    """Raise PyTorch's RuntimeError unless there are scales of shape `tau` for reflections of shape `a`."""
    if len(a) - len(tau) != 1:
        raise RuntimeError(
            f"{name}: Expected tau to have one dimension less than input, but got tau.ndim equal to {len(tau)} and "
            f"input.ndim is equal to {len(a)}"
        )
    if tau[:-1] != a[:-2]:
        raise RuntimeError(
            f"{name}: Expected batch dimensions of tau to be equal to input.shape[:-2], but got {list(tau[:-1])}"
        )


@functools.partial(with_out, "linalg_householder_product")
def householder_product(A: Tensor, tau: Tensor) -> Tensor:
    """The first columns of a product of Householder reflections. As `torch.linalg.householder_product`."""
    name = "torch.linalg.householder_product"
    if len(shape := shape_of(A, "linalg_householder_product")) < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if shape[-2] < shape[-1]:
        raise RuntimeError(f"{name}: input.shape[-2] must be greater than or equal to input.shape[-1]")
    if operands.shape(tau) and shape[-1] < tau._d.shape[-1]:
        raise RuntimeError(f"{name}: input.shape[-1] must be greater than or equal to tau.shape[-1]")
    check_tau(name, tuple(shape), tuple(tau._d.shape))
    if tau._dtype() != A._dtype():
        raise RuntimeError(
            f"{name}: tau dtype {torch_name(tau._dtype())} does not match input dtype {torch_name(A._dtype())}"
        )
    check_floating(A, name)
    since = next(sequence)
    return result(reflected(A, tau, shape[-1]), "LinalgHouseholderProductBackward0", since)


# LDL: LAPACK's format, eager only and without gradients, which PyTorch has none of either
def _lapack(name: str, x: np.ndarray, hermitian: bool) -> Any:
    from scipy.linalg import lapack

    kind = "he" if hermitian and x.dtype.kind == "c" else "sy"
    (function,) = lapack.get_lapack_funcs((f"{kind}{name}",), (x,))
    return function


@functools.partial(with_out, "linalg_ldl_factor_ex")
def ldl_factor_ex(A: Tensor, *, hermitian: bool = False, check_errors: bool = False) -> Any:
    """(LD, pivots, info) of symmetric (Hermitian) matrices, in LAPACK's format. As in PyTorch. Eager only."""
    shape = check_square(A, "torch.linalg.ldl_factor_ex")
    check_floating(A, "torch.linalg.ldl_factor_ex")
    values = A._values_for("ldl_factor")
    factor = _lapack("trf", values, hermitian)
    found = np.zeros_like(values)
    pivots, info = np.zeros(shape[:-1], np.int32), np.zeros(shape[:-2], np.int32)
    for at in np.ndindex(shape[:-2]):
        found[at], pivots[at], info[at] = factor(values[at], lower=1)
    if check_errors and info.any():
        raise failure("torch.linalg.ldl_factor_ex: {batch}D[{at},{at}] is zero.", info)
    return return_types.linalg_ldl_factor_ex(*(Tensor._wrap(np.asarray(x)) for x in (np.tril(found), pivots, info)))


@functools.partial(with_out, "linalg_ldl_factor")
def ldl_factor(A: Tensor, *, hermitian: bool = False) -> Any:
    """(LD, pivots) of symmetric (Hermitian) matrices, in LAPACK's format. As `torch.linalg.ldl_factor`. Eager only."""
    factor, pivots, _ = ldl_factor_ex(A, hermitian=hermitian, check_errors=True)
    return return_types.linalg_ldl_factor(factor, pivots)


@functools.partial(with_out, "linalg_ldl_solve")
def ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False) -> Tensor:
    """X with AX = B from what `ldl_factor` gives of A. As `torch.linalg.ldl_solve`. Eager only."""
    check_square(LD, "torch.linalg.ldl_solve")
    check_matrix(B, "torch.linalg.ldl_solve", "B")
    check_same_dtype(LD, B, "torch.linalg.ldl_solve")
    factors, right = aligned(LD, B)
    values, swaps = factors._values_for("ldl_solve"), pivots._values_for("ldl_solve")
    swaps = np.broadcast_to(swaps, values.shape[:-1])
    solve = _lapack("trs", values, hermitian)
    found = np.empty_like(right._array())
    for at in np.ndindex(values.shape[:-2] if found.size else (0,)):
        found[at], _ = solve(values[at], swaps[at], right._array()[at], lower=1)
    return Tensor._wrap(found)
