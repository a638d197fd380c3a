"""Products of vectors and matrices."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from eager.core import operands
from eager.core.state import grad_enabled
from eager.core.tensor import Tensor
from eager.engine.conversion import converted
from eager.engine.language import E
from eager.engine.node_names import named, whole
from eager.functional.arguments import axis_of, shape_of
from eager.functional.outputs import into
from eager.functional.scalars import at_once, checked_alpha, common_dtype, number_of, same_float
from graphc.ops.dtypes import BOOL
from graphc.ops.rules import c_name, torch_name


def matmul(input: Tensor, other: Tensor, *, out: Any = None) -> Tensor:
    """The product of vectors, matrices or batches of matrices. As `torch.matmul`. RuntimeError if sizes do not fit."""
    if out is not None:
        return into(out, "matmul", matmul, input, other)
    return E.matmul(input, other)


def mm(input: Tensor, mat2: Tensor, *, out: Any = None) -> Tensor:
    """The product of two matrices. As `torch.mm`."""
    if out is not None:
        return into(out, "mm", mm, input, mat2)
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
    kinds = [operands.kind_of(x) for x in (input, mat, vec)]
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
    if input._dtype() != mat2._dtype():
        names = torch_name(input._dtype()), torch_name(mat2._dtype())
        raise RuntimeError(f"expected scalar type {names[0]} but found {names[1]}")
    return named(E.matmul(input, mat2), "BmmBackward0")


def sum_of(input: Tensor, product: Tensor, beta: Any, alpha: Any) -> Tensor:
    if alpha != 1:
        product = E.mul(product, alpha)
    if beta != 0:
        return E.add(input if beta == 1 else E.mul(input, beta), product)
    if input._n is None or not grad_enabled():
        return product  # nan and inf in `input` do not count
    nowhere = E.full(shape=tuple(product._d.shape), value=False, dtype=BOOL)
    return E.where(nowhere, input, product)  # a gradient of zeros flows to `input`


def weighted_sum(
    input: Tensor, product: Callable[..., Tensor], operands: tuple[Tensor, Tensor], shape: tuple[int, ...], beta: Any,
    alpha: Any,
) -> Tensor:  # fmt: skip
    """beta * input + alpha * product(*operands), of that `shape` and in the dtype of the operands, rounded once.

    RuntimeError for a factor that the dtype does not hold, and if `input` does not expand to `shape`.
    """
    dtype = operands[0]._dtype()
    beta, alpha = number_of(beta, dtype), number_of(alpha, dtype)
    if input._d.shape != shape:
        input = E.expand(input, shape=shape)
    return at_once(lambda x, *factors: sum_of(x, product(*factors), beta, alpha), input, *operands)


def check_same_dtype(input: Tensor, mat1: Tensor, mat2: Tensor) -> None:
    """Raise PyTorch's RuntimeError unless the operands of `addmm` have one dtype."""
    kinds = [x._dtype() for x in (input, mat1, mat2)]
    if kinds[0] == kinds[1] == kinds[2]:
        return
    names = [torch_name(kind) for kind in kinds]
    if kinds[0] != kinds[2]:
        raise RuntimeError(f"self and mat2 must have the same dtype, but got {names[0]} and {names[2]}")
    raise RuntimeError(f"mat1 and mat2 must have the same dtype, but got {names[1]} and {names[2]}")


@whole("AddmmBackward0")
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta * input + alpha * (mat1 @ mat2). As `torch.addmm`."""
    shape_of(input, "addmm")
    if len(shape_of(mat1, "addmm", "mat1", 2)) != 2 or len(shape_of(mat2, "addmm", "mat2", 3)) != 2:
        which, x = ("mat1", mat1) if len(mat1._d.shape) != 2 else ("mat2", mat2)
        raise RuntimeError(f"{which} must be a matrix, got {len(x._d.shape)}-D tensor")
    if not same_float(input, mat1, mat2):
        check_same_dtype(input, mat1, mat2)
    if beta == 1 and alpha == 1:
        return E.addmm(input, mat1, mat2)
    if mat1._d.shape[1] != mat2._d.shape[0]:
        return E.matmul(mat1, mat2)  # which raises the error
    return weighted_sum(input, E.matmul, (mat1, mat2), (mat1._d.shape[0], mat2._d.shape[1]), beta, alpha)


@whole("AddmvBackward0")
def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta * input + alpha * (mat @ vec). As `torch.addmv`."""
    shape_of(input, "addmv")
    _check_one_dtype(input, mat, vec)
    dims = len(shape_of(mat, "addmv", "mat", 2)), len(shape_of(vec, "addmv", "vec", 3))
    shape = tuple(mat._d.shape[:1]) if dims == (2, 1) else tuple(input._d.shape)  # else `mv` raises the error
    return weighted_sum(input, mv, (mat, vec), shape, beta, alpha)


