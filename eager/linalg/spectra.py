"""Eigenvalues and singular values, and what is made of them."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from eager import return_types
from eager.core.state import sequence
from eager.core.tensor import Tensor
from eager.engine.language import E
from eager.functional.arguments import shape_of
from eager.functional.outputs import with_out
from eager.linalg.matrix_arguments import (
    check_floating,
    check_matrix,
    check_square,
    hermitian,
    independent,
    not_implemented,
    results,
    tolerances,
)
from graphc.ops.dtypes import is_half, is_inexact
from graphc.ops.matrices import adjoint, columns
from graphc.ops.rules import torch_name


def _triangle(UPLO: str) -> bool:
    if UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    return UPLO.upper() == "U"


def _eigh(A: Tensor, UPLO: str) -> tuple[Tensor, ...]:
    check_square(A, "linalg.eigh")
    upper = _triangle(UPLO)
    if not is_inexact(A._dtype()) or is_half(A._dtype()):
        raise not_implemented("linalg_eigh_cpu", A)
    since = next(sequence)
    return results(E.eigh(hermitian(A, upper), upper=upper), "LinalgEighBackward0", since)


@functools.partial(with_out, "linalg_eigh")
def eigh(A: Tensor, UPLO: str = "L") -> Any:
    """(eigenvalues, eigenvectors) of Hermitian matrices, of which one triangle is read; the eigenvalues in order.

    As `torch.linalg.eigh`. Gradients are those of a loss that does not depend on the signs or phases of the vectors.
    """
    return return_types.linalg_eigh(*_eigh(A, UPLO))


@functools.partial(with_out, "linalg_eigvalsh")
def eigvalsh(A: Tensor, UPLO: str = "L") -> Tensor:
    """The eigenvalues of Hermitian matrices, in order. As `torch.linalg.eigvalsh`."""
    return _eigh(A, UPLO)[0]


def _eig(A: Tensor, name: str) -> tuple[Tensor, Tensor]:
    check_square(A, name)
    if not is_inexact(A._dtype()):
        raise RuntimeError(f"Unknown Complex ScalarType for {torch_name(A._dtype())}")
    if is_half(A._dtype()):
        raise not_implemented("linalg_eig_out_cpu", A)
    return E.eig(A)


@functools.partial(with_out, "linalg_eig")
def eig(A: Tensor) -> Any:
    """(eigenvalues, eigenvectors) of square matrices, always complex. As `torch.linalg.eig`."""
    return return_types.linalg_eig(*_eig(A, "linalg.eig"))


@functools.partial(with_out, "linalg_eigvals")
def eigvals(A: Tensor) -> Tensor:
    """The eigenvalues of square matrices, always complex. As `torch.linalg.eigvals`."""
    return _eig(A, "linalg.eigvals")[0]


def _thin(A: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(U, S, V^H) with as many columns and rows as singular values."""
    check_matrix(A, "linalg.svd")
    check_floating(A, "linalg.svd")
    return E.svd(A)


def completed(q: Tensor) -> Tensor:
    """Orthonormal columns, with others added so that they make a basis."""
    m, k = q._d.shape[-2:]
    if m == k:
        return q
    if not k:
        batch = tuple(q._d.shape[:-2])
        return independent(E.broadcast_to(Tensor._wrap(np.eye(m, dtype=q._dtype())), shape=(*batch, m, m)), q)
    others = columns(E, E.qr(E.stop_gradient(q), complete=True)[0], k, m)
    return E.cat(q, others, axis=len(q._d.shape) - 1)


def decomposed(A: Tensor, full: bool) -> tuple[Tensor, ...]:
    """(U, S, V^H), each a result of its own."""
    since = next(sequence)
    u, s, vh = _thin(A)
    if full:
        u = completed(u)
        vh = vh if vh._d.shape[-2] == vh._d.shape[-1] else adjoint(E, completed(adjoint(E, vh)))
    return results((u, s, vh), "LinalgSvdBackward0", since)


@functools.partial(with_out, "linalg_svd")
def svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None) -> Any:
    """(U, S, Vh) with A = U diag(S) Vh, the singular values from the largest on. As `torch.linalg.svd`."""
    _refuse_driver(driver)
    return return_types.linalg_svd(*decomposed(A, full_matrices))


def _refuse_driver(driver: str | None) -> None:
    if driver is not None:
        raise RuntimeError(
            "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA inputs with cuSOLVER backend."
        )


def singular_values(A: Tensor) -> Tensor:
    """The singular values from the largest on."""
    return _thin(A)[1]


@functools.partial(with_out, "linalg_svdvals")
def svdvals(A: Tensor, *, driver: str | None = None) -> Tensor:
    """The singular values, from the largest on. As `torch.linalg.svdvals`."""
    _refuse_driver(driver)
    return singular_values(A)


@functools.partial(with_out, "linalg_matrix_rank")
def matrix_rank(A: Tensor, tol: Any = None, hermitian: bool = False, *, atol: Any = None, rtol: Any = None) -> Tensor:
    """How many singular values exceed max(atol, rtol * the largest). As `torch.linalg.matrix_rank`.

    Of `tol` alone: how many exceed it.
    """
    if len(shape_of(A, "linalg_matrix_rank")) < 2:
        raise RuntimeError("torch.linalg.matrix_rank: The input tensor input must have at least 2 dimensions.")
    if not is_inexact(A._dtype()) or is_half(A._dtype()):
        raise RuntimeError("This function doesn't handle types other than float and double")
    still = E.stop_gradient(A)
    batch = tuple(A._d.shape[:-2])
    if 0 in A._d.shape[-2:]:
        return E.full(shape=batch, value=0, dtype=np.dtype(np.int64))
    values = E.abs(eigvalsh(still)) if hermitian else singular_values(still)
    if tol is not None:
        atol, rtol = tol, 0.0
    absolute, relative = tolerances("matrix_rank", A, atol, rtol)
    top = E.amax(values, axis=(len(batch),), keepdims=False)
    limit = E.maximum(absolute, E.mul(relative, top))
    above = E.gt(values, E.reshape(limit, shape=(*limit._d.shape, 1)))
    return E.sum(above, axis=(len(above._d.shape) - 1,), keepdims=False)
