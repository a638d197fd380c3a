"""Max pooling over windows at random steps (Graham 2014, arXiv:1412.6071). As in `torch.nn.functional`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from eager.core.state import sequence
from eager.core.tensor import Tensor
from eager.engine.conversion import converted
from eager.engine.language import E
from eager.engine.node_names import enclosed
from eager.functional.arguments import axis_of, check_real, shape_of
from eager.functional.gathering import gather
from eager.functional.naming import called
from eager.nn.functions.adaptive_pooling import winners
from eager.nn.functions.windows import Sizes
from eager.rng import functions
from graphc.ops.dtypes import INT64

__all__ = [
    "fractional_max_pool2d", "fractional_max_pool2d_with_indices", "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices",
]  # fmt: skip

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
