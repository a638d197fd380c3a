# Written by `python -m tests.stubs`: change the sources or the tables there, and run it again.
"""Linear algebra on matrices in the last two dims, with any number of batch dims before them. As `torch.linalg`."""

from collections.abc import Sequence
from eager import return_types
from eager.core.dtypes import dtype
from eager.core.tensor import Tensor
from graphc.errors import _LinAlgError as LinAlgError
from typing import overload

def cholesky(A: Tensor, *, upper: bool = False, out: Tensor | None = None) -> Tensor:
    """L with A = L L^H, or its adjoint, of positive definite matrices. As `torch.linalg.cholesky`.

    LinAlgError for one that is not. One triangle of A is read.
    """

def cholesky_ex(A: Tensor, *, upper: bool = False, check_errors: bool = False, out: Tensor | None = None) -> return_types.linalg_cholesky_ex:
    """(L, info): info is 0, or the order of the first leading minor that is not positive. As in PyTorch.

    Under a trace a matrix with such a minor is a LinAlgError.
    """

def cond(A: Tensor, p: float | str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The condition number in a norm; inf for a singular matrix. As `torch.linalg.cond`."""

def cross(input: Tensor, other: Tensor, *, dim: int = -1, out: Tensor | None = None) -> Tensor:
    """The cross products of vectors along `dim`. As `torch.linalg.cross`. RuntimeError for lengths other than 3."""

def det(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The determinant of square matrices. As `torch.linalg.det`."""

def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The diagonal over the last two dims. As `torch.linalg.diagonal`."""

def eig(A: Tensor, *, out: Tensor | None = None) -> return_types.linalg_eig:
    """(eigenvalues, eigenvectors) of square matrices, always complex. As `torch.linalg.eig`."""

def eigh(A: Tensor, UPLO: str = 'L', *, out: Tensor | None = None) -> return_types.linalg_eigh:
    """(eigenvalues, eigenvectors) of Hermitian matrices, of which one triangle is read; the eigenvalues in order.

    As `torch.linalg.eigh`. Gradients are those of a loss that does not depend on the signs or phases of the vectors.
    """

def eigvals(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The eigenvalues of square matrices, always complex. As `torch.linalg.eigvals`."""

def eigvalsh(A: Tensor, UPLO: str = 'L', *, out: Tensor | None = None) -> Tensor:
    """The eigenvalues of Hermitian matrices, in order. As `torch.linalg.eigvalsh`."""

def householder_product(A: Tensor, tau: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The first columns of a product of Householder reflections. As `torch.linalg.householder_product`."""

def inv(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of square matrices. As `torch.linalg.inv`. LinAlgError for a singular matrix."""

def inv_ex(A: Tensor, *, check_errors: bool = False, out: Tensor | None = None) -> return_types.linalg_inv_ex:
    """(inverse, info): info is 0, or the number of the pivot that is zero. As `torch.linalg.inv_ex`."""

def ldl_factor(A: Tensor, *, hermitian: bool = False, out: Tensor | None = None) -> return_types.linalg_ldl_factor:
    """(LD, pivots) of symmetric (Hermitian) matrices, in LAPACK's format. As `torch.linalg.ldl_factor`. Eager only."""

def ldl_factor_ex(A: Tensor, *, hermitian: bool = False, check_errors: bool = False, out: Tensor | None = None) -> return_types.linalg_ldl_factor_ex:
    """(LD, pivots, info) of symmetric (Hermitian) matrices, in LAPACK's format. As in PyTorch. Eager only."""

def ldl_solve(LD: Tensor, pivots: Tensor, B: Tensor, *, hermitian: bool = False, out: Tensor | None = None) -> Tensor:
    """X with AX = B from what `ldl_factor` gives of A. As `torch.linalg.ldl_solve`. Eager only."""

def lstsq(A: Tensor, B: Tensor, rcond: float | Tensor | None = None, *, driver: str | None = None, out: Tensor | None = None) -> return_types.linalg_lstsq:
    """(solution, residuals, rank, singular_values) of min ||AX - B||. As `torch.linalg.lstsq`.

    What a driver does not compute is empty. LinAlgError of "gels" for a matrix without full rank.
    """

def lu(A: Tensor, *, pivot: bool = True, out: Tensor | None = None) -> return_types.linalg_lu:
    """(P, L, U) with A = P L U. As `torch.linalg.lu`."""

def lu_factor(A: Tensor, *, pivot: bool = True, out: Tensor | None = None) -> return_types.linalg_lu_factor:
    """(LU, pivots): L and U in one matrix, and the rows swapped with the 1st, 2nd, ..., from 1. As in PyTorch.

    RuntimeError for a matrix with a zero pivot.
    """

def lu_factor_ex(A: Tensor, *, pivot: bool = True, check_errors: bool = False, out: Tensor | None = None) -> return_types.linalg_lu_factor_ex:
    """`lu_factor` with `info`: 0, or the number of the pivot that is zero. As `torch.linalg.lu_factor_ex`."""

def lu_solve(LU: Tensor, pivots: Tensor, B: Tensor, *, left: bool = True, adjoint: bool = False, out: Tensor | None = None) -> Tensor:
    """X with AX = B (XA = B; A^H instead of A) from what `lu_factor` gives of A. As `torch.linalg.lu_solve`."""

def matmul(input: Tensor, other: Tensor, *, out: Tensor | None = None) -> Tensor:
    """As `torch.matmul`."""

def matrix_exp(A: Tensor) -> Tensor:
    """The exponential function of square matrices. As `torch.linalg.matrix_exp`."""

def matrix_norm(A: Tensor, ord: float | str | None = 'fro', dim: int | Sequence[int] | None = (-2, -1), keepdim: bool = False, *, dtype: dtype | None = None, out: Tensor | None = None) -> Tensor:
    """The norm of matrices: "fro", "nuc", 1, -1, 2, -2, inf or -inf. As `torch.linalg.matrix_norm`."""

def matrix_power(A: Tensor, n: int, *, out: Tensor | None = None) -> Tensor:
    """The `n`-th power of square matrices, of the inverse if negative. As `torch.linalg.matrix_power`."""

def matrix_rank(A: Tensor, tol: float | Tensor | None = None, hermitian: bool = False, *, atol: float | Tensor | None = None, rtol: float | Tensor | None = None, out: Tensor | None = None) -> Tensor:
    """How many singular values exceed max(atol, rtol * the largest). As `torch.linalg.matrix_rank`.

    Of `tol` alone: how many exceed it.
    """

def multi_dot(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """The product of matrices in the cheapest order; the first and the last may be vectors. As in PyTorch."""

def norm(A: Tensor, ord: float | str | None = None, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, dtype: dtype | None = None, out: Tensor | None = None) -> Tensor:
    """A vector norm over one dim, a matrix norm over two; of order 2 over everything without either.

    As `torch.linalg.norm`.
    """

@overload
def pinv(A: Tensor, *, atol: float | Tensor | None = None, rtol: float | Tensor | None = None, hermitian: bool = False, out: Tensor | None = None) -> Tensor:
    """The pseudoinverse of Moore and Penrose. As `torch.linalg.pinv`.

    Singular values up to max(atol, rtol * the largest) count as 0; `hermitian` reads the lower triangle only.
    """
@overload
def pinv(A: Tensor, rcond: float | Tensor, hermitian: bool = False, *, out: Tensor | None = None) -> Tensor: ...

def qr(A: Tensor, mode: str = 'reduced', *, out: Tensor | None = None) -> return_types.qr:
    """(Q, R) with A = QR, Q orthonormal columns ("reduced") or square ("complete"), or R alone ("r").

    As `torch.linalg.qr`. "complete" has no gradient for more rows than columns.
    """

def slogdet(A: Tensor, *, out: Tensor | None = None) -> return_types.slogdet:
    """(sign, logabsdet) of the determinant, which may overflow itself. As `torch.linalg.slogdet`."""

def solve(A: Tensor, B: Tensor, *, left: bool = True, out: Tensor | None = None) -> Tensor:
    """X with AX = B, or XA = B. As `torch.linalg.solve`. LinAlgError for a singular matrix."""

def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False, out: Tensor | None = None) -> return_types.linalg_solve_ex:
    """(result, info): info is 0, or the number of the pivot that is zero. As `torch.linalg.solve_ex`."""

def solve_triangular(A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False, out: Tensor | None = None) -> Tensor:
    """X with AX = B, or XA = B, from one triangle of A. As `torch.linalg.solve_triangular`."""

def svd(A: Tensor, full_matrices: bool = True, *, driver: str | None = None, out: Tensor | None = None) -> return_types.svd:
    """(U, S, Vh) with A = U diag(S) Vh, the singular values from the largest on. As `torch.linalg.svd`."""

def svdvals(A: Tensor, *, driver: str | None = None, out: Tensor | None = None) -> Tensor:
    """The singular values, from the largest on. As `torch.linalg.svdvals`."""

def tensorinv(A: Tensor, ind: int = 2, *, out: Tensor | None = None) -> Tensor:
    """The inverse for tensordot over the first `ind` dims. As `torch.linalg.tensorinv`."""

def tensorsolve(A: Tensor, B: Tensor, dims: Sequence[int] | None = None, *, out: Tensor | None = None) -> Tensor:
    """X with tensordot(A, X, X.ndim) = B; `dims` of A are moved to the end first. As `torch.linalg.tensorsolve`."""

def vander(x: Tensor, N: int | None = None) -> Tensor:
    """The powers 0 to N - 1 of each element along a new last dim. As `torch.linalg.vander`."""

def vecdot(x: Tensor, y: Tensor, *, dim: int = -1, out: Tensor | None = None) -> Tensor:
    """The inner products along `dim`, of the conjugate of `x` and `y`. As `torch.linalg.vecdot`."""

def vector_norm(x: Tensor, ord: float | str | None = 2, dim: int | Sequence[int] | None = None, keepdim: bool = False, *, dtype: dtype | None = None, out: Tensor | None = None) -> Tensor:
    """The norm of order `ord` over `dim`, over all elements if None. As `torch.linalg.vector_norm`."""
