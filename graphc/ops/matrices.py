"""The op language on stacks of matrices: what gradient rules and kernels of linear algebra share."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from graphc.ops.aval import Aval
from graphc.ops.gradient import is_complex
from graphc.ops.linalg import swap_last
from graphc.ops.rules import accepting
from graphc.ops.spec import Op

FLOATING = accepting(
    "fc", "linalg.{name}: Expected a floating point or complex tensor as input. Got {dtype}", RuntimeError
)


def adjoint(F: Any, x: Any) -> Any:
    """The conjugate transpose of the last two axes."""
    return F.conj(swap_last(F, x)) if is_complex(x) else swap_last(F, x)


def part(F: Any, x: Any, axis: int, start: int, stop: int) -> Any:
    """x[..., start:stop] along `axis`, -1 or -2."""
    n = len(x.shape)
    low = tuple(start if i == n + axis else 0 for i in range(n))
    high = tuple(stop if i == n + axis else size for i, size in enumerate(x.shape))
    return F.slice(x, start=low, stop=high, step=(1,) * n)


def rows(F: Any, x: Any, start: int, stop: int) -> Any:
    """Rows `start` to `stop` of each matrix."""
    return part(F, x, -2, start, stop)


def columns(F: Any, x: Any, start: int, stop: int) -> Any:
    """Columns `start` to `stop` of each matrix."""
    return part(F, x, -1, start, stop)


def eye(F: Any, n: int, dtype: Any) -> Any:
    """The identity matrix."""
    return F.tril(F.triu(F.full(shape=(n, n), value=1, dtype=dtype), diagonal=0), diagonal=0)


def halved(F: Any, x: Any, dtype: Any) -> Any:
    """Square matrices with half of their diagonals."""
    return x - 0.5 * x * eye(F, x.shape[-1], dtype)


def hermitian_part(F: Any, x: Any) -> Any:
    """(x + x^H) / 2"""
    return 0.5 * (x + adjoint(F, x))


def plus(x: Any, y: Any) -> Any:
    """x + y, where a cotangent that has not arrived is None."""
    return y if x is None else x if y is None else x + y


def as_row(F: Any, x: Any) -> Any:
    """Vectors as matrices of one row."""
    return F.reshape(x, shape=(*x.shape[:-1], 1, x.shape[-1]))


def quotient(F: Any, x: Any, y: Any) -> Any:
    """x / y, and 0 where x is 0, whatever y is."""
    zero = x == 0
    return F.where(zero, 0, x / F.where(zero, 1, y))


def differences(F: Any, row: Any) -> Any:
    """d[i, j] = row[j] - row[i], 1 where i = j, of rows as 1 x n matrices."""
    return row - swap_last(F, row)


def half_sum(xp: Any, x: Any) -> Any:
    """The Hermitian part, on arrays."""
    return (x + xp.conj(xp.swapaxes(x, -1, -2))) / 2


def matrix_sizes(x: Aval) -> tuple[tuple[int, ...], int, int]:
    """(batch dims, rows, columns). Raises RuntimeError if there are fewer than two dims."""
    if x.ndim < 2:
        raise RuntimeError("The input tensor A must have at least 2 dimensions.")
    *batch, m, n = x.shape
    return tuple(batch), m, n


def known(x: Any, finite: bool = False) -> Any:
    """For each matrix whether it is one of numbers: none is nan, and if `finite` none is infinite."""
    if isinstance(x, np.ndarray):
        return (np.isfinite(x) if finite else ~np.isnan(x)).all((-2, -1))
    # XLA adds up numbers five times as fast as it asks them: 0 inf is nan, and a sum of squares is nan of nan alone
    parts = (x.real, x.imag) if x.dtype.kind == "c" else (x,)
    asked = [(part * 0 if finite else part * part).sum((-2, -1)) for part in parts]
    return ~x.__array_namespace__().isnan(sum(asked))


def all_known(x: Any, finite: bool = False) -> Any:
    """Whether all matrices are `known`, found by NumPy in one pass where all are."""
    if isinstance(x, np.ndarray):
        total = np.vdot(x, x)
        if np.isfinite(total) if finite else total == total:
            return True
    return known(x, finite).all()


def of_known(kernel: Callable[..., Any], finite: bool = False) -> Callable[..., Any]:
    """`kernel(x, ...)`, with nan for all numbers that it makes of a matrix that is not `known`: it is given the
    identity there. Elimination passes over nan as a pivot, and decompositions may search for ever (OpenBLAS's gesdd).
    """

    @functools.wraps(kernel)
    def run(x: Any, *others: Any, **params: Any) -> Any:
        if isinstance(x, np.ndarray) and all_known(x, finite):
            return kernel(x, *others, **params)
        xp, numbers = x.__array_namespace__(), known(x, finite)
        given = xp.where(numbers[..., None, None], x, xp.eye(*x.shape[-2:], dtype=x.dtype))
        found = kernel(given, *others, **params)
        several = isinstance(found, tuple)
        kept = [nan_unless(numbers, r) for r in (found if several else (found,))]
        return tuple(kept) if several else kept[0]

    return run


def nan_unless(numbers: Any, result: Any) -> Any:
    """`result`, with nan for what is made of matrices of which `numbers` is false; places stay as they are."""
    if result.dtype.kind in "iu":
        return result
    xp, behind = result.__array_namespace__(), (1,) * (result.ndim - numbers.ndim)
    return xp.where(numbers.reshape((*numbers.shape, *behind)), result, xp.nan).astype(result.dtype)


def square(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    """The shape rule of a function of square matrices. Raises PyTorch's RuntimeError for others."""
    x = avals[0]
    check_square(op.name, x.shape)
    return x


def check_square(name: str, shape: tuple[int, ...]) -> None:
    """Raise PyTorch's RuntimeError unless `shape` is one of square matrices."""
    if len(shape) < 2:
        raise RuntimeError(f"linalg.{name}: The input tensor A must have at least 2 dimensions.")
    if shape[-1] != shape[-2]:
        raise RuntimeError(
            f"linalg.{name}: A must be batches of square matrices, but they are {shape[-2]} by {shape[-1]} matrices"
        )
