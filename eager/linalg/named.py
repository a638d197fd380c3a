"""The functions of matrices that PyTorch has as `torch.<name>` (and mostly as methods), beside `torch.linalg`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from eager import return_types
from eager.core import operands
from eager.core.state import sequence
from eager.core.tensor import Tensor
from eager.engine.language import E
from eager.engine.node_names import enclosed
from eager.functional.arguments import shape_of
from eager.functional.norms import vector_norm
from eager.functional.outputs import store, with_out
from eager.linalg import factors, norms, products, solving, spectra
from eager.linalg.factors import cholesky_factor
from eager.linalg.matrix_arguments import (
    aligned,
    check_floating,
    check_square,
    result,
)
from eager.linalg.solving import triangular
from graphc.ops.linalg import swap_last
from graphc.ops.matrices import adjoint
from graphc.ops.rules import torch_name

det, inverse, matrix_exp, matrix_power = solving.det, solving.inv, products.matrix_exp, products.matrix_power
orgqr, lu_unpack, logdet = factors.householder_product, factors.lu_unpack, solving.logdet


def slogdet(input: Tensor) -> Any:
    """(sign, logabsdet) of the determinant. As `torch.slogdet`."""
    return solving.signed_logs(input, "linalg.slogdet", return_types.slogdet)


@functools.partial(with_out, "cholesky")
def cholesky(input: Tensor, upper: bool = False) -> Tensor:
    """The factor L of L L^H, or L^H. As `torch.cholesky`."""
    if 0 in shape_of(input, "cholesky"):
        return E.clone(input)
    return cholesky_factor(input, upper, "cholesky", "CholeskyBackward0")


def _check_right(A: Tensor, B: Tensor, name: str) -> None:
    if A._dtype() != B._dtype():
        raise RuntimeError(
            f"Expected b and A to have the same dtype, but found b of type {torch_name(B._dtype())} and A of type "
            f"{torch_name(A._dtype())} instead."
        )
    a, b = tuple(A._d.shape), tuple(B._d.shape)
    if a[-1] != a[-2]:
        raise RuntimeError(f"A must be batches of square matrices, but they are {a[-2]} by {a[-1]} matrices")
    if a[-1] != b[-2]:
        raise RuntimeError(
            f"Incompatible matrix sizes for {name}: each A matrix is {a[-2]} by {a[-1]} but each b matrix is {b[-2]} "
            f"by {b[-1]}"
        )


@functools.partial(with_out, "cholesky_solve")
def cholesky_solve(B: Tensor, L: Tensor, upper: bool = False) -> Tensor:
    """X with AX = B from the Cholesky factor of A. As `torch.cholesky_solve`."""
    for x, letter in ((B, "b"), (L, "u")):
        ndim = len(operands.shape(x))
        if ndim < 2:
            raise RuntimeError(f"{letter} should have at least 2 dimensions, but has {ndim} dimensions instead")
    _check_right(L, B, "cholesky_solve")
    check_floating(L, "cholesky_solve")
    L, B = aligned(L, B)
    since = next(sequence)
    first, second = (adjoint(E, L), L) if upper else (L, adjoint(E, L))
    half = E.solve_triangular(first, B, upper=False, unit=False)
    return result(E.solve_triangular(second, half, upper=True, unit=False), "CholeskySolveBackward0", since)


@functools.partial(with_out, "cholesky_inverse")
def cholesky_inverse(L: Tensor, upper: bool = False) -> Tensor:
    """The inverse of A from its Cholesky factor. As `torch.cholesky_inverse`."""
    shape = check_square(L, "cholesky_inverse")
    check_floating(L, "cholesky_inverse")
    since = next(sequence)
    eye = Tensor._wrap(np.eye(shape[-1], dtype=L._dtype()))
    return result(cholesky_solve(eye, L, upper), "CholeskyInverseBackward0", since)


def lu(A: Tensor, pivot: bool = True, get_infos: bool = False, out: Any = None) -> Any:
    """(LU, pivots), and with `get_infos` the number of the first zero pivot. As `torch.lu`."""
    factor, pivots, info = factors.lu_factor_ex(A, pivot=pivot)
    if out is not None:
        results = (factor, pivots, info) if get_infos else (factor, pivots)
        if not isinstance(out, (tuple, list)):
            raise TypeError(f"argument 'out' must be tuple of Tensors, not {type(out).__name__}")
        if len(out) != len(results):
            raise TypeError(f"expected tuple of {len(results)} elements but got {len(out)}")
        for value, target in zip(results, out, strict=True):
            store(value, target)
        return out
    return return_types._lu_with_info(factor, pivots, info) if get_infos else (factor, pivots)


@functools.partial(with_out, "lu_solve")
def lu_solve(b: Tensor, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
    """X with AX = b from what `lu` gives of A. As `torch.lu_solve`."""
    return factors.lu_solve(LU_data, LU_pivots, b)


@functools.partial(with_out, "qr")
def qr(input: Tensor, some: bool = True) -> Any:
    """(Q, R), reduced with `some`. As `torch.qr`."""
    return return_types.qr(*factors.orthogonal(input, not some))


@functools.partial(with_out, "svd")
def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> Any:
    """(U, S, V) with input = U diag(S) V^H. As `torch.svd`."""
    u, s, vh = spectra.decomposed(input, not some)
    v = adjoint(E, vh)
    if not compute_uv:
        *batch, m, n = input._d.shape
        dtype = input._dtype()
        u, v = (E.full(shape=(*batch, k, k), value=0, dtype=dtype) for k in (m, n))
    return return_types.svd(u, s, v)


def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """The pseudoinverse. As `torch.pinverse`."""
    return solving.pinv(input, rcond=rcond)


@functools.partial(with_out, "triangular_solve")
def triangular_solve(
    b: Tensor, A: Tensor, upper: bool = True, transpose: bool = False, unitriangular: bool = False
) -> Any:
    """(solution, cloned_coefficient) of AX = b, A triangular. As `torch.triangular_solve`."""
    for x, letter in ((b, "b"), (A, "A")):
        ndim = len(operands.shape(x))
        if ndim < 2:
            raise RuntimeError(
                f"torch.triangular_solve: Expected {letter} to have at least 2 dimensions, but it has {ndim} "
                "dimensions instead"
            )
    _check_right(A, b, "triangular_solve")
    check_floating(A, "triangular_solve")
    since = next(sequence)
    A_used = swap_last(E, A) if transpose else A
    found = triangular(A_used, b, upper != transpose, True, unitriangular)
    _, clone = aligned(b, A)
    return return_types.triangular_solve(result(found, "TriangularSolveBackward0", since), E.clone(clone))


def chain_matmul(*matrices: Tensor, out: Any = None) -> Tensor:
    """The product of matrices in the cheapest order. As `torch.chain_matmul`."""
    return E.clone(matrices[0]) if len(matrices) == 1 else products.multi_dot(matrices, out=out)


@functools.partial(with_out, "geqrf")
def geqrf(input: Tensor) -> Any:
    """(a, tau): Householder's reflections that make R of `input`. As `torch.geqrf`. Eager only."""
    if len(operands.shape(input)) < 2:
        raise RuntimeError("torch.geqrf: input must have at least 2 dimensions.")
    check_floating(input, "geqrf")
    a, tau = np.linalg.qr(input._values_for("geqrf"), mode="raw")
    return return_types.geqrf(Tensor._wrap(np.ascontiguousarray(np.swapaxes(a, -1, -2))), Tensor._wrap(tau))


