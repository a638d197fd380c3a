"""Pools whose windows cover the input evenly, whatever their number. As in `torch.nn.functional`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from eager.core.interpreter import on_arrays
from eager.core.state import sequence
from eager.core.tensor import Tensor
from eager.engine.language import E
from eager.engine.node_names import enclosed, named
from eager.functional.arguments import check_real, shape_of
from eager.functional.gathering import gather
from eager.functional.naming import called
from eager.functional.precision import rounds_once
from eager.functional.reductions import mean
from eager.nn.functions.pooling import batched, unbatched, with_indices
from eager.nn.functions.windows import Sizes, check_ndim
from graphc.ops.dtypes import INT64

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices", "adaptive_max_pool2d", "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d", "adaptive_max_pool3d_with_indices",
]  # fmt: skip


def _no_ints(name: str, rest: str) -> TypeError:
    return TypeError(f"{name}(): argument 'output_size' (position 2) must be tuple of ints, {rest}")


def _given_sizes(name: str, shape: Sizes, output_size: Any, rank: int, count: str) -> Sizes:
    """`output_size` as a tuple, None for what stays; RuntimeError with `count` for another number of sizes."""
    if isinstance(output_size, int):
        return (output_size,) * rank
    if rank == 1:
        if not isinstance(output_size, (list, tuple)):
            raise _no_ints(name, f"not {type(output_size).__name__}")
        sizes = tuple(output_size)
        count = f"{name}() argument 'output_size' should contain one int (got {len(sizes)})"
    else:
        if len(shape) <= len(output_size):
            raise ValueError(f"Input dimension should be at least {len(output_size) + 1}")
        last = shape[len(shape) - len(output_size) :]
        sizes = tuple(n if size is None else size for n, size in zip(last, output_size, strict=True))
    for at, size in enumerate(sizes):
        if not hasattr(size, "__index__"):
            raise _no_ints(name, f"but found element of type {type(size).__name__} at pos {at}")
    if len(sizes) != rank:
        raise RuntimeError(count)
    return sizes


def _check_shape(name: str, shape: Sizes, rank: int, colon: str, from_dim: int) -> None:
    if rank == 1:
        check_ndim(shape, rank, name)
    elif len(shape) not in (rank + 1, rank + 2):
        raise RuntimeError(f"{name}(): Expected {rank + 1}D or {rank + 2}D tensor, but got{colon} {list(shape)}")
    for axis in range(from_dim, len(shape)):
        if not shape[axis]:
            if rank == 1 and not colon:  # a signal is an image with one row
                name, shape, axis = "adaptive_avg_pool2d", (*shape[:-1], 1, shape[-1]), axis + 1
            raise RuntimeError(
                f"{name}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes "
                f"{list(shape)} with dimension {axis} being empty"
            )


def _edges(n: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """First and one past the last of each of `count` windows that cover `n`."""
    i = np.arange(count)
    return i * n // max(count, 1), -(-(i + 1) * n // max(count, 1))


def _adaptive_avg(rank: int) -> Any:
    name = f"adaptive_avg_pool{rank}d"
    node = "SqueezeBackward1" if rank == 1 else f"AdaptiveAvgPool{rank}DBackward0"

    @called(name, "The means of windows that cover (N, C, *) or (C, *) in `output_size` steps.")
    def function(input: Tensor, output_size: Any) -> Tensor:
        shape = tuple(shape_of(input, name))
        targets = _given_sizes(name, shape, output_size, rank, f"{name}: output_size must be {rank}")
        if min(targets) < 0:
            sizes = (1, *targets) if rank == 1 else targets
            shown = ", ".join(map(str, sizes[:2])) + "".join(f",{n}" for n in sizes[2:])
            raise RuntimeError(
                f"adaptive_avg_pool{len(sizes)}d: elements of output_size must be greater than or equal to 0 but "
                f"received {{{shown}}}"
            )
        since = next(sequence)
        if rank == 1:
            check_ndim(shape, rank, name)
        if targets == (1,) * rank:  # PyTorch takes the mean
            result = mean(input, tuple(range(-rank, 0)), keepdim=True)
            return named(result, "MeanBackward1") if rank > 1 else enclosed(result, node, since)
        _check_shape(name, shape, rank, "", len(shape) - rank)
        check_real(input, "adaptive_avg_pool3d_cpu" if rank == 3 else "adaptive_avg_pool2d")
        return enclosed(_means(input, targets), node, since)

    return function


@rounds_once
def _means(input: Tensor, targets: Sizes) -> Tensor:
    shape, rank = input._d.shape, len(targets)
    sizes = shape[-rank:]
    if all(m and n % m == 0 for n, m in zip(sizes, targets, strict=True)):
        kernel = tuple(n // m for n, m in zip(sizes, targets, strict=True))
        pool = getattr(E, f"avg_pool{rank}d")
        result = pool(batched(input, rank), kernel=kernel, stride=kernel, padding=((0, 0),) * rank)
        return unbatched(result, input, rank)
    for axis, count in enumerate(targets, len(shape) - rank):
        input = _averaged(input, axis, count)
    return input


def _averaged(x: Tensor, axis: int, count: int) -> Tensor:
    """Means of `count` windows along `axis`: a product with a matrix of weights."""
    n, ndim = x._d.shape[axis], len(x._d.shape)
    first, last = _edges(n, count)
    place = np.arange(n)[:, None]
    weights = ((place >= first) & (place < last)) / (last - first)
    order = (*range(axis), *range(axis + 1, ndim), axis)
    turned = E.permute(x, dims=order)
    result = E.matmul(turned, Tensor._wrap(weights.astype(x._dtype())))
    return E.permute(result, dims=tuple(int(i) for i in np.argsort(order)))


adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = map(_adaptive_avg, (1, 2, 3))


def _adaptive_max(rank: int) -> Any:
    name = f"adaptive_max_pool{rank}d"
    node = "SqueezeBackward1" if rank == 1 else f"AdaptiveMaxPool{rank}DBackward0"

    @called(name, "The maxima of `output_size` windows that cover (N, C, *) or (C, *); also their places if asked for.")
    def function(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
        shape = tuple(shape_of(input, name))
        if rank == 1:
            check_ndim(shape, rank, name)
        internal = f"{name}(): internal error: output_size.size() must be {rank}"
        targets = _given_sizes(name, shape, output_size, rank, internal)
        _check_shape(name, shape, rank, ":", len(shape) - rank - 1)
        if min(targets) < 0:
            made = [*shape[:-rank], *((1,) if rank == 1 else ()), *targets]
            raise RuntimeError(f"Trying to create tensor with negative dimension {min(targets)}: {made}")
        check_real(input, "adaptive_max_pool3d_cpu" if rank == 3 else "adaptive_max_pool2d")
        since, lead, sizes = next(sequence), shape[:-rank], shape[-rank:]
        places = _flat_windows(sizes, targets)  # (windows, taps) in the flattened image
        flat = E.reshape(input, shape=(*lead, math.prod(sizes)))
        table = Tensor._wrap(places)
        taps = E.index(flat, table, spec=(None,) * len(lead) + (0,))
        winner = winners(E.stop_gradient(taps), len(lead) + 1)
        values = E.reshape(gather(taps, len(lead) + 1, winner), shape=(*lead, *targets))
        values = enclosed(values, node, since)
        if not return_indices:
            return values
        spread = E.broadcast_to(table, shape=(*lead, *places.shape))
        at = E.reshape(E.gather(spread, winner, axis=len(lead) + 1), shape=(*lead, *targets))
        return values, at

    return function


def winners(taps: Tensor, axis: int) -> Tensor:
    """Where each window has its maximum: the first of equals, but the last nan."""
    if not all(taps._d.shape):
        return E.full(shape=tuple(1 if i == axis else n for i, n in enumerate(taps._d.shape)), value=0, dtype=INT64)
    winner = E.argmax(taps, axis=axis, keepdims=True)
    nan = E.ne(taps, taps)
    if on_arrays(nan) and not nan._array().any():
        return winner
    number = Tensor._wrap(np.arange(1, taps._d.shape[axis] + 1))
    last = E.argmax(E.where(nan, number, 0), axis=axis, keepdims=True)
    return E.where(E.any(nan, axis=(axis,), keepdims=True), last, winner)


def _flat_windows(sizes: Sizes, targets: Sizes) -> np.ndarray:
    """For each window its places in the flattened image; shorter windows repeat their last one."""
    rank, flat = len(sizes), np.zeros((1,) * (2 * len(sizes)), np.int64)
    for axis, (n, count) in enumerate(zip(sizes, targets, strict=True)):
        first, last = _edges(n, count)
        longest = int((last - first).max(initial=0))
        places = np.minimum(first[:, None] + np.arange(longest), last[:, None] - 1)
        shape = [1] * (2 * rank)
        shape[axis], shape[rank + axis] = places.shape
        flat = flat * n + places.reshape(shape)
    return flat.reshape(math.prod(flat.shape[:rank]), math.prod(flat.shape[rank:]))


adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = map(_adaptive_max, (1, 2, 3))
adaptive_max_pool1d_with_indices, adaptive_max_pool2d_with_indices, adaptive_max_pool3d_with_indices = map(
    with_indices, (adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d)
)
