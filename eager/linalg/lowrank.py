"""Randomized factorizations: Halko, Martinsson, Tropp, "Finding Structure with Randomness", 2009."""

from __future__ import annotations

from eager import dtypes
from eager.language import E
from eager.linalg.factors import qr
from eager.linalg.spectra import svd
from eager.random import randn
from eager.tensor import Tensor
from graphc.ops.dtypes import default_float, is_inexact
from graphc.ops.matrices import adjoint


def _basis(A: Tensor, q: int, niter: int) -> Tensor:
    """`q` orthonormal columns that nearly span the range of `A` (algorithm 4.4)."""
    dtype = A._dtype()
    start = randn(A._d.shape[-1], q, dtype=dtypes.of_numpy(dtype if is_inexact(dtype) else default_float()))
    found = qr(E.matmul(A, start)).Q
    for _ in range(niter):
        found = qr(E.matmul(adjoint(E, A), found)).Q
        found = qr(E.matmul(A, found)).Q
    return found


def svd_lowrank(
    A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """(U, S, V) with A - M nearly U diag(S) V^H, of `q` singular values. As `torch.svd_lowrank` (algorithm 5.1)."""
    if M is not None:
        A = E.sub(A, M)
    wide = A._d.shape[-2] < A._d.shape[-1]
    tall = adjoint(E, A) if wide else A
    basis = _basis(tall, 6 if q is None else q, 2 if niter is None else niter)
    found = svd(E.matmul(adjoint(E, basis), tall), full_matrices=False)
    u, v = E.matmul(basis, found.U), adjoint(E, found.Vh)
    return (v, found.S, u) if wide else (u, found.S, v)


def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    """(U, S, V): `svd_lowrank` of `A`, less the means of its columns if `center`. As `torch.pca_lowrank`."""
    least = min(A._d.shape[-2:])
    if q is not None and not 0 <= q <= least:
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={least}")
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    if center:
        A = E.sub(A, E.mean(A, axis=(len(A._d.shape) - 2,), keepdims=True))
    return svd_lowrank(A, min(6, least) if q is None else q, niter)
