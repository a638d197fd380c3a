"""Histograms: how many elements, or what weight of them, lies in each bin."""

from __future__ import annotations

import builtins
import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from eager import return_types
from eager.core.tensor import Tensor
from eager.engine.language import E
from eager.functional.arguments import ALL_AXES, shape_of
from eager.functional.arithmetic import clamp_max
from eager.functional.counted import largest, number, unknown
from eager.functional.counting import underivable_all
from eager.functional.gathering import numel
from eager.functional.lines import linspace
from eager.functional.outputs import with_out
from graphc.ops.dtypes import BOOL, FLOAT32, FLOAT64, INT64, is_floating
from graphc.ops.rules import c_name, torch_name


def _extent(input: Tensor, name: str) -> tuple[float, float]:
    """The least and the greatest value."""
    if unknown(input):
        least = E.amin(input, axis=tuple(range(len(input._d.shape))), keepdims=False)
        return float(number(least, name)), float(number(largest(input), name))
    values = input._values_for(name)
    return float(values.min()), float(values.max())


def _histc_range(input: Tensor, low: float, high: float) -> tuple[float, float]:
    """The range of `histc`: that of the values if none is given, and never empty."""
    if low > high:
        raise RuntimeError("torch.histc: max must be larger than min")
    if low == high and numel(tuple(input._d.shape)):
        low, high = _extent(input, "histc")
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"torch.histc: range of [{_c_float(low)}, {_c_float(high)}] is not finite")
    return (low - 1, high + 1) if low == high else (low, high)


def _histogram_range(input: Tensor, given: Any, at: int) -> tuple[float, float]:
    """The range of dimension `at` of a histogram: that of the values if none is given, and never empty."""
    if given is not None:
        low, high = given
    else:
        low, high = _extent(input, "histogram") if numel(tuple(input._d.shape)) else (0.0, 1.0)
    if not (math.isfinite(low) and math.isfinite(high)):
        raise RuntimeError(f"torch.histogramdd: dimension {at}'s range [{low:g}, {high:g}] is not finite")
    if low > high:
        raise RuntimeError(
            f"torch.histogramdd: min should not exceed max, but got min {low:g} max {high:g} for dimension {at}"
        )
    return (low - 0.5, high + 0.5) if low == high else (low, high)


def _c_float(x: float) -> str:
    return "-nan" if x != x else f"{x:g}"


def _counted(places: Tensor, inside: Tensor, weights: Tensor | None, bins: int, dtype: np.dtype) -> Tensor:
    """The sum of the weights (ones) in each bin."""
    amounts = E.cast(inside, dtype=dtype)
    if weights is not None:
        amounts = E.where(inside, weights, 0)
    zeros = E.full(shape=(bins,), value=0, dtype=dtype)
    return E.scatter_add(zeros, E.where(inside, places, 0), amounts, axis=0)


@functools.partial(with_out, "histc")
def histc(input: Tensor, bins: int = 100, min: float = 0, max: float = 0) -> Tensor:
    """How many elements lie in each of `bins` equal bins from `min` to `max` (from the least to the greatest element if
    they are equal), in the dtype of `input`. As `torch.histc`."""
    shape_of(input, "histc")
    dtype = input._dtype()
    if not is_floating(dtype):
        raise NotImplementedError(f"\"histogram_cpu\" not implemented for '{torch_name(dtype)}'")
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    low, high = _histc_range(input, float(min), float(max))
    x = E.stop_gradient(E.reshape(input, shape=(numel(tuple(input._d.shape)),)))
    inside = E.logical_and(E.ge(x, low), E.le(x, high))
    place = E.floor(E.div(E.mul(E.sub(E.where(inside, x, low), low), float(bins)), high - low))
    places = clamp_max(E.cast(place, dtype=INT64), bins - 1)
    return _counted(places, inside, None, bins, dtype)


def _check_histogram(name: str, input: Tensor, weight: Tensor | None) -> None:
    dtype = input._dtype()
    if dtype not in (FLOAT32, FLOAT64):
        raise NotImplementedError(f"\"histogramdd\" not implemented for '{torch_name(dtype)}'")
    if weight is None:
        return
    if weight._dtype() != dtype:
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should have the same "
            f"dtype, but got input({c_name(dtype)}), and weight({c_name(weight._dtype())})"
        )
    shape, given = tuple(input._d.shape), tuple(weight._d.shape)
    if name == "histogram":
        shape, given = (numel(shape), 1), (numel(given),)
    if given != shape[:-1]:
        raise RuntimeError(
            "torch.histogramdd: if weight tensor is provided it should have the same shape as the input tensor "
            f"excluding its innermost dimension, but got input with shape {list(shape)} and weight with shape "
            f"{list(given)}"
        )


