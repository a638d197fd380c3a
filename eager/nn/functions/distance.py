"""Linear maps, and distances between vectors. As in `torch.nn.functional`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from eager.core import operands
from eager.core.tensor import Tensor
from eager.engine.conversion import converted
from eager.engine.language import E
from eager.engine.node_names import named, whole
from eager.functional.arguments import axis_of, shape_of
from eager.functional.linear import check_same_dtype
from eager.functional.norms import vector_norm
from eager.functional.outputs import into
from eager.functional.reductions import root
from eager.functional.scalars import at_once
from graphc.ops.dtypes import is_floating, is_half, is_inexact, result_type
from graphc.ops.rules import broadcast_shapes, torch_name

__all__ = ["bilinear", "cosine_similarity", "linear", "pairwise_distance", "pdist"]


# the last node of a product with a vector, and with batches
PRODUCTS = ("SqueezeBackward4", "UnsafeViewBackward0")


def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None, *, out: Any = None) -> Tensor:
    """input @ weight.T + bias, for input (*, in), weight (out, in), bias (out,). As `torch.nn.functional.linear`."""
    if out is not None:
        return into(out, "linear", linear, input, weight, bias)
    shape, ndim = shape_of(weight, "linear", "weight", 2), len(shape_of(input, "linear"))
    if not ndim or not shape:
        raise RuntimeError(f"both arguments to linear need to be at least 1D, but they are {ndim}D and {len(shape)}D")
    if len(shape) == 2:
        transposed = E.permute(weight, dims=(1, 0))
    elif len(shape) == 1:
        transposed = weight
    else:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {len(shape)}D")
    if bias is None:
        result = E.matmul(input, transposed)
        return result if ndim == 2 or len(shape) != 2 else named(result, PRODUCTS[ndim > 2])
    if operands.shape(bias) != shape[:1] or bias._d.dtype is not weight._d.dtype or len(shape) != 2:
        if ndim != 2 and len(bias._d.shape) != 1:
            return _plus(E.matmul(input, transposed), bias)
        _check_bias(input, weight, bias)
    if ndim == 2:
        return E.addmm(bias, input, transposed)
    # of what has gaps, PyTorch makes a product and a sum, which have errors of their own
    if input._d.dtype is not weight._d.dtype and input.is_contiguous():  # type: ignore[attr-defined]
        check_same_dtype(bias, input, weight)
    if is_half(weight._dtype()):
        result = at_once(lambda x, w, b: E.add(E.matmul(x, w), b), input, transposed, bias)
    else:
        result = E.add(E.matmul(input, transposed), bias)
    return named(result, "ViewBackward0")


def _check_bias(input: Tensor, weight: Tensor, bias: Tensor) -> None:
    """Raise the errors of PyTorch's `addmm` for a bias of another dtype or size than the rows of `weight`."""
    shape, given = weight._d.shape, bias._d.shape
    if bias._dtype() != weight._dtype():
        names = torch_name(bias._dtype()), torch_name(weight._dtype())
        raise RuntimeError("self and mat2 must have the same dtype, but got {} and {}".format(*names))
    if len(shape) != 2:
        raise RuntimeError(f"mat2 must be a matrix, got {len(shape)}-D tensor")
    rows = (math.prod(input._d.shape[:-1]), shape[0])
    if len(given) == 1 and given[0] not in (1, shape[0]):
        raise RuntimeError(
            f"The expanded size of the tensor ({shape[0]}) must match the existing size ({given[0]}) at non-singleton "
            f"dimension 1.  Target sizes: {list(rows)}.  Tensor sizes: {list(given)}"
        )


def _plus(product: Tensor, bias: Tensor) -> Tensor:
    """`product` plus a `bias` that is no vector, in the shape and the dtype of `product`."""
    shape = tuple(product._d.shape)
    spread = broadcast_shapes([shape, bias._d.shape])
    if spread != shape:
        raise RuntimeError(f"output with shape {list(shape)} doesn't match the broadcast shape {list(spread)}")
    return converted(E.add(product, bias), product._dtype())


@whole("ViewBackward0")
def _bilinear(input1: Tensor, input2: Tensor, weight: Tensor) -> Tensor:
    (*lead, n), m, out = input1._d.shape, input2._d.shape[-1], weight._d.shape[0]
    rows = math.prod(lead)
    x, y = E.reshape(input1, shape=(rows, n)), E.reshape(input2, shape=(rows, m))
    return E.reshape(E.einsum(x, weight, y, equation="bi,oij,bj->bo"), shape=(*lead, out))


