"""Functions made of others in `shapes`, `joining` and `indexing`: rotations, stacks of columns, splits by axis name."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index as whole_number
from typing import Any

from eager.core import operands
from eager.core.dtypes import type_name
from eager.core.tensor import Tensor
from eager.core.views import not_a_view
from eager.engine.conversion import converted
from eager.engine.language import E
from eager.engine.node_names import named, whole
from eager.functional.arguments import axis_of, shape_of
from eager.functional.gathering import nonzero, numel
from eager.functional.joining import cat, check_cuts, flip, tensor_split
from eager.functional.linear import bmm, check_same_dtype, weighted_sum
from eager.functional.naming import called
from eager.functional.parsing import no_overload
from eager.functional.shapes import diag, permute, reshape, transpose, unsqueeze
from eager.functional.updates import in_place_of
from graphc.ops.dtypes import BOOL
from graphc.ops.rules import torch_name


def _at_least(least: int) -> Any:
    @called(f"atleast_{least}d", f"A view with at least {least} dims, of each of the tensors.", "torch")
    def function(*tensors: Any) -> Any:
        if len(tensors) != 1 or not isinstance(tensors[0], Tensor):
            several = tensors[0] if len(tensors) == 1 else tensors
            if not isinstance(several, (tuple, list)):
                raise no_overload(function.__name__, tensors)
            for at, t in enumerate(several):
                if not isinstance(t, Tensor):
                    raise TypeError(operands.NOT_ELEMENT.format(at=at, position=0, kind=type_name(t)))
            return tuple(function(t) for t in several)
        t = tensors[0]
        while len(t._d.shape) < least:
            # the third dim comes last, the ones before it first
            t = unsqueeze(t, -1 if len(t._d.shape) == 2 else 0)
        return t

    return function


atleast_1d, atleast_2d, atleast_3d = _at_least(1), _at_least(2), _at_least(3)


def column_stack(tensors: Sequence[Tensor]) -> Tensor:
    """The tensors side by side, vectors as columns. As `torch.column_stack`."""
    if not tensors:
        raise RuntimeError("column_stack expects a non-empty TensorList")
    return cat([reshape(t, (-1, 1)) if len(operands.shape(t)) < 2 else t for t in tensors], 1)


def _splitter(name: str, axis: int, least: int) -> Any:
    @called(name, f"`tensor_split` along dim {axis}, in equal parts.", "torch")
    def function(input: Tensor, *indices_or_sections: Any) -> tuple[Tensor, ...]:
        shape = shape_of(input, name)
        if len(shape) < least:
            raise RuntimeError(
                f"torch.{name} requires a tensor with at least {least} dimension, but got a tensor with {len(shape)} "
                "dimensions!"
            )
        along = 0 if len(shape) == 1 else axis
        (cuts,) = indices_or_sections if len(indices_or_sections) == 1 else (indices_or_sections,)
        if not isinstance(cuts, int):
            check_cuts(cuts, name, input)
        elif cuts <= 0 or shape[along] % cuts:
            raise RuntimeError(
                f"torch.{name} attempted to split along dimension {along}, but the size of the dimension "
                f"{shape[along]} is not divisible by the split_size {cuts}!"
            )
        return tensor_split(input, cuts, along)

    return function


hsplit, vsplit, dsplit = _splitter("hsplit", 1, 1), _splitter("vsplit", 0, 2), _splitter("dsplit", 2, 3)


def fliplr(input: Tensor) -> Tensor:
    """The columns in reverse order. As `torch.fliplr`. RuntimeError for fewer than two dims."""
    if len(shape_of(input, "fliplr")) < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return flip(input, 1)


def flipud(input: Tensor) -> Tensor:
    """The rows in reverse order. As `torch.flipud`. RuntimeError for a 0-d tensor."""
    if not shape_of(input, "flipud"):
        raise RuntimeError("Input must be >= 1-d.")
    return flip(input, 0)


@whole("Rot90Backward0")
def rot90(input: Tensor, k: int = 1, dims: Sequence[int] = (0, 1)) -> Tensor:
    """`input` turned by k times 90 degrees in the plane of two dims. As `torch.rot90`."""
    ndim = len(shape_of(input, "rot90"))
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {ndim}")
    a, b = (axis_of(d, ndim) for d in dims)
    if a == b:
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}")
    turns = whole_number(k) % 4
    if turns == 2:
        return flip(input, a, b)
    if turns == 0:
        return E.clone(input)
    return E.clone(transpose(flip(input, b if turns == 1 else a), a, b))


def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """A matrix with all elements of `input` on its diagonal. As `torch.diagflat`."""
    return diag(reshape(input, (numel(shape_of(input, "diagflat")),)), offset)


@whole("TakeBackward0")
def take(input: Tensor, index: Tensor) -> Tensor:
    """The elements at `index` of the flattened `input`. As `torch.take`. IndexError for one out of range."""
    size = numel(shape_of(input, "take"))
    shape_of(index, "take", "index", 2)
    if index._dtype().kind not in "iu" or index._dtype().itemsize != 8:
        raise RuntimeError(f"take(): Expected a long tensor for index, but got {torch_name(index._dtype())}")
    if not size and 0 not in index._d.shape:
        raise IndexError("take(): tried to take from an empty tensor")
    flat = reshape(input, (size,))
    try:
        return E.index(flat, index, spec=(0,))
    except IndexError:
        values = index._values_for("take")
        outside = values[(values < -size) | (values >= size)]
        raise IndexError(
            f"out of range: tried to access index {int(outside[0])} on a tensor of {size} elements."
        ) from None


def argwhere(input: Tensor) -> Tensor:
    """The indices of the nonzero elements, a row each. As `torch.argwhere`."""
    return nonzero(input)


def kron(input: Tensor, other: Tensor) -> Tensor:
    """The Kronecker product. As `torch.kron`."""
    a, b = tuple(shape_of(input, "kron")), tuple(shape_of(other, "kron", "other", 2))
    n = max(len(a), len(b))
    a, b = (1,) * (n - len(a)) + a, (1,) * (n - len(b)) + b
    left = reshape(input, a + (1,) * n)
    product = E.mul(left, reshape(other, (1,) * n + b))
    order = tuple(axis for pair in zip(range(n), range(n, 2 * n), strict=True) for axis in pair)
    laid = reshape(permute(product, order), tuple(p * q for p, q in zip(a, b, strict=True)))
    return named(not_a_view(laid), "UnsafeViewBackward0")


@whole("AddbmmBackward0")
def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Any = 1, alpha: Any = 1) -> Tensor:
    """beta * input + alpha * (the sum of the products of two batches of matrices). As `torch.addbmm`."""
    shape_of(input, "addbmm")
    x, y = shape_of(batch1, "addbmm", "batch1", 2), shape_of(batch2, "addbmm", "batch2", 3)
    for i, shape in enumerate((x, y), 1):
        if len(shape) != 3:
            raise RuntimeError(f"batch{i} must be a 3D tensor")
    if x[0] != y[0]:
        raise RuntimeError(f"batch1 and batch2 must have same number of batches, got {x[0]} and {y[0]}")
    if x[2] != y[1]:
        raise RuntimeError(f"Incompatible matrix sizes for bmm ({x[1]}x{x[2]} and {y[1]}x{y[2]})")
    check_same_dtype(input, batch1, batch2)
    if input._dtype() == BOOL:
        raise NotImplementedError("\"addmm_impl_cpu_\" not implemented for 'Bool'")

    def products(a: Tensor, b: Tensor) -> Tensor:
        return converted(E.sum(bmm(a, b), axis=(0,), keepdims=False), a._dtype())

    return weighted_sum(input, products, (batch1, batch2), (x[1], y[2]), beta, alpha)


METHODS = {"addbmm_": in_place_of("addbmm", addbmm, check=None)}
