"""Images: pixels moved between channels and space, resizing, sampling. As in `torch.nn.functional`."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from eager.core.state import sequence
from eager.core.tensor import Tensor
from eager.core.warned import warn
from eager.engine.language import E
from eager.engine.node_names import enclosed, whole
from eager.functional.arguments import shape_of
from eager.functional.arithmetic import clamp
from eager.functional.precision import rounds_once
from eager.nn.functions.adaptive_pooling import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d
from graphc.ops.dtypes import FLOAT64, is_floating, is_half
from graphc.ops.resampling import NONE, Table, rows_of
from graphc.ops.rules import torch_name

__all__ = [
    "channel_shuffle", "interpolate", "native_channel_shuffle", "pixel_shuffle", "pixel_unshuffle", "upsample",
    "upsample_bilinear", "upsample_nearest",
]  # fmt: skip


def _checked(input: Tensor, name: str, argument: str, factor: Any) -> tuple[int, ...]:
    """The shape of `input`. PyTorch's error for one of fewer than three dims, and for what is no positive factor."""
    shape = tuple(shape_of(input, name))
    if len(shape) < 3:
        raise RuntimeError(
            f"{name} expects input to have at least 3 dimensions, but got input with {len(shape)} dimension(s)"
        )
    if factor <= 0:
        raise RuntimeError(f"{name} expects a positive {argument}, but got {factor}")
    if not hasattr(factor, "__index__"):
        kind = type(factor).__name__
        raise TypeError(f"{name}(): argument '{argument}' (position 2) must be int, not {kind}")
    return shape