def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x^T W y + bias for inputs (*, n) and (*, m) and weight (out, n, m). As `torch.nn.functional.bilinear`."""
    a, b, w = map(tuple, map(operands.shape, (input1, input2, weight)))
    for axis in (1, 2):
        axis_of(axis, len(w))
    if not a or not b:
        raise IndexError("Dimension specified as -1 but tensor has no dimensions")
    if len(a) != len(b):
        raise RuntimeError(f"bilinear(): input dimensions do not match: got {len(a)} and {len(b)}")
    for i, (m, n) in enumerate(zip(a[:-1], b[:-1], strict=True)):
        if m != n:
            raise RuntimeError(f"bilinear(): input batch dimensions do not match at dim {i}: got {m} and {n}")
    for which, size, expected in ((1, a[-1], w[1]), (2, b[-1], w[2])):
        if size != expected:
            raise RuntimeError(
                f"bilinear(): input{which} size does not match weight size: got {size} but expected {expected}"
            )
    if bias is not None and bias._d.shape[:1] != w[:1]:
        given = bias._d.shape[0] if bias._d.shape else 0
        raise RuntimeError(f"bilinear(): bias size does not match weight size: got {given} but expected {w[0]}")
    result = _bilinear(input1, input2, weight)
    return result if bias is None else E.add(result, bias)


def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """The cosine of the angle between x1 and x2 along `dim`, norms at least `eps`. As in PyTorch."""
    for position, x in enumerate((x1, x2), 1):
        shape_of(x, "cosine_similarity", f"x{position}", position)
    dtype = result_type([(x._dtype(), 2 if x._d.shape else 1) for x in (x1, x2)])
    if not is_floating(dtype):
        raise RuntimeError(f"expected common dtype to be floating point, yet common dtype is {torch_name(dtype)}")
    common = broadcast_shapes([tuple(x1._d.shape), tuple(x2._d.shape)])
    axis = axis_of(dim, len(common))
    unit = []
    for x in (x1, x2):
        if not is_inexact(x._dtype()):
            x = E.cast(x, dtype=dtype)
        if tuple(x._d.shape) != common:
            x = E.broadcast_to(x, shape=common)
        length = vector_norm(x, 2, dim, keepdim=True)
        # the bound holds for the value; the gradient is that of the length itself
        least = E.add(E.sub(length, E.stop_gradient(length)), eps)
        unit.append(E.div(x, E.where(E.lt(length, eps), least, length)))
    product = E.mul(*unit)
    return named(E.sum(product, axis=(axis,), keepdims=False), "SumBackward1") if common else product


@whole("NormBackward1")
def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """The p-norm of x1 - x2 + eps along the last dim. As `torch.nn.functional.pairwise_distance`."""
    difference = E.add(E.sub(x1, x2), eps)
    return vector_norm(difference, p, -1 if difference._d.shape else None, keepdim)


@whole("PdistBackward0")
def pdist(input: Tensor, p: float = 2) -> Tensor:
    """The p-norms between all pairs of rows of (n, m): (n (n - 1) / 2,). As `torch.nn.functional.pdist`."""
    shape = shape_of(input, "pdist")
    if len(shape) != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {len(shape)}D")
    dtype = input._dtype()
    if not is_floating(dtype):
        raise RuntimeError("pdist only supports floating-point dtypes")
    if p < 0:
        raise RuntimeError("pdist only supports non-negative p values")
    if is_half(dtype):
        raise NotImplementedError(f"\"pdist\" not implemented for '{torch_name(dtype)}'")
    first, second = (Tensor._wrap(i) for i in np.triu_indices(shape[0], 1))
    difference = E.sub(E.index(input, first, spec=(0,)), E.index(input, second, spec=(0,)))
    if p == 2:
        return root(E.sum(E.square(difference), axis=(1,), keepdims=False))
    if p == 0:  # the gradient of a count is zero, not missing
        total = E.sum(difference, axis=(1,), keepdims=False)
        return E.where(Tensor._wrap(np.ones(total._d.shape, bool)), vector_norm(difference, p, 1), total)
    return vector_norm(difference, p, 1)
