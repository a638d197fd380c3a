"""Images sampled at the points of a grid. As in `torch.nn.functional`."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from eager.core.tensor import Tensor
from eager.core.warned import warn
from eager.engine.language import E
from eager.engine.node_names import whole
from eager.functional.arguments import constant, not_implemented, shape_of
from eager.functional.joining import select
from graphc.ops.dtypes import is_floating
from graphc.ops.rules import torch_name

__all__ = ["affine_grid", "grid_sample"]

CORNERS = (
    "Default grid_sample and affine_grid behavior has changed to align_corners=False since 1.3.0. Please specify "
    "align_corners=True if the old behavior is desired. See the documentation of grid_sample for details."
)
CUBIC = -0.75
STEPS = (-1, 0, 1, 2)


def affine_grid(theta: Tensor, size: Any, align_corners: bool | None = None) -> Tensor:
    """The grid (N, *, d) of points that matrices theta (N, d, d + 1) map the points of an image to. As in PyTorch."""
    if align_corners is None:
        warn(CORNERS)
        align_corners = False
    if not is_floating(theta._dtype()):
        raise ValueError(f"Expected theta to have floating point type, but got {theta.dtype}")
    shape = tuple(int(n) for n in size)
    if len(shape) not in (4, 5):
        raise NotImplementedError(
            "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size "
            f"{size}."
        )
    d = len(shape) - 2
    if len(theta._d.shape) != 3 or theta._d.shape[-2:] != (d, d + 1):
        raise ValueError(
            f"Expected a batch of {d}D affine matrices of shape Nx{d}x{d + 1} for size {size}. Got {theta.shape}."
        )
    if min(shape) <= 0:
        raise ValueError(f"Expected non-zero, positive output size. Got {size}")
    return _affine_grid(theta, shape, align_corners)


@whole("AffineGridGeneratorBackward0")
def _affine_grid(theta: Tensor, shape: tuple[int, ...], align_corners: bool) -> Tensor:
    n, _, *spatial = shape
    d = len(spatial)
    lines = []
    for m in spatial:
        line = np.linspace(-1, 1, m) if m > 1 else np.zeros(m)
        lines.append(line if align_corners else line * (m - 1) / m)
    mesh = np.meshgrid(*lines, indexing="ij")
    points = np.stack([*reversed(mesh), np.ones(spatial)], axis=-1).reshape(-1, d + 1).astype(theta._dtype())
    if theta._d.shape[0] != n:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: {[n, d + 1]} but got: "
            f"{[theta._d.shape[0], d + 1]}."
        )
    grid = E.matmul(Tensor._wrap(points), E.permute(theta, dims=(0, 2, 1)))
    return E.reshape(grid, shape=(n, *spatial, d))


def grid_sample(input: Tensor, grid: Tensor, mode: str = "bilinear", padding_mode: str = "zeros",
                align_corners: bool | None = None) -> Tensor:  # fmt: skip
    """Images (N, C, *) at the points of grid (N, *, d), in [-1, 1], last dim first. As in PyTorch."""
    if mode not in ("bilinear", "nearest", "bicubic"):
        raise ValueError(
            f"nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: '{mode}'"
        )
    if padding_mode not in ("zeros", "border", "reflection"):
        raise ValueError(
            "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got: "
            f"'{padding_mode}'"
        )
    if align_corners is None:
        warn(CORNERS)
        align_corners = False
    shape, points = tuple(shape_of(input, "grid_sampler")), tuple(shape_of(grid, "grid_sampler", "grid", 2))
    d = len(shape) - 2
    if shape[0] != points[0]:
        raise RuntimeError(
            "grid_sampler(): expected grid and input to have same batch size, but got input with sizes "
            f"{list(shape)} and grid with sizes {list(points)}"
        )
    if points[-1] != d:
        raise RuntimeError(
            f"grid_sampler(): expected grid to have size {d} in last dimension, but got grid with sizes {list(points)}"
        )
    if d not in (2, 3) or len(points) != len(shape):
        wanted = f"{d + 2}D" if d in (2, 3) else "4D or 5D"
        raise RuntimeError(
            f"grid_sampler(): expected {wanted} input and grid with same number of dimensions, but got input with "
            f"sizes {list(shape)} and grid with sizes {list(points)}"
        )
    if mode == "bicubic" and d == 3:
        raise RuntimeError("grid_sampler(): bicubic interpolation only supports 4D input")
    for axis in range(2, d + 2):
        if not shape[axis]:
            raise RuntimeError(
                "grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes "
                f"{list(shape)} with dimension {axis} being empty"
            )
    if input._dtype() != grid._dtype():
        names = torch_name(input._dtype()), torch_name(grid._dtype())
        raise RuntimeError("expected scalar type {} but found {}".format(*names))
    if not is_floating(input._dtype()):
        kernel = f"grid_sampler_{d}d_cpu{'_kernel_impl' if d == 2 else ''}"
        raise not_implemented(kernel, input)
    sample = whole(f"GridSampler{d}DBackward0")(_sample)
    return sample(input, grid, mode, padding_mode, align_corners)


def _sample(input: Tensor, grid: Tensor, mode: str, padding_mode: str, align_corners: bool) -> Tensor:
    shape = tuple(input._d.shape)
    d = len(shape) - 2
    last = E.permute(input, dims=(0, *range(2, d + 2), 1))
    # a table: a row of channels for each pixel, and one of zeros for what is outside
    last = E.reshape(last, shape=(shape[0] * math.prod(shape[2:]), shape[1]))
    last = E.cat(last, E.full(shape=(1, shape[1]), value=0, dtype=input._dtype()), axis=0)
    places = []
    for axis, n in enumerate(shape[2:]):
        x = select(grid, -1, d - 1 - axis)  # the last coordinate of a point is that of the first dimension
        x = E.mul(E.add(x, 1), (n - 1) / 2) if align_corners else E.div(E.sub(E.mul(E.add(x, 1), n), 1), 2)
        places.append(x if mode == "bicubic" else _bounded(x, n, padding_mode, align_corners))
    if mode == "nearest":
        total = _taken(last, [E.round(p) for p in places], shape, padding_mode, align_corners)
        for p in places:  # the gradient of the points is zero, not missing
            never = Tensor._wrap(np.zeros(p._d.shape, bool))
            still = E.where(never, p, constant(0, p))
            total = E.add(total, E.reshape(still, shape=(*still._d.shape, 1)))
    else:
        total = _mixed(last, places, shape, mode, padding_mode, align_corners)
    return E.permute(total, dims=(0, d + 1, *range(1, d + 1)))


def _mixed(last: Tensor, places: list[Tensor], shape: tuple[int, ...], mode: str, padding_mode: str,
           align_corners: bool) -> Tensor:  # fmt: skip
    """The sum over the pixels around each point, weighted by how near they are."""
    lows = [E.stop_gradient(E.floor(p)) for p in places]
    rests = [E.sub(place, low) for place, low in zip(places, lows, strict=True)]

    def pixels(offsets: tuple[int, ...]) -> Tensor:
        at = [E.add(low, float(k)) for low, k in zip(lows, offsets, strict=True)]
        # a point on the border has no weight beside it; in place of 0 * inf, there is nothing
        return _taken(last, at, shape, padding_mode if mode == "bicubic" else "zeros", align_corners)

    if mode == "bicubic":
        down, across = ([_beside_channels(_cubic(t, k)) for k in STEPS] for t in rests)
        rows = [_sum(E.mul(pixels((i, j)), w) for j, w in zip(STEPS, across, strict=True)) for i in STEPS]
        return _sum(E.mul(row, w) for row, w in zip(rows, down, strict=True))
    terms = []
    for offsets in itertools.product((0, 1), repeat=len(places)):
        weight = _product(t if k else E.sub(1, t) for t, k in zip(rests, offsets, strict=True))
        terms.append(E.mul(pixels(offsets), _beside_channels(weight)))
    return _sum(terms)


def _sum(terms: Iterable[Tensor]) -> Tensor:
    return functools.reduce(E.add, terms)


def _product(factors: Iterable[Tensor]) -> Tensor:
    return functools.reduce(E.mul, factors)


def _beside_channels(weight: Tensor) -> Tensor:
    return E.reshape(weight, shape=(*weight._d.shape, 1))


def _cubic(t: Tensor, k: int) -> Tensor:
    """Keys' kernel at distance |t - k|, in the steps that PyTorch rounds 16-bit floats after."""
    x = E.sub(t, float(k)) if k <= 0 else E.sub(float(k), t)
    if k in (0, 1):
        return E.add(E.mul(E.mul(E.sub(E.mul(x, CUBIC + 2), CUBIC + 3), x), x), 1)
    return E.sub(E.mul(E.add(E.mul(E.sub(E.mul(x, CUBIC), 5 * CUBIC), x), 8 * CUBIC), x), 4 * CUBIC)


