"""Pooling. As in `torch.nn.functional`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from eager.functional.arguments import shape_of
from eager.functional.arithmetic import power
from eager.functional.gathering import gather
from eager.language import E
from eager.naming import enclosed, named
from eager.state import sequence
from eager.tensor import Tensor

Sizes = tuple[int, ...]

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d", "adaptive_max_pool2d",
    "adaptive_max_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d", "lp_pool1d", "lp_pool2d", "lp_pool3d",
    "max_pool1d", "max_pool2d", "max_pool3d",
]  # fmt: skip

NUMBER_WORDS = {1: "one int", 2: "two ints", 3: "three ints"}


def window_tuple(value: Any, rank: int, name: str, what: str) -> Sizes:
    """2 -> (2, 2); a sequence of one or `rank` ints as that many. RuntimeError for any other length."""
    if isinstance(value, int):
        return (value,) * rank
    values = tuple(int(v) for v in value)
    if len(values) == 1:
        return values * rank
    if len(values) != rank:
        raise RuntimeError(f"{name}: {what} must either be a single int, or a tuple of {NUMBER_WORDS[rank]}")
    return values


def _check_ndim(shape: Sizes, rank: int, name: str) -> None:
    if len(shape) in (rank + 1, rank + 2):
        return
    if name == "max_pool1d":
        raise RuntimeError(
            "max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, but got:"
            f"{list(shape)}"
        )
    if rank == 1:
        raise RuntimeError(
            f"Expected 2 to 3 dimensions, but got {len(shape)}-dimensional tensor for argument #1 'self' (while "
            f"checking arguments for {name})"
        )
    if name == "avg_pool2d" and len(shape) < 3:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-len(shape)}, {len(shape) - 1}], but got -3)"
        )
    raise RuntimeError(f"non-empty {rank + 1}D or {rank + 2}D (batch mode) tensor expected for input")


def _check_windows(name: str, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes) -> None:
    if min(stride) == 0:
        raise RuntimeError("stride should not be zero" if name != "max_pool1d" else
                           "max_pool1d() stride must be greater than zero, but got 0")  # fmt: skip
    if min(kernel) <= 0:
        raise RuntimeError(
            "kernel size should be greater than zero, but got "
            + " ".join(f"k{letter}: {k}" for letter, k in zip("TWH" if len(kernel) == 3 else "HW", kernel, strict=True))
        )
    if min(dilation) < 1:
        shown = " ".join(f"dilation{letter}: {d}" for letter, d in zip("DHW"[-len(kernel) :], dilation, strict=True))
        raise RuntimeError(f"dilation should be greater than zero, but got {shown}")
    for p, k, d in zip(padding, kernel, dilation, strict=True):
        if p < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {p}")
        if 2 * p > d * (k - 1) + 1:
            if name == "max_pool1d":
                raise RuntimeError(
                    f"max_pool1d() padding should be at most half of kernel size, but got padding={p} and "
                    f"kernel_size={k}"
                )
            raise RuntimeError(
                f"pad should be at most half of effective kernel size, but got pad={p}, kernel_size={k} and "
                f"dilation={d}"
            )


def _borders(size: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, ceil: bool) -> Any:
    """(before, after) of each dim; with `ceil` the last window, begun inside, may reach past the end."""
    borders = []
    for n, k, s, p, d in zip(size, kernel, stride, padding, dilation, strict=True):
        reach, more = d * (k - 1) + 1, 0
        if ceil:
            count = -(-(n + 2 * p - reach) // s) + 1
            if (count - 1) * s >= n + p:
                count -= 1
            more = max((count - 1) * s + reach - (n + 2 * p), 0)
        borders.append((p, p + more))
    return tuple(borders)


def _batched(input: Tensor, rank: int) -> Tensor:
    shape = tuple(input._d.shape)
    return input if len(shape) == rank + 2 else E.reshape(input, shape=(1, *shape))


def _unbatched(result: Tensor, like: Tensor, rank: int) -> Tensor:
    return result if len(like._d.shape) == rank + 2 else E.reshape(result, shape=tuple(result._d.shape[1:]))


def _max_pool(rank: int) -> Any:
    name = f"max_pool{rank}d"
    node = "SqueezeBackward1" if rank == 1 else f"MaxPool{rank}DWithIndicesBackward0"

    def function(
        input: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        ceil_mode: bool = False,
        return_indices: bool = False,
    ) -> Any:
        shape = tuple(shape_of(input, name))
        kernel = window_tuple(kernel_size, rank, name, "kernel_size")
        steps = kernel if stride is None or stride == [] else window_tuple(stride, rank, name, "stride")
        border, gaps = window_tuple(padding, rank, name, "padding"), window_tuple(dilation, rank, name, "dilation")
        _check_windows(name, kernel, steps, border, gaps)
        _check_ndim(shape, rank, name)
        if rank == 1 and (size := (shape[-1] + 2 * border[0] - gaps[0] * (kernel[0] - 1) - 1) // steps[0] + 1) <= 0:
            raise RuntimeError(f"max_pool1d() Invalid computed output size: {size}")
        windows = {
            "kernel": kernel, "stride": steps, "dilation": gaps,
            "padding": _borders(shape[-rank:], kernel, steps, border, gaps, ceil_mode),
        }  # fmt: skip
        since = next(sequence)
        x = _batched(input, rank)
        values = enclosed(_unbatched(getattr(E, name)(x, **windows), input, rank), node, since)
        if not return_indices:
            return values
        return values, _unbatched(getattr(E, f"{name}_index")(x, **windows), input, rank)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"The largest element of each window of (N, C, *) or (C, *), * {rank} sizes; with `return_indices` also their "
        f"places in the flattened image. As `torch.nn.functional.{name}`."
    )
    return function


max_pool1d, max_pool2d, max_pool3d = map(_max_pool, (1, 2, 3))


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


def _avg_pool(rank: int) -> Any:
    name = f"avg_pool{rank}d"
    node = "SqueezeBackward1" if rank == 1 else f"AvgPool{rank}DBackward0"

    def function(
        input: Tensor,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> Tensor:
        shape = tuple(shape_of(input, name))
        kernel = window_tuple(kernel_size, rank, name, "kernel_size")
        steps = kernel if stride is None or stride == [] else window_tuple(stride, rank, name, "stride")
        border = window_tuple(padding, rank, name, "padding")
        if divisor_override == 0:
            raise RuntimeError("divisor must be not zero")
        _check_ndim(shape, rank, name)
        _check_windows(name, kernel, steps, border, (1,) * rank)
        borders = _borders(shape[-rank:], kernel, steps, border, (1,) * rank, ceil_mode)
        since, whole_size = next(sequence), math.prod(kernel)
        x = _batched(input, rank)
        if x._dtype().kind != "f":
            x = E.cast(x, dtype=np.dtype(np.float64))
        result = getattr(E, name)(x, kernel=kernel, stride=steps, padding=borders)
        if divisor_override is not None:
            result = E.mul(result, whole_size / divisor_override)
        elif ceil_mode or (not count_include_pad and any(border)):
            counts = _counts(shape[-rank:], kernel, steps, borders, border, count_include_pad)
            if (counts != whole_size).any():
                result = E.mul(result, Tensor._wrap((whole_size / counts).astype(x._dtype())))
        if x._dtype() != input._dtype():
            result = E.cast(E.trunc(result), dtype=input._dtype())
        return enclosed(_unbatched(result, input, rank), node, since)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"The mean of each window of (N, C, *) or (C, *), * {rank} sizes; padding counts as zeros. As "
        f"`torch.nn.functional.{name}`."
    )
    return function


avg_pool1d, avg_pool2d, avg_pool3d = map(_avg_pool, (1, 2, 3))


def _lp_pool(rank: int) -> Any:
    name = f"lp_pool{rank}d"

    def function(
        input: Tensor, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False
    ) -> Tensor:
        pool = (avg_pool1d, avg_pool2d, avg_pool3d)[rank - 1]
        mean = pool(power(input, float(norm_type)), kernel_size, stride, 0, ceil_mode)
        size = math.prod(window_tuple(kernel_size, rank, name, "kernel_size"))
        total = E.mul(E.mul(E.sign(mean), E.relu(E.abs(mean))), float(size))
        return power(total, 1.0 / norm_type)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"The `norm_type`-norm of each window. As `torch.nn.functional.{name}`."
    return function


lp_pool1d, lp_pool2d, lp_pool3d = map(_lp_pool, (1, 2, 3))

# --- windows that cover the input evenly, whatever their number


def _targets(name: str, shape: Sizes, output_size: Any, rank: int) -> Sizes:
    if len(shape) not in (rank + 1, rank + 2):
        if rank == 1 and name.startswith("adaptive_avg"):
            _check_ndim(shape, rank, name)
        colon = ":" if "max" in name else ""
        raise RuntimeError(f"{name}(): Expected {rank + 1}D or {rank + 2}D tensor, but got{colon} {list(shape)}")
    sizes = (output_size,) * rank if isinstance(output_size, int) or output_size is None else tuple(output_size)
    if len(sizes) == 1:
        sizes = sizes * rank
    if len(sizes) > len(shape) - 1 or len(sizes) > rank:
        raise ValueError(f"Input dimension should be at least {len(sizes) + 1}")
    return tuple(n if size is None else int(size) for n, size in zip(shape[-rank:], sizes, strict=True))


def _edges(n: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """First and one past the last of each of `count` windows that cover `n`."""
    i = np.arange(count)
    return i * n // count, -(-(i + 1) * n // count)


def _adaptive_avg(rank: int) -> Any:
    name = f"adaptive_avg_pool{rank}d"
    node = "SqueezeBackward1" if rank == 1 else f"AdaptiveAvgPool{rank}DBackward0"

    def function(input: Tensor, output_size: Any) -> Tensor:
        shape = tuple(shape_of(input, name))
        targets = _targets(name, shape, output_size, rank)
        since = next(sequence)
        sizes = shape[-rank:]
        if targets == (1,) * rank and rank > 1:  # PyTorch takes the mean
            mean = E.mean(input, axis=tuple(range(len(shape) - rank, len(shape))), keepdims=True)
            return named(mean, "MeanBackward1")
        if all(m and n % m == 0 for n, m in zip(sizes, targets, strict=True)):
            kernel = tuple(n // m for n, m in zip(sizes, targets, strict=True))
            pool = getattr(E, f"avg_pool{rank}d")
            result = pool(_batched(input, rank), kernel=kernel, stride=kernel, padding=((0, 0),) * rank)
            return enclosed(_unbatched(result, input, rank), node, since)
        result = input
        for axis in range(len(shape) - rank, len(shape)):
            result = _averaged(result, axis, targets[axis - len(shape) + rank])
        return enclosed(result, node, since)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"The means of windows that cover (N, C, *) or (C, *) in `output_size` steps. As `torch.nn.functional.{name}`."
    )
    return function


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

    def function(input: Tensor, output_size: Any, return_indices: bool = False) -> Any:
        shape = tuple(shape_of(input, name))
        targets = _targets(name, shape, output_size, rank)
        since, lead, sizes = next(sequence), shape[:-rank], shape[-rank:]
        places = _flat_windows(sizes, targets)  # (windows, taps) in the flattened image
        flat = E.reshape(input, shape=(*lead, math.prod(sizes)))
        table = Tensor._wrap(places)
        taps = E.index(flat, table, spec=(None,) * len(lead) + (0,))
        winner = E.argmax(E.stop_gradient(taps), axis=len(lead) + 1, keepdims=True)
        values = E.reshape(gather(taps, len(lead) + 1, winner), shape=(*lead, *targets))
        values = enclosed(values, node, since)
        if not return_indices:
            return values
        spread = E.broadcast_to(table, shape=(*lead, *places.shape))
        at = E.reshape(E.gather(spread, winner, axis=len(lead) + 1), shape=(*lead, *targets))
        return values, at

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        "The maxima of windows that cover (N, C, *) or (C, *) in `output_size` steps; with `return_indices` also their "
        f"places in the flattened image. As `torch.nn.functional.{name}`."
    )
    return function


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
    return flat.reshape(math.prod(flat.shape[:rank]), -1)


adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = map(_adaptive_max, (1, 2, 3))
