"""Orders along one dim, and what is found by rank: nan counts as the largest, equals keep their order."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from eager import return_types
from eager.core.dtypes import type_name
from eager.core.interpreter import on_arrays
from eager.core.state import sequence
from eager.core.tensor import Tensor
from eager.core.views import not_a_view
from eager.engine.function import Function
from eager.engine.inplace import has_history
from eager.engine.language import E
from eager.engine.node_names import enclosed, enclosed_each, named
from eager.functional.arguments import axes_of, axis_of, lifted, shape_of
from eager.functional.arithmetic import clamp_min, lerp
from eager.functional.gathering import numel
from eager.functional.joining import narrow
from eager.functional.naming import called
from eager.functional.outputs import with_out
from eager.functional.shapes import movedim
from graphc.ops.dtypes import BOOL, FLOAT32, FLOAT64, INT64, is_floating, is_inexact
from graphc.ops.rules import torch_name

NOT_SORTED = "{name} does not support {kind} dtypes on CPU"
NO_SIZE = "{name}(): Expected reduction dim {axis} to have non-zero size."


def refuse_complex(input: Tensor, name: str, *, also_bool: bool = False) -> None:
    """Raise PyTorch's NotImplementedError for a dtype without order."""
    dtype = input._dtype()
    if dtype.kind == "c" or (also_bool and dtype == BOOL):
        raise NotImplementedError(f"\"{name}_cpu\" not implemented for '{torch_name(dtype)}'")


def check_size(input: Tensor, axis: int, name: str) -> None:
    """Raise PyTorch's IndexError unless there is something along `axis`."""
    shape = input._d.shape
    if shape and not shape[axis]:
        raise IndexError(NO_SIZE.format(name=name, axis=axis))


def _sorted(input: Tensor, axis: int, descending: bool, node: str, first: int | None = None) -> Any:
    """(values, indices) in order along `axis`, or the `first` so many of them, as results of `node`."""
    since = next(sequence)
    if first == 1 and descending:
        found = E.max_dim(lifted(input), axis=axis, keepdims=True)
    else:
        found = E.sort(lifted(input), axis=axis, descending=descending, first=first)
    if not input._d.shape:
        found = [E.reshape(x, shape=()) for x in found]
    values, indices = enclosed_each(found, node, since)
    return not_a_view(values), not_a_view(indices)


def picked(name: str, input: Tensor, indices: Tensor, axis: int, since: int, node: str, keepdim: bool = True) -> Any:
    """The named result (values, indices) with the elements of `input` at `indices` along `axis`."""
    shape = input._d.shape
    values = E.gather(lifted(input), indices, axis=axis)
    if not shape:
        values, indices = E.reshape(values, shape=()), E.reshape(indices, shape=())
    elif not keepdim:
        rest = (*shape[:axis], *shape[axis + 1 :])
        values, indices = E.reshape(values, shape=rest), E.reshape(indices, shape=rest)
    values = not_a_view(enclosed(values, node, since))
    return getattr(return_types, name)(values, not_a_view(indices))


def _axis_to_sort(input: Tensor, dim: int) -> int:
    """The axis `dim` of `input`. Raises PyTorch's RuntimeError for complex numbers."""
    axis = axis_of(dim, len(shape_of(input, "sort")))
    if input._dtype().kind == "c":
        raise RuntimeError(NOT_SORTED.format(name=" Sort", kind="complex"))
    return axis


@functools.partial(with_out, "sort")
def sort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Any:
    """(values, indices) in order along `dim`; equal elements keep their order. As `torch.sort`."""
    return return_types.sort(*_sorted(input, _axis_to_sort(input, dim), descending, "SortBackward0"))


@functools.partial(with_out, "argsort")
def argsort(input: Tensor, dim: int = -1, descending: bool = False, stable: bool = False) -> Tensor:
    """The indices that sort `input` along `dim`. As `torch.argsort`."""
    order = E.argsort(lifted(input), axis=_axis_to_sort(input, dim), descending=descending)
    return order if input._d.shape else E.reshape(order, shape=())


@functools.partial(with_out, "msort")
def msort(input: Tensor) -> Tensor:
    """`input` sorted along its first dim. As `torch.msort`."""
    return sort(input, 0).values


@functools.partial(with_out, "topk")
def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Any:
    """(values, indices) of the `k` largest (or smallest) elements along `dim`. As `torch.topk`.

    RuntimeError if there are fewer than `k`.
    """
    shape = shape_of(input, "topk")
    axis = axis_of(dim, len(shape))
    if k.__class__ is not int and not hasattr(k, "__index__"):
        raise TypeError(f"topk(): argument 'k' (position 2) must be int, not {type_name(k)}")
    if not 0 <= k <= (shape[axis] if shape else 1):
        raise RuntimeError("selected index k out of range")
    for kind, name in (("c", "complex"), ("b", "bool")):
        if input._dtype().kind == kind:
            raise RuntimeError(NOT_SORTED.format(name=" topk" if kind == "c" else "topk", kind=name))
    return return_types.topk(*_sorted(input, axis, largest, "TopkBackward0", k if shape else 1))


