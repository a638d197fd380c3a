"""Pooling into a given number of windows, at even or random steps. As in `torch.nn.functional`."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from eager.core.interpreter import on_arrays
from eager.core.state import sequence
from eager.core.tensor import Tensor
from eager.engine.conversion import converted
from eager.engine.language import E
from eager.engine.node_names import enclosed, named
from eager.functional.arguments import axis_of, check_real, shape_of
from eager.functional.gathering import gather
from eager.functional.naming import called
from eager.functional.precision import rounds_once
from eager.functional.reductions import mean
from eager.nn.functions.pooling import batched, unbatched, with_indices
from eager.nn.functions.windows import Sizes, check_ndim
from eager.rng import functions
from graphc.ops.dtypes import INT64
from graphc.ops.resampling import Table, table_of

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices", "adaptive_max_pool2d", "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d", "adaptive_max_pool3d_with_indices", "fractional_max_pool2d",
    "fractional_max_pool2d_with_indices", "fractional_max_pool3d", "fractional_max_pool3d_with_indices",
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
        places, weights = _windows(shape[axis], count)
        input = E.resample(input, axis=axis, places=places, weights=weights)
    return input


@functools.lru_cache(64)
def _windows(n: int, count: int) -> Table:
    """The places of each of `count` windows that cover `n`, and their weights in its mean."""
    first, last = _edges(n, count)
    place = np.arange(n)[:, None]
    return table_of(((place >= first) & (place < last)) / (last - first))


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


SIDES = ("time", "height", "width")


def _fractional(rank: int) -> tuple[Any, Any]:
    name = f"fractional_max_pool{rank}d"

    @called(f"{name}_with_indices", f"`{name}` with `return_indices`.")
    def with_indices(input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
                     return_indices: bool = False,
                     _random_samples: Tensor | None = None) -> tuple[Tensor, Tensor]:  # fmt: skip
        shape = tuple(shape_of(input, name))
        if output_size is None:
            output_size = _scaled(name, rank, shape, output_ratio)
        kernel, targets = _ints(name, rank, "kernel_size", kernel_size), _ints(name, rank, "output_size", output_size)
        samples = _random_samples
        if samples is None:
            axis_of(-rank - 1, len(shape))
            batch = 1 if len(shape) == rank + 1 else shape[0]
            samples = functions.rand(batch, shape[-rank - 1], rank, dtype=input.dtype)
        _check(name, rank, input, kernel, targets, samples)
        since = next(sequence)
        values, places = _pooled(input, kernel, targets, samples)
        return enclosed(values, f"FractionalMaxPool{rank}DBackward0", since), places

    @called(name, f"The maxima of `output_size` windows at random steps of (N, C, *) or (C, *), * {rank} sizes.")
    def function(input: Tensor, kernel_size: Any, output_size: Any = None, output_ratio: Any = None,
                 return_indices: bool = False, _random_samples: Tensor | None = None) -> Any:  # fmt: skip
        found = with_indices(input, kernel_size, output_size, output_ratio, return_indices, _random_samples)
        return found if return_indices else found[0]

    return function, with_indices


def _scaled(name: str, rank: int, shape: Sizes, output_ratio: Any) -> list[int]:
    if output_ratio is None:
        raise ValueError(f"{name} requires specifying either an output_size or an output_ratio")
    if rank == 2 and len(output_ratio) > 2:
        raise ValueError(f"{name} requires output_ratio to either be a single Int or tuple of Ints.")
    ratios = tuple(output_ratio) if hasattr(output_ratio, "__iter__") else (output_ratio,) * rank
    return [int(n * ratio) for n, ratio in zip(shape[len(shape) - rank :], ratios, strict=False)]


def _ints(name: str, rank: int, what: str, value: Any) -> Sizes:
    values = (value,) * rank if isinstance(value, int) else tuple(value)
    values = values * rank if len(values) == 1 else values
    if len(values) != rank:
        number = "" if rank == 2 else "three "
        raise RuntimeError(f"{name}: {what} must either be a single Int or tuple of {number}Ints")
    return values


def _check(name: str, rank: int, input: Tensor, kernel: Sizes, targets: Sizes, samples: Tensor) -> None:
    """Raise PyTorch's errors for sizes, windows and samples that do not fit."""
    shape, where = tuple(input._d.shape), f"{name}()" if rank == 2 else f"{name}_out()"
    if len(shape) not in (rank + 1, rank + 2):
        raise RuntimeError(f"{where}: Expected {rank + 1}D or {rank + 2}D tensor, but got: {list(shape)}")
    for axis in range(len(shape) - rank - 1, len(shape)):
        if not shape[axis]:
            raise RuntimeError(
                f"{where}: Expected input to have non-zero size for non-batch dimensions, but got{list(shape)} with "
                f"dimension {axis} being empty."
            )
    for side, n, k, m in zip(SIDES[-rank:], shape[-rank:], kernel, targets, strict=True):
        if m + k - 1 > n:
            raise RuntimeError(f"{where}: pool {side} {k} too large relative to input {side} {n}")
    if input._dtype() != samples._dtype():
        raise RuntimeError("Expect _random_samples to have the same dtype as input")
    given = tuple(samples._d.shape)
    if len(given) != 3:
        raise RuntimeError(f"Expect _random_samples to have 3 dimensions, got {len(given)}")
    if given[0] < (1 if len(shape) == rank + 1 else shape[0]):
        raise RuntimeError("Expect _random_samples.size(0) no less then input batch size.")
    if given[1] != shape[-rank - 1]:
        raise RuntimeError("Expect _random_samples.size(1) equals to input channel size.")
    if given[2] != rank:
        raise RuntimeError(f"Expect _random_samples.size(2) equals to {rank}; got {given[2]}.")
    check_real(input, f"{name}_out_frame")


