"""Inverses, determinants, and equations."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from eager import return_types
from eager.core import operands
from eager.core.state import sequence
from eager.core.tensor import Tensor
from eager.engine.language import E
from eager.engine.node_names import named
from eager.functional.arguments import shape_of
from eager.functional.gathering import numel
from eager.functional.outputs import with_out
from eager.functional.shapes import movedim
from eager.linalg.matrix_arguments import (
    aligned,
    check_floating,
    check_matrix,
    check_same_dtype,
    check_square,
    independent,
    result,
    tolerances,
)
from eager.linalg.spectra import singular_values
from graphc.errors import LinAlgError
from graphc.ops.dtypes import INT32, is_half, is_inexact
from graphc.ops.linalg import swap_last
from graphc.ops.rules import torch_name


def inverse_of(A: Tensor, name: str = "linalg.inv") -> Tensor:
    """The inverse. Raises PyTorch's errors in the name of `name`."""
    check_square(A, name)
    check_floating(A, name)
    return E.inv(A, checked=True)


@functools.partial(with_out, "linalg_inv_ex")
def inv(A: Tensor) -> Tensor:
    """The inverse of square matrices. As `torch.linalg.inv`. LinAlgError for a singular matrix."""
    return inverse_of(A)


def zero_pivot(A: Tensor) -> Tensor:
    """The number, from 1, of the first pivot of each matrix that is zero, 0 if none is; int32."""
    n = A._d.shape[-1]
    batch = tuple(A._d.shape[:-2])
    if not n:
        return E.full(shape=batch, value=0, dtype=INT32)
    factors = E.lu(E.stop_gradient(A))[0]
    zero = E.eq(E.diagonal(factors, offset=0, dim1=len(batch), dim2=len(batch) + 1), 0)
    first = E.add(E.argmax(E.cast(zero, dtype=INT32), axis=len(batch), keepdims=False), 1)
    return E.cast(E.where(E.any(zero, axis=(len(batch),), keepdims=False), first, 0), dtype=INT32)


@functools.partial(with_out, "linalg_inv_ex")
def inv_ex(A: Tensor, *, check_errors: bool = False) -> Any:
    """(inverse, info): info is 0, or the number of the pivot that is zero. As `torch.linalg.inv_ex`."""
    check_square(A, "linalg.inv")
    check_floating(A, "linalg.inv")
    return return_types.linalg_inv_ex(E.inv(A, checked=check_errors), zero_pivot(A))


def is_vector(A: Tensor, B: Tensor) -> bool:
    """Whether `B` holds vectors rather than matrices beside the matrices `A`."""
    a, b = tuple(A._d.shape), tuple(B._d.shape)
    return len(b) == 1 or (len(a) - 1 == len(b) and b == a[:-1])


def _solved(A: Tensor, B: Tensor, left: bool, checked: bool) -> Tensor:
    name = "linalg.solve"
    check_floating(A, name)
    check_same_dtype(A, B, name)
    check_square(A, name)
    vector = is_vector(A, B)
    if not vector:
        check_matrix(B, name, "B")
    since = next(sequence)
    b = tuple(B._d.shape)
    columns_of = E.reshape(B, shape=(*b, 1)) if vector else B
    check_fits(A, columns_of, left, name)
    A, columns_of = aligned(A, columns_of)
    if left:
        x = E.solve(A, columns_of, checked=checked)
    else:
        x = swap_last(E, E.solve(swap_last(E, A), swap_last(E, columns_of), checked=checked))
    if vector:
        x = E.reshape(x, shape=tuple(x._d.shape[:-1]))
    return result(x, "LinalgSolveExBackward0", since)


def check_fits(A: Tensor, B: Tensor, left: bool, name: str) -> None:
    """Raise PyTorch's RuntimeError unless the sizes of AX = B (XA = B) fit."""
    a, b = tuple(A._d.shape), tuple(B._d.shape)
    if a[-1] != (b[-2] if left else b[-1]):
        raise RuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation {'AX' if left else 'XA'} = B "
            f"({a[-2]}x{a[-1]} and {b[-2]}x{b[-1]})"
        )


@functools.partial(with_out, "linalg_solve_ex")
def solve(A: Tensor, B: Tensor, *, left: bool = True) -> Tensor:
    """X with AX = B, or XA = B. As `torch.linalg.solve`. LinAlgError for a singular matrix."""
    return _solved(A, B, left, True)


@functools.partial(with_out, "linalg_solve_ex")
def solve_ex(A: Tensor, B: Tensor, *, left: bool = True, check_errors: bool = False) -> Any:
    """(result, info): info is 0, or the number of the pivot that is zero. As `torch.linalg.solve_ex`."""
    return return_types.linalg_solve_ex(_solved(A, B, left, check_errors), zero_pivot(A))