@functools.partial(with_out, "kthvalue")
def kthvalue(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> Any:
    """(values, indices) of the `k`-th smallest element along `dim`, from 1. As `torch.kthvalue`."""
    shape = shape_of(input, "kthvalue")
    axis = axis_of(dim, len(shape), keepdim)
    check_size(input, axis, "kthvalue")
    if not 1 <= k <= (shape[axis] if shape else 1):
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {axis}")
    refuse_complex(input, "kthvalue", also_bool=True)
    since = next(sequence)
    order = narrow(E.argsort(lifted(input), axis=axis, descending=False), axis, k - 1, 1)
    return picked("kthvalue", input, order, axis, since, "KthvalueBackward0", keepdim)


def _median(name: str, ignore_nan: bool) -> Any:
    title, which = name.capitalize(), ", of what is not nan" if ignore_nan else ""

    @called(name, f"The lower median{which}: of all elements, or (values, indices) along `dim`.", "torch")
    def function(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
        shape = shape_of(input, name)
        refuse_complex(input, "median", also_bool=True)
        since = next(sequence)
        if dim is None:
            return _overall(input, name, ignore_nan, since)
        axis = axis_of(dim, len(shape), keepdim)
        check_size(input, axis, name)
        place = E.median_place(lifted(E.stop_gradient(input)), axis=axis, ignore_nan=ignore_nan)
        return picked(name, input, place, axis, since, f"{title}Backward1", keepdim)

    return with_out(name, function)


def _overall(input: Tensor, name: str, ignore_nan: bool, since: int) -> Tensor:
    """The median of all elements, equal ones of which share its gradient."""
    size = numel(tuple(input._d.shape))
    if not size:
        unknown = E.full(shape=(), value=float("nan"), dtype=input._dtype())
        if not has_history(input):
            return unknown
        total = E.sum(input, axis=axes_of(None, len(input._d.shape)), keepdims=False)
        return enclosed(E.add(total, unknown), f"{name.capitalize()}Backward0", since)
    flat = E.reshape(input, shape=(size,))
    still = E.stop_gradient(flat)
    value = E.gather(still, E.median_place(still, axis=0, ignore_nan=ignore_nan), axis=0)
    if not is_floating(input._dtype()) or not has_history(input):
        return not_a_view(E.reshape(value, shape=()))
    equal = E.logical_or(E.eq(still, value), E.logical_and(E.ne(still, still), E.ne(value, value)))
    found = E.reshape(_SharedByEquals.apply(flat, value, equal), shape=())
    return not_a_view(enclosed(found, f"{name.capitalize()}Backward0", since))


class _SharedByEquals(Function):
    """A value among those of a vector, as a vector; the elements that are `equal` to it share its gradient."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, value: Tensor, equal: Tensor) -> Tensor:
        return E.clone(value)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        ctx.save_for_backward(inputs[2])

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        (equal,), (g,) = ctx.saved_tensors, grads
        count = E.cast(E.sum(equal, axis=(0,), keepdims=False), dtype=g._dtype())
        return E.where(equal, E.div(g, count), 0), None, None


median = _median("median", False)
nanmedian = _median("nanmedian", True)


@functools.partial(with_out, "mode")
def mode(input: Tensor, dim: int = -1, keepdim: bool = False) -> Any:
    """(values, indices) of the most frequent element along `dim`, the smallest of them. As `torch.mode`."""
    axis = axis_of(dim, len(shape_of(input, "mode")), keepdim)
    check_size(input, axis, "mode")
    refuse_complex(input, "mode")
    since = next(sequence)
    place = E.mode_place(lifted(E.stop_gradient(input)), axis=axis)
    return picked("mode", input, place, axis, since, "ModeBackward0", keepdim)


def _running_extreme(name: str, largest: bool) -> Any:
    extreme = "largest" if largest else "smallest"

    @called(name, f"(values, indices) of the {extreme} element so far along `dim`, the last of equals.", "torch")
    def function(input: Tensor, dim: int) -> Any:
        axis = axis_of(dim, len(shape_of(input, name)))
        refuse_complex(input, name)
        since = next(sequence)
        places = E.argcummax(lifted(input), axis=axis, largest=largest)
        return picked(name, input, places, axis, since, f"{name.capitalize()}Backward0")

    return with_out(name, function)


cummax = _running_extreme("cummax", True)
cummin = _running_extreme("cummin", False)


@functools.partial(with_out, "logcumsumexp")
def logcumsumexp(input: Tensor, dim: int) -> Tensor:
    """The logarithm of the running sum of exp(input) along `dim`, without overflow. As `torch.logcumsumexp`."""
    shape = shape_of(input, "logcumsumexp")
    axis = axis_of(dim, len(shape))
    dtype = input._dtype()
    if not is_inexact(dtype):
        raise NotImplementedError(f"\"logcumsumexp_out_cpu\" not implemented for '{torch_name(dtype)}'")
    if shape:
        return E.logcumsumexp(input, axis=axis)
    return named(E.clone(input), "LogcumsumexpBackward0")


# interpolations that take an element as it is, by what they do with its rank
ROUNDED = {"lower": lambda r: E.floor(r), "higher": lambda r: E.ceil(r), "nearest": lambda r: E.round(r)}
# of the result, without and with a dim for q, as PyTorch prints it
NODES = {False: "SqueezeBackward4", True: "CloneBackward0"}
INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def _shares(name: str, q: Any, input: Tensor) -> Tensor:
    """`q` as a tensor of the dtype of `input`. RuntimeError unless between 0 and 1, and a number or a vector."""
    if not isinstance(q, Tensor):
        if not 0 <= q <= 1:
            raise RuntimeError(f"{name}() q must be in the range [0, 1] but got {q:g}")
        return Tensor._wrap(np.array(q, input._dtype()))
    if len(q._d.shape) > 1:
        raise RuntimeError("quantile() q must be a scalar or 1D tensor")
    if q._dtype() != input._dtype():
        raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor")
    if on_arrays(q) and not bool(((q._array() >= 0) & (q._array() <= 1)).all()):
        raise RuntimeError(f"{name}() q values must be in the range [0, 1]")
    return q


def _quantile(name: str, ignore_nan: bool) -> Any:
    @called(
        name,
        f"The `q`-quantiles along `dim`{', of what is not nan' if ignore_nan else ''}, of all elements if None; a "
        "vector `q` is the first dim of the result.",
        "torch",
    )
    def function(
        input: Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
    ) -> Tensor:
        shape = tuple(shape_of(input, name))
        if 0 in shape:
            raise RuntimeError(f"{name}() input tensor must be non-empty")
        if input._dtype() not in (FLOAT32, FLOAT64):
            raise RuntimeError(f"{name}() input tensor must be either float or double dtype")
        shares = _shares(name, q, input)
        if interpolation not in INTERPOLATIONS:
            raise RuntimeError(
                f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got "
                f"{interpolation}"
            )
        axis = None if dim is None else axis_of(dim, len(shape))
        since = next(sequence)
        rows = E.reshape(input, shape=(numel(shape),)) if axis is None or not shape else movedim(input, axis, -1)
        values = _at_ranks(rows, shares, interpolation, ignore_nan)  # the quantiles along the last dim
        many = shares._d.shape
        values = movedim(values, -1, 0)
        if axis is None:
            rest = (1,) * len(shape) if keepdim else ()
        else:
            rest = (*shape[:axis], *(1,) * (keepdim and bool(shape)), *shape[axis + 1 :])
        result = E.reshape(values, shape=(*many, *rest))
        return not_a_view(enclosed(result, NODES[bool(many)], since))

    return with_out(name, function)


def _at_ranks(rows: Tensor, shares: Tensor, interpolation: str, ignore_nan: bool) -> Tensor:
    count = rows._d.shape[-1]
    axis = len(rows._d.shape) - 1
    order = E.argsort(rows, axis=axis, descending=False)
    ordered = E.gather(rows, order, axis=axis)
    nans = E.sum(E.ne(rows, rows), axis=(axis,), keepdims=True)
    shares = E.reshape(shares, shape=(numel(tuple(shares._d.shape)),))
    if ignore_nan:
        last = clamp_min(E.sub(count - 1, nans), 0)
        ranks = E.mul(shares, last)
    else:  # the last of the sorted is nan if any is
        ranks = E.where(E.gt(nans, 0), float(count - 1), E.mul(shares, count - 1))
    dtype = rows._dtype()
    ranks = ranks if ranks._dtype() == dtype else E.cast(ranks, dtype=dtype)
    if interpolation in ROUNDED:
        return _picked(ordered, ROUNDED[interpolation](ranks), axis)
    below = E.floor(ranks)
    low = _picked(ordered, below, axis)
    high = _picked(ordered, E.ceil(ranks), axis)
    return lerp(low, high, 0.5 if interpolation == "midpoint" else E.sub(ranks, below))


def _picked(ordered: Tensor, ranks: Tensor, axis: int) -> Tensor:
    at = E.cast(E.stop_gradient(ranks), dtype=INT64)
    shape = (*ordered._d.shape[:-1], at._d.shape[-1])
    return E.gather(ordered, at if at._d.shape == shape else E.broadcast_to(at, shape=shape), axis=axis)


quantile = _quantile("quantile", False)
nanquantile = _quantile("nanquantile", True)
