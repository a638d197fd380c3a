"""Writing into places with a reduction: put, scatter_reduce, index_reduce."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from eager.functional.arguments import axis_of, shape_of
from eager.functional.arithmetic import clamp_min
from eager.functional.gathering import numel, scatter_add
from eager.functional.indexing import OUT_OF_BOUNDS
from eager.functional.updates import in_place_of
from eager.language import E
from eager.naming import enclosed, whole
from eager.outputs import with_out
from eager.state import sequence
from eager.tensor import Tensor
from graphc.ops.dtypes import INT32, INT64
from graphc.ops.rules import torch_name


@whole("PutBackward0")
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """`input` with `source` written (or added) at `index` of its flattened elements. As `torch.put`.

    IndexError for an index out of range or another number of elements, RuntimeError for other dtypes.
    """
    shape = tuple(shape_of(input, "put"))
    if index._dtype() != INT64:
        raise RuntimeError(f"put_(): Expected a long tensor for index, but got {torch_name(index._dtype())}")
    if source._dtype() != input._dtype():
        raise RuntimeError(
            "put_(): self and source expected to have the same dtype, but got self.dtype = "
            f"{torch_name(input._dtype())} and source.dtype = {torch_name(source._dtype())}"
        )
    count, size = numel(tuple(index._d.shape)), numel(shape)
    if numel(tuple(source._d.shape)) != count:
        raise IndexError(
            "put_(): Expected source and index to have the same number of elements, but got source.numel() = "
            f"{numel(tuple(source._d.shape))}, index.numel() = {count}"
        )
    flat, values, at = (E.reshape(t, shape=(n,)) for t, n in ((input, size), (source, count), (index, count)))
    try:
        written = E.index_put(flat, values, at, spec=(0,), accumulate=accumulate)
    except IndexError:
        places = index._values("put")
        outside = places[(places < -size) | (places >= size)]
        raise IndexError(
            f"out of range: tried to access index {int(outside[0])} on a tensor of {size} elements."
        ) from None
    return E.reshape(written, shape=shape)


REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")
_ALSO = {"max": "amax", "min": "amin"}


def _identity(reduce: str, dtype: np.dtype) -> Any:
    """What changes nothing under a reduction."""
    if reduce in ("sum", "mean", "prod"):
        return int(reduce == "prod")
    sign = -1 if reduce == "amax" else 1
    if dtype.kind == "f":
        return sign * float("inf")
    if dtype.kind == "b":
        return reduce == "amin"
    limits = np.iinfo(dtype)
    return int(limits.min if reduce == "amax" else limits.max)


def _check(input: Tensor, axis: int, index: Tensor, src: Tensor, reduce: str) -> None:
    if reduce not in REDUCTIONS:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    if index._dtype() not in (INT64, INT32):
        raise RuntimeError("scatter(): Expected dtype int32/int64 for index")
    if src._dtype() != input._dtype():
        raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
    sizes, target, given = (tuple(t._d.shape) or (1,) for t in (index, input, src))
    if not numel(tuple(index._d.shape)):
        return
    if len(sizes) != len(target):
        raise RuntimeError("Index tensor must have the same number of dimensions as self tensor")
    if len(sizes) != len(given):
        raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
    if any(n > m for i, (n, m) in enumerate(zip(sizes, target, strict=True)) if i != axis) or any(
        n > m for n, m in zip(sizes, given, strict=True)
    ):
        raise RuntimeError(
            f"Expected index {list(sizes)} to be no larger than self {list(target)} apart from dimension {axis} and to "
            f"be no larger size than src {list(given)}"
        )


def _reduced(input: Tensor, axis: int, index: Tensor, src: Tensor, reduce: str, include_self: bool) -> Tensor:
    """`input` with the elements of `src`, of the shape of `index`, reduced into it."""
    dtype, shape = input._dtype(), tuple(input._d.shape)
    many = None
    if reduce == "mean" or not include_self:
        ones = E.full(shape=tuple(index._d.shape), value=1, dtype=INT64)
        many = scatter_add(E.full(shape=shape, value=0, dtype=INT64), axis, index, ones)
    base = input
    if not include_self:
        base = E.where(E.gt(many, 0), _typed(_identity(reduce, dtype), dtype), input)
    if reduce in ("sum", "mean"):
        total = scatter_add(base, axis, index, src)
        if reduce == "sum":
            return total
        count = clamp_min(E.add(many, int(include_self)), 1)
        if dtype.kind in "fc":
            return E.div(total, E.cast(count, dtype=dtype))
        return E.cast(E.floor_divide(total, count), dtype=dtype)
    try:
        return E.scatter_reduce(base, index, src, axis=axis, reduce=reduce)
    except (RuntimeError, IndexError):
        places, size = index._values("scatter_reduce"), shape[axis]
        outside = places[(places < 0) | (places >= size)]
        if not outside.size:
            raise
        raise RuntimeError(OUT_OF_BOUNDS.format(index=int(outside[0]), dim=axis, size=size)) from None


def _typed(value: Any, dtype: np.dtype) -> Tensor:
    return Tensor._wrap(np.array(value, dtype))


@functools.partial(with_out, "scatter_reduce")
def scatter_reduce(
    input: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """`input` with the elements src[i][j] reduced into [index[i][j]][j] for dim 0, and so on.

    `reduce`: "sum", "prod", "mean", "amax" or "amin"; without `include_self`, of the elements of `src` alone where
    there are any. As `torch.scatter_reduce`. RuntimeError for an index out of bounds.
    """
    shape = tuple(shape_of(input, "scatter_reduce"))
    axis = axis_of(dim, len(shape))
    reduce = _ALSO.get(reduce, reduce)
    _check(input, axis, index, src, reduce)
    since = next(sequence)
    if not numel(tuple(index._d.shape)):
        return enclosed(E.clone(input), "ScatterReduceBackward0", since)
    if not shape:
        x, at, values = (E.reshape(t, shape=(1,)) for t in (input, index, src))
        result = E.reshape(_reduced(x, 0, at, values, reduce, include_self), shape=())
        return enclosed(result, "ScatterReduceBackward0", since)
    extent = tuple(index._d.shape)
    if tuple(src._d.shape) != extent:
        src = E.slice(src, start=(0,) * len(extent), stop=extent, step=(1,) * len(extent))
    return enclosed(_reduced(input, axis, index, src, reduce, include_self), "ScatterReduceBackward0", since)


@functools.partial(with_out, "index_reduce")
def index_reduce(
    input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """`input` with the slices of `source` along `dim` reduced into those that `index` lists. As `torch.index_reduce`.

    `reduce`: "prod", "mean", "amax" or "amin". IndexError for an index out of range.
    """
    shape = tuple(shape_of(input, "index_reduce"))
    axis = axis_of(dim, len(shape))
    if reduce not in REDUCTIONS[1:]:
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    given = tuple(source._d.shape)
    count = numel(tuple(index._d.shape))
    if given and count != given[axis]:
        raise RuntimeError(
            f"index_reduce_(): Number of indices ({count}) should be equal to source.size(dim): ({given[axis]}), for "
            f"dim: {axis}"
        )
    if source._dtype() != input._dtype():
        raise RuntimeError("index_reduce_(): self and source must have the same scalar type")
    since = next(sequence)
    line = E.reshape(index, shape=tuple(count if i == axis else 1 for i in range(len(given))))
    try:
        result = _reduced(input, axis, E.broadcast_to(line, shape=given), source, reduce, include_self)
    except RuntimeError as error:
        if "out of bounds" not in str(error):
            raise
        raise IndexError("index out of range in self") from None
    return enclosed(result, "IndexReduceBackward0", since)


put_ = in_place_of("put", put)
scatter_reduce_ = in_place_of("scatter_reduce", scatter_reduce)
index_reduce_ = in_place_of("index_reduce", index_reduce)
