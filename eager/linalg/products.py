"""Products and powers of matrices and vectors."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np

from eager.core import operands
from eager.core.dtypes import type_name
from eager.core.tensor import Tensor
from eager.engine.language import E
from eager.engine.node_names import named
from eager.functional import linear, shapes
from eager.functional.arguments import axes_of, shape_of
from eager.functional.distances import cross_along
from eager.functional.outputs import with_out
from eager.linalg.matrix_arguments import check_floating, check_square, independent
from eager.linalg.solving import inverse_of
from graphc.ops.dtypes import BOOL, INT64, is_half, is_inexact
from graphc.ops.rules import c_name, torch_name


@functools.partial(with_out, "linalg_matmul")
def matmul(input: Tensor, other: Tensor) -> Tensor:
    """As `torch.matmul`."""
    return E.matmul(input, other)


def diagonal(A: Tensor, *, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Tensor:
    """The diagonal over the last two dims. As `torch.linalg.diagonal`."""
    return shapes.diagonal(A, offset, dim1, dim2)


def matrix_exp(A: Tensor) -> Tensor:
    """The exponential function of square matrices. As `torch.linalg.matrix_exp`."""
    check_square(A, "linalg.matrix_exp")
    if is_half(A._dtype()):
        return E.cast(E.matrix_exp(E.cast(A, dtype=np.dtype(np.float32))), dtype=A._dtype())
    check_floating(A, "linalg.matrix_exp")
    return E.matrix_exp(A)


@functools.partial(with_out, "linalg_matrix_power")
def matrix_power(A: Tensor, n: int) -> Tensor:
    """The `n`-th power of square matrices, of the inverse if negative. As `torch.linalg.matrix_power`."""
    if isinstance(n, float):
        raise TypeError(f"matrix_power(): argument 'n' (position 2) must be int, not {type_name(n)}")
    shape = check_square(A, "linalg.matrix_power")
    n = operator.index(n)
    if n == 0:
        one = E.broadcast_to(Tensor._wrap(np.eye(shape[-1], dtype=A._dtype())), shape=shape)
        return named(independent(one, A) if is_inexact(A._dtype()) else E.clone(one), "CopyBackwards")
    if n < 0:
        A, n = inverse_of(A), -n
        if n == 1:
            return A
    if n == 1:
        return E.clone(A)
    power = None
    while n:
        if n & 1:
            power = A if power is None else E.matmul(power, A)
        n >>= 1
        if n:
            A = E.matmul(A, A)
    assert power is not None
    return power


@functools.partial(with_out, "linalg_multi_dot")
def multi_dot(tensors: Any) -> Tensor:
    """The product of matrices in the cheapest order; the first and the last may be vectors. As in PyTorch."""
    tensors = list(tensors)
    count = len(tensors)
    if count < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {count}")
    for which, i in (("first", 0), ("last", -1)):
        ndim = len(operands.shape(tensors[i]))
        if ndim not in (1, 2):
            raise RuntimeError(f"multi_dot(): the {which} tensor must be 1D or 2D but got {ndim}D")
    for i, t in enumerate(tensors[1:-1], 1):
        if len(t._d.shape) != 2:
            raise RuntimeError(f"multi_dot(): tensor {i} must be 2D but got {len(t._d.shape)}D")
    for i, t in enumerate(tensors):
        if t._dtype() != tensors[0]._dtype():
            kinds = c_name(tensors[0]._dtype()), c_name(t._dtype())
            raise RuntimeError(
                f"multi_dot(): all tensors must have be the same dtype but tensor 0 is {kinds[0]} and tensor {i} "
                f"{kinds[1]}"
            )
    given = [tuple(t._d.shape) for t in tensors]
    for i in range(count - 1):
        if given[i][-1] != given[i + 1][0]:
            raise RuntimeError(
                f"multi_dot(): tensors {i} and {i + 1} with shapes {list(given[i])} and {list(given[i + 1])} cannot be "
                "multiplied"
            )
    result_shape = (*given[0][:-1], *given[-1][1:])
    if len(given[0]) == 1:
        tensors[0] = E.reshape(tensors[0], shape=(1, *given[0]))
    if len(given[-1]) == 1:
        tensors[-1] = E.reshape(tensors[-1], shape=(*given[-1], 1))
    sizes = [t._d.shape[0] for t in tensors] + [tensors[-1]._d.shape[1]]
    product = _multiplied(tensors, _splits(tuple(map(int, sizes))), 0, count - 1)
    return E.reshape(product, shape=result_shape)


def _splits(sizes: tuple[int, ...]) -> dict[tuple[int, int], int]:
    """Where the cheapest product of matrices i to j is cut, of matrices with these sizes.

    Cormen, Leiserson, Rivest, "Introduction to Algorithms", matrix-chain multiplication.
    """
    n = len(sizes) - 1
    cost = {(i, i): 0 for i in range(n)}
    cut: dict[tuple[int, int], int] = {}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            cost[i, j], cut[i, j] = min(
                (cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)
            )
    return cut


def _multiplied(tensors: list[Tensor], cut: dict[tuple[int, int], int], i: int, j: int) -> Tensor:
    if i == j:
        return tensors[i]
    k = cut[i, j]
    return E.matmul(_multiplied(tensors, cut, i, k), _multiplied(tensors, cut, k + 1, j))


def _check_vectors(x: Tensor, y: Tensor) -> None:
    if not is_inexact(x._dtype()):
        raise RuntimeError(
            f"linalg.vecdot: Expected a floating point or complex tensor as input. Got {torch_name(x._dtype())}"
        )
    if operands.kind_of(x) != operands.kind_of(y):
        raise RuntimeError(
            "linalg.vecdot: Expected x and y to have the same dtype, but found x of type "
            f"{torch_name(x._dtype())} and y of type {torch_name(y._dtype())} instead"
        )


@functools.partial(with_out, "linalg_vecdot")
def vecdot(x: Tensor, y: Tensor, *, dim: int = -1) -> Tensor:
    """The inner products along `dim`, of the conjugate of `x` and `y`. As `torch.linalg.vecdot`."""
    _check_vectors(x, y)
    left = E.conj(x) if x._dtype().kind == "c" else x
    if len(x._d.shape) == len(y._d.shape) == 1:
        return linear.dot(left, y)
    product = E.mul(left, y)
    return named(E.sum(product, axis=axes_of(dim, len(product._d.shape)), keepdims=False), "SumBackward1")


cross = with_out("linalg_cross", cross_along)


def vander(x: Tensor, N: int | None = None) -> Tensor:
    """The powers 0 to N - 1 of each element along a new last dim. As `torch.linalg.vander`."""
    shape = tuple(shape_of(x, "linalg_vander", "x"))
    if not shape:
        x, shape = E.reshape(x, shape=(1,)), (1,)
    if N is not None and type(N) is not int:
        raise TypeError(f"linalg_vander(): argument 'N' must be int, not {type_name(N)}")
    count = shape[-1] if N is None else N
    if count <= 1:
        raise RuntimeError("N must be greater than 1.")
    if x._dtype() == BOOL or is_half(x._dtype()):
        supported = "floating point, complex, and integer tensors"
        raise RuntimeError(f"linalg.vander supports {supported}, but got {torch_name(x._dtype())}")
    dtype = INT64 if x._dtype().kind in "ui" else x._dtype()
    x = x if x._dtype() == dtype else E.cast(x, dtype=dtype)
    ones = E.full(shape=(*shape, 1), value=1, dtype=dtype)
    repeated = E.broadcast_to(E.reshape(x, shape=(*shape, 1)), shape=(*shape, count - 1))
    return E.cat(ones, E.cumprod(repeated, axis=len(shape)), axis=len(shape))