def _bounded(x: Tensor, n: int, padding_mode: str, align_corners: bool) -> Tensor:
    """Points outside moved to the border, or reflected; gradients vanish where they were moved."""
    if padding_mode == "zeros":
        return x
    if padding_mode == "reflection":
        low, high = (0, 2 * (n - 1)) if align_corners else (-1, 2 * n - 1)
        x = _reflected(x, low / 2, high / 2)
    upper = E.where(E.ge(x, n - 1), constant(n - 1, x), x)
    return E.where(E.gt(upper, 0), upper, constant(0, upper))  # nan is 0


def _reflected(x: Tensor, low: float, high: float) -> Tensor:
    span = high - low
    if span == 0:
        return E.mul(x, 0)
    distance = E.abs(E.sub(x, low))
    flips = E.stop_gradient(E.floor(E.div(distance, span)))
    rest = E.sub(distance, E.mul(flips, span))
    even = E.eq(E.remainder(flips, 2.0), 0)
    return E.where(even, E.add(rest, low), E.sub(high, rest))


def _taken(last: Tensor, at: list[Tensor], shape: tuple[int, ...], padding_mode: str, align_corners: bool) -> Tensor:
    """The pixels (N, *, C) at whole places; zero outside."""
    inside: Any = None
    row: Any = Tensor._wrap(np.arange(shape[0]).reshape(-1, *(1,) * len(at)))
    for x, n in zip(at, shape[2:], strict=True):
        if padding_mode != "zeros":
            x = _bounded(x, n, padding_mode, align_corners)
        ok = E.bitwise_and(E.ge(x, 0), E.le(x, n - 1))
        inside = ok if inside is None else E.bitwise_and(inside, ok)
        index = E.cast(E.where(ok, E.stop_gradient(x), constant(0, x)), dtype=np.dtype(np.int64))
        row = E.add(E.mul(row, n), index)
    if padding_mode == "zeros":
        row = E.where(inside, row, constant(last._d.shape[0] - 1, row))
    return E.index(last, row, spec=(0,))
