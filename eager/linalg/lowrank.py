"""Factorizations of low rank: Halko, Martinsson, Tropp, "Finding Structure with Randomness", 2009."""

from __future__ import annotations

from typing import Any

from eager.core import dtypes
from eager.core.tensor import Tensor
from eager.engine.language import E
from eager.functional.joining import flip, narrow
from eager.linalg.factors import cholesky, qr
from eager.linalg.solving import solve_triangular
from eager.linalg.spectra import eigh, svd
from eager.rng.functions import randn
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


def lobpcg(
    A: Tensor, k: int | None = None, B: Tensor | None = None, X: Tensor | None = None, n: int | None = None,
    iK: Tensor | None = None, niter: int | None = None, tol: float | None = None, largest: bool | None = None,
    method: str | None = None, tracker: Any = None, ortho_iparams: Any = None, ortho_fparams: Any = None,
    ortho_bparams: Any = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """(values, vectors): the `k` largest or smallest of A x = e B x, A symmetric. As `torch.lobpcg`.

    All pairs are computed, to rounding, and `k` kept: what steers the iteration of PyTorch (`X` beyond its number of
    columns, `iK`, `niter`, `tol`, `method`, `tracker`, `ortho_*`) changes nothing.
    """
    size = A._d.shape[-1]
    count = k if k is not None else 1 if X is None else int(X._d.shape[-1])
    if size < 3 * count:
        raise ValueError(
            f"LPBPCG algorithm is not applicable when the number of A rows (={size}) is smaller than 3 x the number "
            f"of requested eigenpairs (={count})"
        )
    if B is None:
        values, vectors = eigh(A)
    else:  # with B = L L^H, the problem of L^-1 A L^-H
        factor = cholesky(B)
        half = solve_triangular(factor, A, upper=False)
        values, turned = eigh(solve_triangular(factor, adjoint(E, half), upper=False))
        vectors = solve_triangular(adjoint(E, factor), turned, upper=True)
    if largest is None or largest:
        values, vectors = flip(values, (-1,)), flip(vectors, (-1,))
    return narrow(values, -1, 0, count), narrow(vectors, -1, 0, count)