@functools.partial(with_out, "ormqr")
def ormqr(input: Tensor, tau: Tensor, other: Tensor, left: bool = True, transpose: bool = False) -> Tensor:
    """The product of the square Q that `geqrf` gives, or of its adjoint, and `other`. As `torch.ormqr`."""
    _check_reflections(input, tau, other, left)
    since = next(sequence)
    q = factors.reflected(input, tau, input._d.shape[-2])
    q = adjoint(E, q) if transpose else q
    return enclosed(E.matmul(q, other) if left else E.matmul(other, q), "OrmqrBackward0", since)


def _check_reflections(input: Tensor, tau: Tensor, other: Tensor, left: bool) -> None:
    name, at = "torch.ormqr", -2 if left else -1
    a, t, b = (tuple(operands.shape(x)) for x in (input, tau, other))
    for shape, what in ((a, "input"), (b, "other")):
        if len(shape) < 2:
            raise RuntimeError(f"{name}: {what} must have at least 2 dimensions.")
    if b[at] != a[-2]:
        raise RuntimeError(f"{name}: other.shape[{at}] must be equal to input.shape[-2]")
    if (t[-1] if t else 1) != min(b[at], a[-1]):
        raise RuntimeError(f"{name}: tau.shape[-1] must be equal to min(other.shape[{at}], input.shape[-1])")
    factors.check_tau(name, a, t)
    if len(a) != len(b):
        raise RuntimeError(
            f"{name}: Expected other to have the same number of dimensions as input, but got other.ndim equal to "
            f"{len(b)} and input.ndim is equal to {len(a)}"
        )
    if b[:-2] != a[:-2]:
        raise RuntimeError(
            f"{name}: Expected batch dimensions of other to be equal to input.shape[:-2], but got {list(b[:-2])}"
        )
    for x, what in ((tau, "tau"), (other, "other")):
        if x._dtype() != input._dtype():
            raise RuntimeError(
                f"{name}: Expected input and {what} to have the same dtype, but input has dtype"
                f"{torch_name(input._dtype())} and {what} has dtype {torch_name(x._dtype())}"
            )
    check_floating(input, "ormqr")