def _pooled(input: Tensor, kernel: Sizes, targets: Sizes, samples: Tensor) -> tuple[Tensor, Tensor]:
    rank, shape = len(kernel), tuple(input._d.shape)
    lead, sizes = shape[:-rank], shape[-rank:]
    rows = math.prod(lead)
    samples = E.slice(samples, start=(0, 0, 0), stop=(*(1,) * (2 - len(lead)), *lead, rank), step=(1, 1, 1))
    samples = E.reshape(E.stop_gradient(samples), shape=(rows, rank))
    places: Any = None  # (rows, windows, taps) in the flattened image
    for axis, (n, k, m) in enumerate(zip(sizes, kernel, targets, strict=True)):
        number = axis if rank == 3 else rank - 1 - axis  # of two numbers the first is for the width
        sample = E.slice(samples, start=(0, number), stop=(rows, number + 1), step=(1, 1))
        first = E.reshape(_starts(sample, n, k, m), shape=(rows, *_beside(m, axis, rank), *(1,) * rank))
        taps = Tensor._wrap(np.arange(k).reshape(1, *(1,) * rank, *_beside(k, axis, rank)))
        at = E.add(first, taps)
        places = at if places is None else E.add(E.mul(places, n), at)
    places = E.reshape(places, shape=(rows, math.prod(targets) * math.prod(kernel)))
    flat = E.reshape(input, shape=(rows, math.prod(sizes)))
    windows = (rows, math.prod(targets), math.prod(kernel))
    taps = E.reshape(gather(flat, 1, places), shape=windows)
    winner = winners(E.stop_gradient(taps), 2)
    values = E.reshape(gather(taps, 2, winner), shape=(*lead, *targets))
    return values, E.reshape(gather(E.reshape(places, shape=windows), 2, winner), shape=(*lead, *targets))


def _starts(sample: Tensor, n: int, k: int, m: int) -> Tensor:
    """(rows, m): where `m` windows of `k` places of `n` begin, by a number of [0, 1) a row; the last one at the end."""
    rows = sample._d.shape[0]
    last = E.full(shape=(rows, 1), value=n - k, dtype=INT64)
    if m == 1:
        return last
    alpha = E.div(E.full(shape=(), value=n - k, dtype=sample._dtype()), m - 1)
    steps = Tensor._wrap(np.arange(m - 1))
    reached = converted(E.mul(E.add(sample, steps), alpha), INT64)
    return E.cat(E.sub(reached, converted(E.mul(sample, alpha), INT64)), last, axis=1)


def _beside(n: int, axis: int, rank: int) -> Sizes:
    return tuple(n if i == axis else 1 for i in range(rank))


fractional_max_pool2d, fractional_max_pool2d_with_indices = _fractional(2)
fractional_max_pool3d, fractional_max_pool3d_with_indices = _fractional(3)
