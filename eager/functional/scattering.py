"""Writing into places with a reduction: put, scatter_reduce, index_reduce."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from eager.core.state import sequence
from eager.core.tensor import Tensor
from eager.engine.language import E
from eager.engine.node_names import enclosed, whole
from eager.functional.arguments import axis_of, lifted, shape_of
from eager.functional.arithmetic import clamp_min
from eager.functional.gathering import numel, scattered
from eager.functional.outputs import with_out
from eager.functional.scalars import filler
from eager.functional.slices import check_slices, inside, outside, reshaped
from graphc.ops.aval import Aval
from graphc.ops.dtypes import INT64, is_floating, is_inexact
from graphc.ops.index import check_index
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
    if count and not size:
        raise IndexError("put_(): Tried to put elements into an empty tensor")
    if numel(tuple(source._d.shape)) != count:
        raise IndexError(
            "put_(): Expected source and index to have the same number of elements, but got source.numel() = "
            f"{numel(tuple(source._d.shape))}, index.numel() = {count}"
        )
    flat, values, at = (E.reshape(t, shape=(n,)) for t, n in ((input, size), (source, count), (index, count)))
    try:
        written = E.index_put(flat, values, at, spec=(0,), accumulate=accumulate)
    except IndexError:
        wrong = outside(index, size, -size)
        raise IndexError(f"out of range: tried to access index {wrong} on a tensor of {size} elements.") from None
    return E.reshape(written, shape=shape)


REDUCTIONS = ("sum", "prod", "mean", "amax", "amin")
_ALSO = {"max": "amax", "min": "amin"}


def _identity(reduce: str, dtype: np.dtype) -> Any:
    """What changes nothing under a reduction."""
    if reduce in ("sum", "mean", "prod"):
        return int(reduce == "prod")
    sign = -1 if reduce == "amax" else 1
    if is_floating(dtype):
        return sign * float("inf")
    if dtype.kind == "b":
        return reduce == "amin"
    limits = np.iinfo(dtype)
    return int(limits.min if reduce == "amax" else limits.max)


def _reduced(input: Tensor, index: Tensor, src: Tensor, axis: int, reduce: str, include_self: bool) -> Tensor:
    """`input` with the elements of `src` that have an index reduced into it."""
    dtype, shape, extent = input._dtype(), tuple(input._d.shape), tuple(index._d.shape)
    x, listed, given = (Aval(tuple(t._d.shape), t._dtype()) for t in (input, index, src))
    check_index("scatter", x, listed, axis, given)
    if tuple(src._d.shape) != extent:
        src = E.slice(src, start=(0,) * len(extent), stop=extent, step=(1,) * len(extent))
    many = None
    if reduce == "mean" or not include_self:
        ones = E.full(shape=tuple(index._d.shape), value=1, dtype=INT64)
        many = E.scatter_add(E.full(shape=shape, value=0, dtype=INT64), index, ones, axis=axis)
    base = input
    if not include_self:
        base = E.where(E.gt(many, 0), _typed(_identity(reduce, dtype), dtype), input)
    if reduce in ("sum", "mean"):
        total = E.scatter_add(base, index, src, axis=axis)
        if reduce == "sum":
            return total
        count = clamp_min(E.add(many, int(include_self)), 1)
        if is_inexact(dtype):
            return E.div(total, E.cast(count, dtype=dtype))
        return E.cast(E.floor_divide(total, count), dtype=dtype)
    return E.scatter_reduce(base, index, src, axis=axis, reduce=reduce)


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
    shape_of(input, "scatter_reduce")
    reduce = _ALSO.get(reduce, reduce)
    if reduce not in REDUCTIONS:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    if reduce[0] == "a" and input._dtype().kind == "c":
        kernel = f"scatter_gather_tensor_cpu_reduce_{reduce}"
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{torch_name(input._dtype())}'")
    options = {"reduce": reduce, "include_self": include_self}
    return scattered(_reduced, "ScatterReduceBackward0", input, dim, index, src, **options)


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
    check_slices("index_reduce", input, axis, index, source)
    if reduce[0] == "a" and input._dtype().kind == "c":
        raise NotImplementedError(f"\"index_reduce_cpu\" not implemented for '{torch_name(input._dtype())}'")
    since = next(sequence)
    rows = inside(index, shape[axis] if shape else 1, lambda wrong: IndexError("index out of range in self"))
    x, source = lifted(input), lifted(source)
    given = tuple(source._d.shape)
    line = E.reshape(rows, shape=tuple(n if i == axis else 1 for i, n in enumerate(given)))
    result = _reduced(x, E.broadcast_to(line, shape=given), source, axis, reduce, include_self)
    return enclosed(reshaped(result, shape), "IndexReduceBackward0", since)


_REDUCTIONS = {"add": "sum", "multiply": "prod"}  # of `scatter`, by their names in `scatter_reduce`


def scatter(
    input: Tensor, dim: int, index: Tensor, src: Any = None, *, value: Any = None, reduce: str | None = None
) -> Tensor:
    """`input` with each src[i][j], or `value`, written at [index[i][j]][j] for dim 0, and so on. As `torch.scatter`.

    With `reduce`, "add" or "multiply", combined with what is there.
    """
    shape_of(input, "scatter")
    source = value if src is None else src
    node = f"ScatterBackward{0 if isinstance(source, Tensor) else 1}"
    if not isinstance(source, Tensor):
        extent = tuple(shape_of(index, "scatter", "index", 3))
        if 0 not in extent:
            x, at = (Aval(tuple(lifted(t)._d.shape), t._dtype()) for t in (input, index))
            check_index("scatter", x, at, axis_of(dim, x.ndim))
        source = E.broadcast_to(filler(source, input._dtype()), shape=extent)
    if reduce is None:
        return scattered(E.scatter, node, input, dim, index, source)
    if reduce not in _REDUCTIONS:
        raise RuntimeError("reduce argument must be either add or multiply.")
    return scatter_reduce(input, dim, index, source, _REDUCTIONS[reduce])