def norm(input: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False, dtype: Any = None) -> Tensor:
    """The vector norm of order `p` over `dim`, over everything if None; its gradient at 0 is 0. As `torch.norm`.

    "nuc" is the sum of the singular values of the matrices in the two dims `dim`.
    """
    if isinstance(p, str) and (p != "fro" or (isinstance(dim, Sequence) and len(dim) > 2)):
        every = tuple(range(len(shape_of(input, "norm"))))
        dims = every if dim is None else dim if isinstance(dim, Sequence) else (dim,)
        return norms.matrix_norm(input, p, dims, keepdim, dtype=dtype)
    return vector_norm(input, 2.0 if p is None or isinstance(p, str) else p, dim, keepdim, dtype=dtype)


@functools.partial(with_out, "frobenius_norm")
def frobenius_norm(input: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
    """The Frobenius norm over `dim`. As `torch.frobenius_norm`."""
    return norms.vector_norm(input, 2, dim, keepdim)


@functools.partial(with_out, "nuclear_norm")
def nuclear_norm(input: Tensor, dim: Any = (-2, -1), keepdim: bool = False) -> Tensor:
    """The sum of the singular values. As `torch.nuclear_norm`."""
    return norms.matrix_norm(input, "nuc", dim, keepdim)


REMOVED = "This function was deprecated since version 1.9 and is now removed."
REMEDIES = {
    "eig": " `torch.linalg.eig` returns complex tensors of dtype `cfloat` or `cdouble` rather than real tensors "
    "mimicking complex tensors.\n\nL, _ = torch.eig(A) should be replaced with:\nL_complex = "
    "torch.linalg.eigvals(A)\n\nand\n\nL, V = torch.eig(A, eigenvectors=True) should be replaced with:\n"
    "L_complex, V_complex = torch.linalg.eig(A)",
    "lstsq": " `torch.lstsq` is deprecated in favor of `torch.linalg.lstsq`.\n`torch.linalg.lstsq` has reversed "
    "arguments and does not return the QR decomposition in the returned tuple (although it returns other "
    "information about the problem).\n\nTo get the QR decomposition consider using `torch.linalg.qr`.\n\nThe "
    "returned solution in `torch.lstsq` stored the residuals of the solution in the last m - n columns of "
    "the returned value whenever m > n. In torch.linalg.lstsq, the residuals are in the field 'residuals' of "
    "the returned named tuple.\n\nThe unpacking of the solution, as in\nX, _ = torch.lstsq(B, "
    "A).solution[:A.size(1)]\nshould be replaced with:\nX = torch.linalg.lstsq(A, B).solution",
    "matrix_rank": "\nPlease use the `torch.linalg.matrix_rank` function instead. The parameter 'symmetric' was "
    "renamed in `torch.linalg.matrix_rank()` to 'hermitian'.",
    "solve": " `torch.solve` is deprecated in favor of `torch.linalg.solve`. `torch.linalg.solve` has its arguments "
    "reversed and does not return the LU factorization.\n\nTo get the LU factorization see `torch.lu`, which "
    "can be used with `torch.lu_solve` or `torch.lu_unpack`.\nX = torch.solve(B, A).solution should be "
    "replaced with:\nX = torch.linalg.solve(A, B)",
    "symeig": " The default behavior has changed from using the upper triangular portion of the matrix by default to "
    "using the lower triangular portion.\n\nL, _ = torch.symeig(A, upper=upper) should be replaced with:\nL "
    "= torch.linalg.eigvalsh(A, UPLO='U' if upper else 'L')\n\nand\n\nL, V = torch.symeig(A, "
    "eigenvectors=True) should be replaced with:\nL, V = torch.linalg.eigh(A, UPLO='U' if upper else 'L')",
}


# what they took: a call that does not fit says so first
FORMS: dict[str, Callable[..., None]] = {
    "eig": lambda self, eigenvectors=False, *, e=None, v=None: None,
    "lstsq": lambda input, A, *, out=None: None,
    "matrix_rank": lambda input, tol=None, symmetric=False, *, out=None: None,
    "solve": lambda input, A, *, out=None: None,
    "symeig": lambda input, eigenvectors=False, upper=True, *, out=None: None,
}


def _removed(name: str) -> Callable[..., Any]:
    form = FORMS[name]
    form.__name__ = form.__qualname__ = name

    @functools.wraps(form)
    def function(*args: Any, **kwargs: Any) -> Any:
        form(*args, **kwargs)
        raise RuntimeError(REMOVED + REMEDIES[name])

    function.__doc__ = f"Removed, as `torch.{name}` is. RuntimeError."
    return function


eig, lstsq, matrix_rank, solve, symeig = map(_removed, REMEDIES)