@whole("AddrBackward0")
def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta * input + alpha * outer(vec1, vec2). As `torch.addr`, which promotes dtypes."""
    shape_of(input, "addr")
    for i, x in enumerate((vec1, vec2), 1):
        if len(shape_of(x, "addr", f"vec{i}", i + 1)) != 1:
            raise RuntimeError(f"addr: Expected 1-D argument vec{i}, but got {len(x._d.shape)}-D")
    shape = (vec1._d.shape[0], vec2._d.shape[0])
    input = input if input._d.shape == shape else E.expand(input, shape=shape)
    dtype = common_dtype(input, vec1, vec2)
    scale, factor = (_factor(name, value, dtype) for name, value in (("beta", beta), ("alpha", alpha)))
    return at_once(lambda x, y, z: sum_of(x, outer(y, z), scale, factor), input, vec1, vec2)


def _factor(name: str, value: Any, dtype: Any) -> Any:
    """`value` in `dtype`; the errors that `checked_alpha` raises call it by its name."""
    try:
        return checked_alpha(value, dtype)
    except RuntimeError as error:
        raise RuntimeError(str(error).replace("alpha", name)) from None


@whole("BaddbmmBackward0")
def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta * input + alpha * bmm(batch1, batch2). As `torch.baddbmm`."""
    shape_of(input, "baddbmm")
    x, y = shape_of(batch1, "baddbmm", "batch1", 2), shape_of(batch2, "baddbmm", "batch2", 3)
    kinds = [t._dtype() for t in (input, batch1, batch2)]
    if len(set(kinds)) > 1:
        first, second, third = map(c_name, kinds)
        raise RuntimeError(f"Input dtypes must be the same, got: input {first}, batch1: {second}, batch2: {third}")
    if kinds[0] == BOOL:
        raise NotImplementedError("\"baddbmm\" not implemented for 'Bool'")
    shape = (x[0], x[1], y[2]) if len(x) == len(y) == 3 else tuple(input._d.shape)  # else `bmm` raises the error
    return weighted_sum(input, bmm, (batch1, batch2), shape, beta, alpha)


def outer(input: Tensor, vec2: Tensor) -> Tensor:
    """The matrix of all products of two vectors. As `torch.outer`."""
    for name, x in (("self", input), ("vec2", vec2)):
        if len(shape_of(x, "outer", name)) != 1:
            raise RuntimeError(f"outer: Expected 1-D argument {name}, but got {len(x._d.shape)}-D")
    return E.mul(E.reshape(input, shape=(*input._d.shape, 1)), vec2)


def inner(input: Tensor, other: Tensor) -> Tensor:
    """Products summed over the last dims of both. As `torch.inner`."""
    if not shape_of(input, "inner") or not shape_of(other, "inner", "other", 2):
        return E.mul(input, other)
    if input._dtype() != other._dtype():
        raise RuntimeError("both inputs should have same dtype")
    if input._d.shape[-1] != other._d.shape[-1]:
        raise RuntimeError(
            "inner() the last dimension must match on both input tensors but got shapes "
            f"{list(input._d.shape)} and {list(other._d.shape)}"
        )
    return tensordot(input, other, ([-1], [-1]))


def tensordot(a: Tensor, b: Tensor, dims: Any = 2) -> Tensor:
    """Products summed over `dims`: the last of `a` and the first of `b`, or two lists of dims. As `torch.tensordot`."""
    n, m = len(shape_of(a, "tensordot", "a")), len(shape_of(b, "tensordot", "b", 2))
    if isinstance(dims, Tensor):
        dims = dims.tolist() if dims.numel() > 1 else int(dims.item())
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(n, m):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        given = tuple(range(-dims, 0)), tuple(range(dims))
    else:
        given = tuple((d,) if isinstance(d, int) else tuple(d) for d in dims)
    if len(given[0]) != len(given[1]):
        raise RuntimeError("both dimension lists should have same length")
    if a._dtype() != b._dtype():
        raise RuntimeError("both inputs should have same dtype")
    left, right = (tuple(axis_of(d, k) for d in side) for side, k in zip(given, (n, m), strict=True))
    for i, (p, q) in enumerate(zip(left, right, strict=True)):
        sizes = a._d.shape[p], b._d.shape[q]
        if sizes[0] == sizes[1]:
            continue
        if sizes[0] == 1:
            b = _summed(b, q)
        elif sizes[1] == 1:
            a = _summed(a, p)
        else:
            raise RuntimeError(
                "contracted dimensions need to match, but first has size "
                f"{sizes[0]} in dim {given[0][i]} and second has size {sizes[1]} in dim {given[1][i]}"
            )
    for side in (left, right):
        for i, axis in enumerate(side):
            if axis in side[:i]:
                raise RuntimeError(f"dim {axis} appears multiple times in the list of dims")
    free = [i for i in range(n) if i not in left], [i for i in range(m) if i not in right]
    rows, columns = [a._d.shape[i] for i in free[0]], [b._d.shape[i] for i in free[1]]
    inside = math.prod(a._d.shape[i] for i in left)
    x = E.reshape(E.permute(a, dims=(*free[0], *left)), shape=(math.prod(rows), inside))
    y = E.reshape(E.permute(b, dims=(*right, *free[1])), shape=(inside, math.prod(columns)))
    return E.reshape(E.matmul(x, y), shape=(*rows, *columns))


def _summed(x: Tensor, axis: int) -> Tensor:
    """The sum along `axis`, kept with size 1, in the dtype of `x`."""
    return converted(E.sum(x, axis=(axis,), keepdims=True), x._dtype())