@whole("PixelShuffleBackward0")
def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """(*, C * r^2, H, W) -> (*, C, H * r, W * r). As `torch.nn.functional.pixel_shuffle`."""
    shape = _checked(input, "pixel_shuffle", "upscale_factor", upscale_factor)
    (*lead, c, h, w), r = shape, upscale_factor
    if c % (r * r):
        raise RuntimeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, "
            f"but input.size(-3)={c} is not divisible by {r * r}"
        )
    k = len(lead)
    split = E.reshape(input, shape=(*lead, c // (r * r), r, r, h, w))
    turned = E.permute(split, dims=(*range(k), k, k + 3, k + 1, k + 4, k + 2))
    return E.reshape(turned, shape=(*lead, c // (r * r), h * r, w * r))


@whole("PixelUnshuffleBackward0")
def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """(*, C, H * r, W * r) -> (*, C * r^2, H, W). As `torch.nn.functional.pixel_unshuffle`."""
    shape = _checked(input, "pixel_unshuffle", "downscale_factor", downscale_factor)
    (*lead, c, h, w), r = shape, downscale_factor
    for what, size, at in (("height", h, -2), ("width", w, -1)):
        if size % r:
            raise RuntimeError(
                f"pixel_unshuffle expects {what} to be divisible by downscale_factor, but input.size({at})={size} is "
                f"not divisible by {r}"
            )
    k = len(lead)
    split = E.reshape(input, shape=(*lead, c, h // r, r, w // r, r))
    turned = E.permute(split, dims=(*range(k), k, k + 2, k + 4, k + 1, k + 3))
    return E.reshape(turned, shape=(*lead, c * r * r, h // r, w // r))


@whole("ChannelShuffleBackward0")
def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """The channels of (N, C, *), dealt out from `groups` groups. As `torch.nn.functional.channel_shuffle`."""
    shape = tuple(shape_of(input, "channel_shuffle"))
    if len(shape) <= 2:
        raise RuntimeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(shape)}")
    if groups <= 0:
        raise RuntimeError(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
    n, c, *rest = shape
    if c % groups:
        raise RuntimeError(f"Number of channels must be divisible by groups. Got {c} channels and {groups} groups.")
    split = E.reshape(input, shape=(n, groups, c // groups, *rest))
    return E.reshape(E.permute(split, dims=(0, 2, 1, *range(3, len(shape) + 1))), shape=shape)


native_channel_shuffle = channel_shuffle

MODES = "nearest | linear | bilinear | bicubic | trilinear | lanczos | area | nearest-exact"
SMOOTH = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}  # mode -> spatial dimensions
NODES = {
    "nearest": "UpsampleNearest{}DBackward0", "nearest-exact": "UpsampleNearestExact{}DBackward0",
    "linear": "UpsampleLinear{}DBackward0", "bilinear": "UpsampleBilinear{}DBackward0",
    "bicubic": "UpsampleBicubic{}DBackward0", "trilinear": "UpsampleTrilinear{}DBackward0",
}  # fmt: skip


def _triangle(x: np.ndarray) -> np.ndarray:
    return np.maximum(1 - np.abs(x), 0)


def _cubic(a: float) -> Callable[[np.ndarray], np.ndarray]:
    """Keys' cubic convolution kernel."""

    def kernel(x: np.ndarray) -> np.ndarray:
        x = np.abs(x)
        near = ((a + 2) * x - (a + 3)) * x * x + 1
        far = ((x - 5) * x + 8) * x * a - 4 * a
        return np.where(x < 1, near, np.where(x < 2, far, 0))

    return kernel


def _lanczos(x: np.ndarray) -> np.ndarray:
    return np.where(np.abs(x) < 3, np.sinc(x) * np.sinc(x / 3), 0)


BYTE = np.dtype(np.uint8)

# mode -> (half width, kernel), plain and with antialiasing
KERNELS = {
    "linear": (1, _triangle),
    "bilinear": (1, _triangle),
    "trilinear": (1, _triangle),
    "bicubic": (2, _cubic(-0.75)),
}
ANTIALIASED = {"bilinear": (1, _triangle), "bicubic": (2, _cubic(-0.5)), "lanczos": (3, _lanczos)}


def _scale(n: int, m: int, factor: float | None, align_corners: bool, kind: Any) -> Any:
    """Input pixels to an output pixel, in the precision PyTorch takes."""
    if align_corners:
        return kind(n - 1) / kind(m - 1) if m > 1 else kind(0)
    return kind(1.0 / factor) if factor is not None and factor > 0 else kind(n) / kind(m)


@functools.lru_cache(64)
def _weights(mode: str, n: int, m: int, factor: float | None, align_corners: bool, dtype: np.dtype) -> Table:
    """Of each output pixel: the input pixels around it and how much of each is in it, if it is nothing."""
    kind = np.float64 if dtype.itemsize == 8 else np.float32
    reach, kernel = KERNELS[mode]
    scale, j = _scale(n, m, factor, align_corners, kind), np.arange(m).astype(kind)
    at = j * scale if align_corners else (j + kind(0.5)) * scale - kind(0.5)
    if mode != "bicubic":
        at = np.maximum(at, kind(0))
    first = np.floor(at).astype(np.int64)
    if mode != "bicubic":
        first = np.minimum(first, n - 1)
    around = first + np.arange(1 - reach, 1 + reach)[:, None]
    places = np.clip(around, 0, n - 1) if m != n or mode == "bicubic" else np.broadcast_to(first, around.shape)
    return rows_of(places, kernel(at - around).astype(kind))


@functools.lru_cache(64)
def _antialiased(mode: str, n: int, m: int, factor: float | None, align_corners: bool, dtype: np.dtype) -> Table:
    """`_weights` with the kernel as wide as an output pixel."""
    half, kernel = ANTIALIASED[mode]
    kind = np.float64 if dtype.itemsize == 8 else np.float32
    scale, before = _scale(n, m, factor, align_corners, kind), kind(0.5)
    support, squeeze = (half * scale, 1 / scale) if scale >= 1 else (kind(half), kind(1))
    center = scale * (np.arange(m).astype(kind) + before)
    first = np.maximum((center - support + before).astype(int), 0)
    places = first + np.arange(np.ceil(2 * support) + 1, dtype=int)[:, None]
    inside = places < np.minimum((center + support + before).astype(int), n)
    shares = np.where(inside, kernel((places.astype(kind) - center + before) * squeeze), 0)
    return rows_of(np.where(inside, places, NONE), (shares / shares.sum(0)).astype(dtype))


def _nearest(x: Tensor, axis: int, m: int, factor: float | None, exact: bool) -> Tensor:
    n = x._d.shape[axis]
    scale = _scale(n, m, factor, False, np.float32)
    j = np.arange(m).astype(np.float32) + np.float32(0.5 if exact else 0)
    places = np.minimum(np.floor(j * scale).astype(np.int64), n - 1)
    return E.index(x, Tensor._wrap(places), spec=(None,) * axis + (0,))


def interpolate(input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
                align_corners: bool | None = None, recompute_scale_factor: bool | None = None,
                antialias: bool = False) -> Tensor:  # fmt: skip
    """(N, C, *) resized to `size` or by `scale_factor`. As `torch.nn.functional.interpolate`."""
    shape = tuple(shape_of(input, "interpolate"))
    rank = len(shape) - 2
    if mode in ("nearest", "area", "nearest-exact"):
        if align_corners is not None:
            raise ValueError(
                "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | "
                "trilinear"
            )
    elif align_corners is None:
        align_corners = False
    sizes, factors = _sizes(shape, size, scale_factor)
    if recompute_scale_factor:
        if size is not None:
            raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
        factors = [None] * rank
    if antialias and not (mode in ANTIALIASED and rank == 2):
        raise ValueError(
            "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as input"
        )
    if not 1 <= rank <= 3 or mode not in MODES.split(" | "):
        raise NotImplementedError(
            f"Input Error: Only 3D, 4D and 5D input Tensors supported (got {len(shape)}D) for the modes: {MODES} (got "
            f"{mode})"
        )
    if mode in SMOOTH and SMOOTH[mode] != rank:
        raise NotImplementedError(f"Got {rank + 2}D input, but {mode} mode needs {SMOOTH[mode] + 2}D input")
    if mode == "area":
        return (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)[rank - 1](input, sizes)
    if min((*shape[2:], *sizes)) <= 0:

        def shown(values: Any) -> str:
            return ", ".join(f"{letter}: {n}" for letter, n in zip("DHW"[-rank:], values, strict=True))

        raise RuntimeError(
            f"Input and output sizes should be greater than 0, but got input ({shown(shape[2:])})"
            f"{' and' if rank == 1 else ''} output ({shown(sizes)})"
        )
    if not all(shape[1:]):
        raise RuntimeError(f"Non-empty {rank + 2}D data tensor expected but got a tensor with sizes {list(shape)}")
    _check_dtype(input, mode, antialias)
    since = next(sequence)
    if mode.startswith("nearest"):
        result = input
        for axis, (m, factor) in enumerate(zip(sizes, factors, strict=True), 2):
            result = _nearest(result, axis, m, factor, mode == "nearest-exact")
    else:
        result = _smooth(input, mode, sizes, factors, bool(align_corners), antialias)
    node = NODES.get(mode, "UpsampleLanczos{}DBackward0").format(rank)
    return enclosed(result, node.replace("DBackward", "DAaBackward") if antialias else node, since)


def _check_dtype(input: Tensor, mode: str, antialias: bool) -> None:
    dtype = input._dtype()
    if antialias and is_half(dtype):
        raise NotImplementedError(f"\"compute_index_ranges_weights\" not implemented for '{torch_name(dtype)}'")
    bytes_too = mode in ("nearest", "nearest-exact", "bilinear", "bicubic", "lanczos")
    if not is_floating(dtype) and not (bytes_too and dtype == BYTE):
        kind = "nearest" if mode.startswith("nearest") else "linear"
        raise NotImplementedError(f"\"compute_indices_weights_{kind}\" not implemented for '{torch_name(dtype)}'")


@rounds_once
def _smooth(x: Tensor, mode: str, sizes: tuple[int, ...], factors: Any, align_corners: bool, antialias: bool) -> Tensor:
    """`x` resized along each dim, the last one first."""
    table, bytes_ = _antialiased if antialias else _weights, x._dtype() == BYTE
    for axis in reversed(range(2, len(sizes) + 2)):
        m, factor = sizes[axis - 2], factors[axis - 2]
        if antialias and m == x._d.shape[axis]:
            continue
        places, weights = table(mode, x._d.shape[axis], m, factor, align_corners, FLOAT64 if bytes_ else x._dtype())
        x = (_resampled_bytes if bytes_ else E.resample)(x, axis=axis, places=places, weights=weights)
    return x


def _resampled_bytes(x: Tensor, *, axis: int, places: Any, weights: Any) -> Tensor:
    """In PyTorch's arithmetic: the weights are 16-bit integers over a power of two."""
    unit, shares = 1, np.array(weights)
    while unit < 1 << 22 and int(0.5 + shares.max() * 2 * unit) < 1 << 15:
        unit *= 2
    _, whole = rows_of(shares, np.trunc(shares * unit + np.copysign(0.5, shares)))
    total = E.resample(E.cast(x, dtype=FLOAT64), axis=axis, places=places, weights=whole)
    return E.cast(clamp(E.floor(E.div(E.add(total, unit // 2), unit)), 0, 255), dtype=BYTE)


def _sizes(shape: tuple[int, ...], size: Any, scale_factor: Any) -> tuple[tuple[int, ...], list[float | None]]:
    rank, spatial = len(shape) - 2, list(shape[2:])
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is not None:
        sizes = tuple(size) if isinstance(size, (list, tuple)) else (size,) * rank
        if len(sizes) != rank:
            raise ValueError(
                "Input and output must have the same number of spatial dimensions, but got input with spatial "
                f"dimensions of {spatial} and output size of {size}. Please provide input tensor in (N, C, d1, d2, "
                "...,dK) format and output size in (o1, o2, ...,oK) format."
            )
        if not all(hasattr(n, "__index__") for n in sizes):
            raise TypeError(
                "expected size to be one of int or Tuple[int] or Tuple[int, int] or Tuple[int, int, int], but got size "
                f"with types {[type(n) for n in sizes]}"
            )
        return tuple(int(n) for n in sizes), [None] * rank
    if scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    factors = list(scale_factor) if isinstance(scale_factor, (list, tuple)) else [scale_factor] * rank
    if len(factors) != rank:
        raise ValueError(
            "Input and scale_factor must have the same number of spatial dimensions, but got input with spatial "
            f"dimensions of {spatial} and scale_factor of shape {scale_factor}. Please provide input tensor in (N, C, "
            "d1, d2, ...,dK) format and scale_factor in (s1, s2, ...,sK) format."
        )
    return tuple(math.floor(float(n) * f) for n, f in zip(spatial, factors, strict=True)), [float(f) for f in factors]


def _deprecated(name: str) -> None:
    warn(f"`nn.functional.{name}` is deprecated. Use `nn.functional.interpolate` instead.")


def upsample(input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
             align_corners: bool | None = None) -> Tensor:  # fmt: skip
    """`interpolate` under its old name. As `torch.nn.functional.upsample`."""
    _deprecated("upsample")
    return interpolate(input, size, scale_factor, mode, align_corners)


def upsample_nearest(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate(mode="nearest")`. As `torch.nn.functional.upsample_nearest`."""
    _deprecated("upsample_nearest")
    return interpolate(input, size, scale_factor)


def upsample_bilinear(input: Tensor, size: Any = None, scale_factor: Any = None) -> Tensor:
    """`interpolate(mode="bilinear", align_corners=True)`. As `torch.nn.functional.upsample_bilinear`."""
    _deprecated("upsample_bilinear")
    return interpolate(input, size, scale_factor, "bilinear", True)
