"""Products of vectors and matrices."""

from __future__ import annotations

import math
from typing import Any

from eager.functional.arguments import axis_of, shape_of, written
from eager.language import E
from eager.naming import named, whole
from eager.tensor import Tensor
from graphc.ops.rules import torch_name


def matmul(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor:
    """The product of vectors, matrices or batches of matrices. As `torch.matmul`. RuntimeError if sizes do not fit."""
    if out is not None:
        return written(out, "matmul", matmul, input, other)
    return E.matmul(input, other)


def mm(input: Tensor, mat2: Tensor, *, out: Any = None) -> Tensor:
    """The product of two matrices. As `torch.mm`."""
    if out is not None:
        return written(out, "mm", mm, input, mat2)
    if len(shape_of(input, "mm")) != 2:
        raise RuntimeError("self must be a matrix")
    if len(shape_of(mat2, "mm", "mat2", 2)) != 2:
        raise RuntimeError("mat2 must be a matrix")
    return E.matmul(input, mat2)


def mv(input: Tensor, vec: Tensor) -> Tensor:
    """The product of a matrix and a vector. As `torch.mv`."""
    dims = len(shape_of(input, "mv")), len(shape_of(vec, "mv", "vec", 2))
    if dims != (2, 1):
        raise RuntimeError(f"vector + matrix @ vector expected, got 1, {dims[0]}, {dims[1]}")
    _check_one_dtype(vec, input, vec)
    return E.matmul(input, vec)


def _check_one_dtype(input: Tensor, mat: Tensor, vec: Tensor) -> None:
    """Raise PyTorch's RuntimeError unless the operands of `addmv` have one dtype."""
    kinds = [x._dtype() for x in (input, mat, vec)]
    if len(set(kinds)) > 1:
        a, b, c = map(torch_name, kinds)
        raise RuntimeError(f"addmv input tensors must have the same dtype, but got {a}, {b}, and {c}")


def dot(input: Tensor, tensor: Tensor) -> Tensor:
    """The inner product of two vectors. As `torch.dot`."""
    dims = len(shape_of(input, "dot")), len(shape_of(tensor, "dot", "tensor", 2))
    if dims != (1, 1):
        raise RuntimeError(f"1D tensors expected, but got {dims[0]}D and {dims[1]}D tensors")
    if input._dtype() != tensor._dtype():
        names = torch_name(input._dtype()), torch_name(tensor._dtype())
        raise RuntimeError(f"dot : expected both vectors to have same dtype, but found {names[0]} and {names[1]}")
    return E.matmul(input, tensor)


def bmm(input: Tensor, mat2: Tensor) -> Tensor:
    """The products of two batches (B, N, M) and (B, M, P) of matrices. As `torch.bmm`."""
    x, y = shape_of(input, "bmm"), shape_of(mat2, "bmm", "mat2", 2)
    if len(x) != 3:
        raise RuntimeError("batch1 must be a 3D tensor")
    if len(y) != 3:
        raise RuntimeError("batch2 must be a 3D tensor")
    if x[0] != y[0] or x[2] != y[1]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{x[0]}, {x[2]}] but got: "
            f"[{y[0]}, {y[1]}]."
        )
    return named(E.matmul(input, mat2), "BmmBackward0")


def weighted_sum(input: Tensor, product: Tensor, beta: Any, alpha: Any) -> Tensor:
    """beta * input + alpha * product."""
    if alpha != 1:
        product = E.mul(product, alpha)
    if beta == 0:
        return product  # nan and inf in `input` do not count
    return E.add(input if beta == 1 else E.mul(input, beta), product)


@whole("AddmmBackward0")
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta * input + alpha * (mat1 @ mat2). As `torch.addmm`."""
    if len(shape_of(mat1, "addmm", "mat1", 2)) != 2 or len(shape_of(mat2, "addmm", "mat2", 3)) != 2:
        which, x = ("mat1", mat1) if len(mat1._d.shape) != 2 else ("mat2", mat2)
        raise RuntimeError(f"{which} must be a matrix, got {len(x._d.shape)}-D tensor")
    if beta == 1 and alpha == 1:
        return E.addmm(input, mat1, mat2)
    return weighted_sum(input, E.matmul(mat1, mat2), beta, alpha)


@whole("AddmvBackward0")
def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta * input + alpha * (mat @ vec). As `torch.addmv`."""
    _check_one_dtype(input, mat, vec)
    return weighted_sum(input, mv(mat, vec), beta, alpha)


@whole("AddrBackward0")
def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta * input + alpha * outer(vec1, vec2). As `torch.addr`."""
    return weighted_sum(input, outer(vec1, vec2), beta, alpha)


@whole("BaddbmmBackward0")
def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta * input + alpha * bmm(batch1, batch2). As `torch.baddbmm`."""
    return weighted_sum(input, bmm(batch1, batch2), beta, alpha)


def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """The matrix of all products of two vectors. As `torch.outer`."""
    for name, x in (("self", input), ("vec2", vec2)):
        if len(shape_of(x, "outer", name)) != 1:
            raise RuntimeError(f"outer: Expected 1-D argument {name}, but got {len(x._d.shape)}-D")
    return E.mul(E.reshape(input, shape=(*input._d.shape, 1)), vec2)


def inner(input: Tensor, other: Tensor) -> Tensor:
    """Products summed over the last dims of both. As `torch.inner`."""
    if not input._d.shape or not other._d.shape:
        return E.mul(input, other)
    if input._d.shape[-1] != other._d.shape[-1]:
        raise RuntimeError(
            "inner() the last dimension must match on both input tensors but got shapes "
            f"{list(input._d.shape)} and {list(other._d.shape)}"
        )
    return tensordot(input, other, ([-1], [-1]))


def tensordot(a: Tensor, b: Tensor, dims: Any = 2) -> Tensor:
    """Products summed over `dims`: the last of `a` and the first of `b`, or two lists of dims. As `torch.tensordot`."""
    n, m = len(shape_of(a, "tensordot", "a")), len(shape_of(b, "tensordot", "b", 2))
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        given = tuple(range(-dims, 0)), tuple(range(dims))
    else:
        given = tuple(dims[0]), tuple(dims[1])
    left, right = (tuple(axis_of(d, k) for d in side) for side, k in zip(given, (n, m), strict=True))
    free = [i for i in range(n) if i not in left], [i for i in range(m) if i not in right]
    shapes = a._d.shape, b._d.shape
    sizes = [shapes[0][i] for i in left], [shapes[1][i] for i in right]
    for i, (p, q) in enumerate(zip(*sizes, strict=True)):
        if p != q:
            raise RuntimeError(
                "contracted dimensions need to match, but first has size "
                f"{p} in dim {given[0][i]} and second has size {q} in dim {given[1][i]}"
            )
    rows, columns = [shapes[0][i] for i in free[0]], [shapes[1][i] for i in free[1]]
    inside = math.prod(sizes[0])
    x = E.reshape(E.permute(a, dims=(*free[0], *left)), shape=(math.prod(rows), inside))
    y = E.reshape(E.permute(b, dims=(*right, *free[1])), shape=(inside, math.prod(columns)))
    return E.reshape(E.matmul(x, y), shape=(*rows, *columns))
