"""Undoing max pooling. As in `torch.nn.functional`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from eager.core.tensor import Tensor
from eager.engine.language import E
from eager.engine.node_names import whole
from eager.functional.arguments import check_real, shape_of
from eager.functional.naming import called
from eager.nn.functions.windows import Sizes, window_tuple
from graphc.ops.dtypes import INT64
from graphc.ops.rules import torch_name

__all__ = ["max_unpool1d", "max_unpool2d", "max_unpool3d"]


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