def triangular(A: Tensor, B: Tensor, upper: bool, left: bool, unit: bool) -> Tensor:
    """X with AX = B, or XA = B, for a triangular matrix A. Batch dims are broadcast."""
    A, B = aligned(A, B)
    if left:
        return E.solve_triangular(A, B, upper=upper, unit=unit)
    found = E.solve_triangular(swap_last(E, A), swap_last(E, B), upper=not upper, unit=unit)
    return swap_last(E, found)


@functools.partial(with_out, "linalg_solve_triangular")
def solve_triangular(A: Tensor, B: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor:
    """X with AX = B, or XA = B, from one triangle of A. As `torch.linalg.solve_triangular`."""
    name = "linalg.solve_triangular"
    check_square(A, name)
    check_matrix(B, name, "B")
    check_same_dtype(A, B, name)
    check_fits(A, B, left, name)
    check_floating(A, name)
    since = next(sequence)
    return result(triangular(A, B, upper, left, unitriangular), "LinalgSolveTriangularBackward0", since)


@functools.partial(with_out, "linalg_det")
def det(A: Tensor) -> Tensor:
    """The determinant of square matrices. As `torch.linalg.det`."""
    check_square(A, "linalg.det")
    check_floating(A, "linalg.det")
    return E.det(A)


def signed_logs(A: Tensor, name: str, kind: Any) -> Any:
    """Sign (phase) and logarithm of the size of the determinant, as a named result of function `name`."""
    check_square(A, name)
    check_floating(A, name)
    return kind(*E.slogdet(A))


@functools.partial(with_out, "linalg_slogdet")
def slogdet(A: Tensor) -> Any:
    """(sign, logabsdet) of the determinant, which may overflow itself. As `torch.linalg.slogdet`."""
    return signed_logs(A, "linalg.slogdet", return_types.linalg_slogdet)


def logdet(input: Tensor) -> Tensor:
    """The logarithm of the determinant; nan if that is negative. As `torch.logdet`."""
    check_square(input, "logdet")
    check_floating(input, "logdet")
    sign, logs = E.slogdet(input)
    if sign._dtype().kind == "c":
        return E.add(E.log(sign), logs)
    return E.where(E.eq(sign, -1), float("nan"), logs)


@functools.partial(with_out, "linalg_pinv")
def pinv(
    A: Tensor, *args: Any, atol: Any = None, rtol: Any = None, rcond: Any = None, hermitian: bool = False
) -> Tensor:
    """The pseudoinverse of Moore and Penrose. As `torch.linalg.pinv`.

    Singular values up to max(atol, rtol * the largest) count as 0; `hermitian` reads the lower triangle only.
    """
    shape = tuple(shape_of(A, "linalg_pinv"))
    if len(shape) < 2 or not is_inexact(A._dtype()) or is_half(A._dtype()):
        kind = f"{torch_name(A._dtype())}{{{list(shape)}}}"
        raise RuntimeError(
            f"linalg.pinv({kind}): expected a tensor with 2 or more dimensions of float, double, cfloat or cdouble "
            "types"
        )
    rtol = rcond if rtol is None else rtol
    if args:
        rtol = args[0]
        hermitian = args[1] if len(args) > 1 else hermitian
    if hermitian:
        check_square(A, "linalg.pinv")
    if 0 in shape:
        return E.reshape(A, shape=(*shape[:-2], shape[-1], shape[-2]))
    return E.pinv(A, *tolerances("pinv", A, atol, rtol), hermitian=hermitian)


def _check_eps(A: Tensor) -> None:
    if not is_inexact(A._dtype()) or is_half(A._dtype()):
        raise RuntimeError("This function doesn't handle types other than float and double")


DRIVERS = ("gels", "gelsy", "gelsd", "gelss")
DEFICIENT = (
    "torch.linalg.lstsq: The least squares solution could not be computed because the input matrix does not have full "
    "rank (error code: {code})."
)


@functools.partial(with_out, "linalg_lstsq")
def lstsq(A: Tensor, B: Tensor, rcond: Any = None, *, driver: str | None = None) -> Any:
    """(solution, residuals, rank, singular_values) of min ||AX - B||. As `torch.linalg.lstsq`.

    What a driver does not compute is empty. LinAlgError of "gels" for a matrix without full rank.
    """
    for x, which in ((A, "input"), (B, "other")):
        least = 2 if which == "input" else 1
        if len(operands.shape(x)) < least:
            raise RuntimeError(f"torch.linalg.lstsq: {which} must have at least {least} dimension{'s' * (least > 1)}.")
    _check_eps(A)
    if A._dtype() != B._dtype():
        raise RuntimeError(
            "torch.linalg.lstsq: Expected input and other to have the same dtype, but got input's dtype "
            f"{torch_name(A._dtype())} and other's dtype {torch_name(B._dtype())}"
        )
    if len(A._d.shape) - len(B._d.shape) not in (0, 1):
        raise RuntimeError(
            "torch.linalg.lstsq: input.dim() must be greater or equal to other.dim() and (input.dim() - other.dim()) "
            "<= 1"
        )
    vector = is_vector(A, B)
    b = E.reshape(B, shape=(*B._d.shape, 1)) if vector else B
    if A._d.shape[-2] != b._d.shape[-2]:
        raise RuntimeError(f"torch.linalg.lstsq: input.size(-2) should match other.size({-1 if vector else -2})")
    driver = driver or "gelsy"
    if driver not in DRIVERS:
        raise RuntimeError("torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)")
    A, b = aligned(A, b)
    m, n = A._d.shape[-2:]
    atol, rtol = tolerances("lstsq", A, None, rcond)
    still, axis = E.stop_gradient(A), len(A._d.shape) - 2
    values = singular_values(still)
    top = E.amax(values, axis=(axis,), keepdims=True) if min(m, n) else values
    rank = E.sum(E.gt(values, E.mul(top, rtol)), axis=(axis,), keepdims=False)
    if not numel(b._d.shape):
        rank = E.full(shape=tuple(rank._d.shape), value=0, dtype=np.dtype(np.int64))
    nothing, counts = Tensor._wrap(np.zeros(0, values._dtype())), Tensor._wrap(np.zeros(0, np.int64))
    full = (
        (rank._values_for("lstsq", python=True) == min(m, n))
        if driver == "gels" or (m > n and driver != "gelsy")
        else np.True_
    )
    if driver == "gels" and not full.all():
        first = int(np.flatnonzero(~full)[0])
        raise LinAlgError(DEFICIENT.format(code=int(rank._array().ravel()[first]) + 1))
    since = next(sequence)
    x = E.matmul(E.pinv(A, atol, rtol, hermitian=False), b)
    if m > n and driver != "gelsy" and full.all():
        # their derivative by x is 0 at the minimum
        error = E.abs(E.sub(E.matmul(A, E.stop_gradient(x)), b))
        residuals = E.sum(E.mul(error, error), axis=(axis,), keepdims=False)
    else:
        residuals = independent(nothing, A, b)
    if vector:
        x = E.reshape(x, shape=tuple(x._d.shape[:-1]))
    return return_types.linalg_lstsq(
        result(x, "LinalgLstsqBackward0", since), result(residuals, "LinalgLstsqBackward0", since),
        counts if driver == "gels" else rank, values if driver in ("gelsd", "gelss") else nothing,
    )  # fmt: skip


@functools.partial(with_out, "linalg_tensorinv")
def tensorinv(A: Tensor, ind: int = 2) -> Tensor:
    """The inverse for tensordot over the first `ind` dims. As `torch.linalg.tensorinv`."""
    if ind <= 0:
        raise RuntimeError(f"Expected a strictly positive integer for 'ind', but got {ind}")
    shape = tuple(operands.shape(A))
    front, back = shape[:ind], shape[ind:]
    if math.prod(front) != math.prod(back):
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got "
            f"{math.prod(back)} != {math.prod(front)}"
        )
    flat = E.reshape(A, shape=(math.prod(front), math.prod(back)))
    return named(E.reshape(inverse_of(flat), shape=(*back, *front)), "ReshapeAliasBackward0")


@functools.partial(with_out, "linalg_tensorsolve")
def tensorsolve(A: Tensor, B: Tensor, dims: Any = None) -> Tensor:
    """X with tensordot(A, X, X.ndim) = B; `dims` of A are moved to the end first. As `torch.linalg.tensorsolve`."""
    if dims is not None:
        A = movedim(A, tuple(dims), tuple(range(-len(dims), 0)))
    n = len(operands.shape(B))
    front, back = tuple(A._d.shape[:n]), tuple(A._d.shape[n:])
    if math.prod(front) != math.prod(back):
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), "
            f"but got {math.prod(back)} != {math.prod(front)}"
        )
    flat = E.reshape(A, shape=(math.prod(front), math.prod(back)))
    return E.reshape(solve(flat, E.reshape(B, shape=(math.prod(front),))), shape=back)
