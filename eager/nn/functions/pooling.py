"""Pooling, and what undoes it. As in `torch.nn.functional`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from eager.core.state import sequence
from eager.core.tensor import Tensor
from eager.engine.language import E
from eager.engine.node_names import enclosed, whole
from eager.functional.arguments import check_real, not_implemented, shape_of
from eager.functional.arithmetic import div, power
from eager.functional.naming import called, signature_of
from eager.functional.precision import rounds_once
from eager.nn.functions.windows import (
    Sizes,
    borders,
    check_ndim,
    check_plain,
    check_windows,
    given_windows,
    window_tuple,
)
from graphc.ops.dtypes import BOOL, FLOAT64, INT64, is_floating
from graphc.ops.rules import torch_name

__all__ = [
    "avg_pool1d", "avg_pool2d", "avg_pool3d", "lp_pool1d", "lp_pool2d", "lp_pool3d", "max_pool1d",
    "max_pool1d_with_indices", "max_pool2d", "max_pool2d_with_indices", "max_pool3d", "max_pool3d_with_indices",
    "max_unpool1d", "max_unpool2d", "max_unpool3d",
]  # fmt: skip


def batched(input: Tensor, rank: int) -> Tensor:
    """(C, *) as (1, C, *)."""
    shape = tuple(input._d.shape)
    return input if len(shape) == rank + 2 else E.reshape(input, shape=(1, *shape))


def unbatched(result: Tensor, like: Tensor, rank: int) -> Tensor:
    """(1, C, *) as (C, *), if that is how `like` was."""
    return result if len(like._d.shape) == rank + 2 else E.reshape(result, shape=tuple(result._d.shape[1:]))


def _max_pool(rank: int) -> Any:
    name = f"max_pool{rank}d"
    node = "SqueezeBackward1" if rank == 1 else f"MaxPool{rank}DWithIndicesBackward0"

    @called(name, f"The maxima of windows of (N, C, *) or (C, *), * {rank} sizes; also their places if asked for.")
    def function(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, dilation: Any = 1,
                 ceil_mode: bool = False, return_indices: bool = False) -> Any:  # fmt: skip
        shape, dtype = tuple(shape_of(input, name)), input._dtype()
        plain = rank == 1 and not return_indices
        given = given_windows(name, rank, kernel_size, stride, padding, dilation, plain)
        if plain:
            check_plain(name, shape, given)
            if not is_floating(dtype):
                raise not_implemented("max_pool1d_impl", input)
        else:
            check_ndim(shape, rank, name)
            check_windows(name, shape, given, ceil_mode)
            if dtype == BOOL or dtype.kind == "c":
                raise not_implemented(f"max_pool{max(rank, 2)}d", input)
        windows = {
            "kernel": given.kernel, "stride": given.stride, "dilation": given.dilation,
            "padding": borders(shape[-rank:], given, ceil_mode),
        }  # fmt: skip
        since = next(sequence)
        x = batched(input, rank)
        values = enclosed(unbatched(getattr(E, name)(x, **windows), input, rank), node, since)
        if not return_indices:
            return values
        return values, unbatched(getattr(E, f"{name}_index")(x, **windows), input, rank)

    return function


def with_indices(pool: Any) -> Any:
    """`pool` with `return_indices`."""

    @called(f"{pool.__name__}_with_indices", "(maxima, places).")
    def function(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        return pool(*args, **{**kwargs, "return_indices": True})

    shown = signature_of(pool, without="return_indices")
    function.__signature__ = shown.replace(return_annotation="tuple[Tensor, Tensor]")  # type: ignore[attr-defined]
    return function


max_pool1d, max_pool2d, max_pool3d = map(_max_pool, (1, 2, 3))
max_pool1d_with_indices, max_pool2d_with_indices, max_pool3d_with_indices = map(
    with_indices, (max_pool1d, max_pool2d, max_pool3d)
)


def _counts(size: Sizes, kernel: Sizes, stride: Sizes, borders: Any, padding: Sizes, include_pad: bool) -> np.ndarray:
    """How many elements each mean of a window is over; those past the (padded) end do not count."""
    result = np.ones(())
    for n, k, s, (a, b), p in zip(size, kernel, stride, borders, padding, strict=True):
        first = np.arange((n + a + b - k) // s + 1) * s - a
        last = np.minimum(first + k, n + p)
        if not include_pad:
            first, last = np.maximum(first, 0), np.minimum(last, n)
        result = result[..., None] * (last - first)
    return result


@rounds_once
def _means(x: Tensor, name: str, windows: dict[str, Any], size: int, divisor: Any) -> Tensor:
    """The sum of each window of `size` elements over `divisor`, a number or an array of them; None is for `size`."""
    mean = getattr(E, name)(x, **windows)
    if divisor is None:
        return mean
    return E.mul(mean, Tensor._wrap(np.asarray(size / divisor).astype(x._dtype())))


def _whole_means(x: Tensor, name: str, windows: dict[str, Any], size: int, divisor: Any) -> Tensor:
    """`_means` of integers, rounded towards 0."""
    total = E.round(E.mul(getattr(E, name)(E.cast(x, dtype=FLOAT64), **windows), float(size)))
    by = Tensor._wrap(np.asarray(size if divisor is None else divisor).astype(INT64))
    return div(E.cast(total, dtype=INT64), by, rounding_mode="trunc")


def _avg_pool(rank: int) -> Any:
    name = f"avg_pool{rank}d"
    node = "SqueezeBackward1" if rank == 1 else f"AvgPool{rank}DBackward0"

    @called(name, f"The mean of each window of (N, C, *) or (C, *), * {rank} sizes; padding counts as zeros.")
    def function(input: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, ceil_mode: bool = False,
                 count_include_pad: bool = True, divisor_override: int | None = None) -> Tensor:  # fmt: skip
        shape = tuple(shape_of(input, name))
        given = given_windows(name, rank, kernel_size, stride, padding)
        if divisor_override == 0:
            raise RuntimeError("divisor must be not zero")
        check_ndim(shape, rank, name)
        check_windows(name, shape, given, ceil_mode)
        floating = is_floating(input._dtype())
        if not floating and input._dtype() != INT64:
            raise not_implemented("avg_pool3d_out_frame" if rank == 3 else "avg_pool2d", input)
        edges = borders(shape[-rank:], given, ceil_mode)
        since, size = next(sequence), math.prod(given.kernel)
        divisor: Any = divisor_override
        if divisor is None and (ceil_mode or (not count_include_pad and any(given.padding))):
            counts = _counts(shape[-rank:], given.kernel, given.stride, edges, given.padding, count_include_pad)
            divisor = counts if (counts != size).any() else None
        windows = {"kernel": given.kernel, "stride": given.stride, "padding": edges}
        result = (_means if floating else _whole_means)(batched(input, rank), name, windows, size, divisor)
        return enclosed(unbatched(result, input, rank), node, since)

    return function


avg_pool1d, avg_pool2d, avg_pool3d = map(_avg_pool, (1, 2, 3))


def _lp_pool(rank: int) -> Any:
    name = f"lp_pool{rank}d"

    @called(name, "The `norm_type`-norm of each window.")
    def function(
        input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
    ) -> Tensor:
        if math.isinf(norm_type):
            sizes = E.abs(input) if norm_type > 0 else E.neg(E.abs(input))
            largest = (max_pool1d, max_pool2d, max_pool3d)[rank - 1](sizes, kernel_size, stride, 0, 1, ceil_mode)
            return largest if norm_type > 0 else E.neg(largest)
        pool = (avg_pool1d, avg_pool2d, avg_pool3d)[rank - 1]
        mean = pool(power(input, float(norm_type)), kernel_size, stride, 0, ceil_mode)
        size = math.prod(window_tuple(kernel_size, rank, name, "kernel_size"))
        total = E.mul(E.mul(E.sign(mean), E.relu(E.abs(mean))), float(size))
        return power(total, 1.0 / norm_type)

    return function


lp_pool1d, lp_pool2d, lp_pool3d = map(_lp_pool, (1, 2, 3))


def _unpooled_size(input: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, output_size: Any) -> Sizes:
    rank = len(kernel)
    default = [(n - 1) * s + k - 2 * p for n, s, k, p in zip(input[-rank:], stride, kernel, padding, strict=True)]
    if output_size is None:
        return tuple(default)
    sizes = tuple(int(n) for n in output_size)
    if len(sizes) == rank + 2:
        sizes = sizes[2:]
    if len(sizes) != rank:
        raise ValueError(
            f"output_size should be a sequence containing {rank} or {rank + 2} elements, but it has a length of "
            f"'{len(sizes)}'"
        )
    for axis, (n, usual, s) in enumerate(zip(sizes, default, stride, strict=True)):
        if not usual - s < n < usual + s:
            raise ValueError(
                f'invalid output_size "{output_size}" (dim {axis} must be between {usual - s} and {usual + s})'
            )
    return sizes


def _max_unpool(rank: int) -> Any:
    name = f"max_unpool{rank}d"

    @called(name, f"Each element at its place in an image of zeros: undoes `max_pool{rank}d` with `return_indices`.")
    @whole(f"MaxUnpool{rank}DBackward0" if rank > 1 else "SqueezeBackward1")
    def function(
        input: Tensor, indices: Tensor, kernel_size: Any, stride: Any = None, padding: Any = 0, output_size: Any = None
    ) -> Tensor:
        shape = tuple(shape_of(input, name))
        check_real(input, f"max_unpool{max(rank, 2)}d")
        kernel = window_tuple(kernel_size, rank, name, "kernel_size")
        steps = kernel if stride is None else window_tuple(stride, rank, name, "stride")
        sizes = _unpooled_size(shape, kernel, steps, window_tuple(padding, rank, name, "padding"), output_size)
        _check(rank, shape, indices, steps)
        lead, count = shape[:-rank], math.prod(sizes)
        _check_places(indices, count, sizes)
        rows = math.prod(lead)
        flat = E.full(shape=(rows, count), value=0, dtype=input._dtype())
        taken = math.prod(shape[-rank:])
        at = E.reshape(indices, shape=(rows, taken))
        lines = Tensor._wrap(np.arange(rows)[:, None])
        values = E.reshape(input, shape=(rows, taken))
        result = E.index_put(flat, values, lines, at, spec=(0, 1), accumulate=False)
        return E.reshape(result, shape=(*lead, *sizes))

    return function


def _check(rank: int, shape: Sizes, indices: Tensor, stride: Sizes) -> None:
    dims, row = max(rank, 2), (1,) if rank == 1 else ()  # a signal is an image with one column
    given, places = (*shape, *row), (*indices._d.shape, *row)
    if indices._dtype() != INT64:
        but = f" but got: {torch_name(indices._dtype())}" if dims == 2 else ""
        raise RuntimeError(f"elements in indices should be type int64{but}")
    if len(given) not in (dims + 1, dims + 2):
        raise RuntimeError(
            f"Input to max_unpooling{dims}d should be a {dims + 1}d or {dims + 2}d Tensor, but got a tensor with "
            f"{len(given)} dimensions."
        )
    if given != places:
        raise RuntimeError(
            f"Expected shape of indices to be same as that of the input tensor ({list(given)}) but got indices tensor "
            f"with shape: {list(places)}"
        )
    if min(stride) <= 0 and rank == 3:
        raise RuntimeError(f"strides should be greater than zero, but got stride: {list(stride)}")
    for axis in range(1, len(given)):
        if not given[axis]:
            raise RuntimeError(
                f"max_unpooling{dims}d_forward_out_cpu(): Expected input to have non-zero size for non-batch "
                f"dimensions, but got {list(given)} with dimension {axis} being empty."
            )


def _check_places(indices: Tensor, count: int, sizes: Sizes) -> None:
    data = indices._d
    if isinstance(data, np.ndarray) and data.size:
        outside = data[(data < 0) | (data >= count)]
        if outside.size:
            volume = "x".join(map(str, sizes if len(sizes) > 1 else (*sizes, 1)))
            raise RuntimeError(f"Found an invalid max index: {int(outside[0])} (output volumes are of size {volume})")


max_unpool1d, max_unpool2d, max_unpool3d = map(_max_unpool, (1, 2, 3))