def _edges(x: Tensor, bins: Any, range: Sequence[float] | None, at: int) -> Tensor:
    """The edges of the bins of dimension number `at`, whose coordinates are `x`."""
    if isinstance(bins, Tensor):
        if len(bins._d.shape) != 1:
            raise RuntimeError(
                f"torch.histogramdd: bins tensor should have one dimension, but got {len(bins._d.shape)} dimensions in "
                f"the bins tensor for dimension {at}"
            )
        if bins._dtype() != x._dtype():
            raise RuntimeError(
                "torch.histogramdd: input tensor and bins tensors should have the same dtype, but got input with dtype "
                f"{c_name(x._dtype())} and bins for dimension {at} with dtype {c_name(bins._dtype())}"
            )
        return E.clone(E.stop_gradient(bins))
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension {at}")
    low, high = _histogram_range(x, range, at)
    return linspace(low, high, bins + 1, dtype=x.dtype)


def _binned(points: list[Tensor], edges: list[Tensor], weight: Tensor | None, density: bool) -> Tensor:
    """The number, or the weight, of the points in each bin of a grid; `points` are their coordinates."""
    counts = tuple(e._d.shape[0] - 1 for e in edges)
    inside, places = E.full(shape=(), value=True, dtype=BOOL), E.full(shape=(), value=0, dtype=INT64)
    for x, edge, count in zip(points, edges, counts, strict=True):
        within = E.logical_and(E.ge(x, edge[0]), E.le(x, edge[count]))
        inside = E.logical_and(inside, within)
        place = clamp_max(E.sub(E.searchsorted(edge, x, right=True), 1), count - 1)
        places = E.add(E.mul(places, count), place)
    weights = None if weight is None else E.stop_gradient(E.reshape(weight, shape=tuple(points[0]._d.shape)))
    dtype = points[0]._dtype()
    hist = E.reshape(_counted(places, inside, weights, math.prod(counts), dtype), shape=counts)
    if density:
        hist = E.div(hist, E.sum(hist, axis=ALL_AXES[len(counts)], keepdims=False))
        for at, edge in enumerate(edges):
            widths = E.sub(edge[1:], edge[:-1])
            hist = E.div(hist, E.reshape(widths, shape=(counts[at], *(1,) * (len(counts) - at - 1))))
    return hist


@functools.partial(with_out, "histogram")
def histogram(input: Tensor, bins: Any = 100, *, range: Any = None, weight: Tensor | None = None,
              density: bool = False) -> Any:  # fmt: skip
    """(hist, bin_edges): the elements, or their weights, in each bin, the last one with its right edge.

    `bins`: a number, or the edges. `density`: divided by the total and by the widths of the bins. As `torch.histogram`.
    """
    shape = shape_of(input, "histogram")
    _check_histogram("histogram", input, weight)
    x = E.stop_gradient(E.reshape(input, shape=(numel(tuple(shape)),)))
    edges = _edges(x, bins, range, 0)
    hist = _binned([x], [edges], weight, density)
    return return_types.histogram(*underivable_all("histogram", (input, bins, weight), hist, edges))


def histogramdd(input: Tensor, bins: Any, range: Sequence[float] | None = None, weight: Tensor | None = None,
                density: bool = False) -> Any:  # fmt: skip
    """(hist, bin_edges) of points, whose coordinates lie along the last dim, in a grid of bins.

    `bins`: their number, a number for each coordinate, or the edges for each. As `torch.histogramdd`.
    """
    shape = tuple(shape_of(input, "histogramdd"))
    if len(shape) < 2:
        raise RuntimeError("torch.histogramdd: input tensor should have at least 2 dimensions")
    ndim, count = shape[-1], numel(shape[:-1])
    bins = [bins] * ndim if isinstance(bins, int) else list(bins)
    if len(bins) != ndim:
        if bins and isinstance(bins[0], Tensor):
            raise RuntimeError(
                f"torch.histogramdd: expected {ndim} sequences of bin edges for a {ndim}-dimensional histogram but got "
                f"{len(bins)}"
            )
        raise RuntimeError("histogramdd: The size of bins must be equal to the innermost dimension of the input.")
    if range is not None and len(range) != 2 * ndim:
        raise RuntimeError(
            f"torch.histogramdd: for a {ndim}-dimensional histogram range should have {2 * ndim} elements, but got "
            f"{len(range)}"
        )
    _check_histogram("histogramdd", input, weight)
    table = E.stop_gradient(E.reshape(input, shape=(count, ndim)))
    points = [table[:, at] for at in builtins.range(ndim)]
    ranges = [None if range is None else range[2 * at : 2 * at + 2] for at in builtins.range(ndim)]
    edges = [_edges(x, b, r, at) for at, (x, b, r) in enumerate(zip(points, bins, ranges, strict=True))]
    hist = _binned(points, edges, weight, density)
    kind = "tensors" if bins and isinstance(bins[0], Tensor) else "cts"
    hist, *edges = underivable_all(f"_histogramdd_from_bin_{kind}", (input, *bins, weight), hist, *edges)
    return return_types.histogramdd(hist, tuple(edges))
