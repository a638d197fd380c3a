"""Fourier transforms. As `torch.fft`: each is a composition of three ops, graphc/ops/fft.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from operator import index
from typing import Any

import numpy as np

from eager.core.devices import check_device
from eager.core.tensor import Tensor
from eager.engine.language import E
from eager.engine.node_names import named
from eager.functional.arguments import shape_of
from eager.functional.checking import checking
from eager.functional.creation import delivered, dtype_or
from eager.functional.joining import cut, roll
from eager.functional.outputs import with_out
from graphc.ops.dtypes import complex_of, default_float, is_inexact
from graphc.ops.rules import normalize_axis, torch_name

__all__ = [
    "fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "hfft2", "hfftn", "ifft", "ifft2", "ifftn", "ifftshift",
    "ihfft", "ihfft2", "ihfftn", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq", "rfftn",
]  # fmt: skip

NO_DIMS = "Dimension specified as {dim} but tensor has no dimensions"
SIZE = "Invalid number of data points ({n}) specified"
# PyTorch's name of a normalization -> the ops' name, of a forward and of an inverse transform
NORMS = {None: ("none", "full"), "backward": ("none", "full"), "ortho": ("ortho", "ortho"), "forward": ("full", "none")}


def _norm(norm: str | None, inverse: bool) -> str:
    if norm not in NORMS:
        raise RuntimeError(f'Invalid normalization mode: "{norm}"')
    return NORMS[norm][inverse]


def _floating(x: Tensor) -> Tensor:
    """`x` in a dtype that is transformed: integers in the default float."""
    dtype = x._dtype()
    if not is_inexact(dtype):
        return E.cast(x, dtype=default_float())
    if dtype.itemsize < 4:
        raise RuntimeError(f"Unsupported dtype {torch_name(dtype)}")
    return x


def _complex(x: Tensor) -> Tensor:
    x = _floating(x)
    return x if x._dtype().kind == "c" else E.cast(x, dtype=complex_of(x._dtype()))


def _real(x: Tensor, name: str) -> Tensor:
    if x._dtype().kind == "c":
        raise RuntimeError(f"{name} expects a real input tensor, but got {torch_name(x._dtype())}")
    return _floating(x)


def _resized(x: Tensor, axis: int, n: int) -> Tensor:
    """`x` with `n` numbers along `axis`: trimmed at the end, or filled up with zeros."""
    size = x._d.shape[axis]
    if n < 1:
        raise RuntimeError(SIZE.format(n=n))
    if n <= size:
        return x if n == size else cut(x, axis, 0, n)
    zeros = (0,) * len(x._d.shape)
    return E.pad_zeros(x, low=zeros, high=(*zeros[:axis], n - size, *zeros[axis + 1 :]), interior=zeros)


def _one_axis(name: str, input: Any, dim: int) -> int:
    ndim = len(shape_of(input, f"fft_{name}"))
    if not ndim:
        raise IndexError(NO_DIMS.format(dim=dim))
    return normalize_axis(dim, ndim)


def _along_one(name: str, function: Any, inverse: bool, what: str) -> Any:
    def transform(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
        axis = _one_axis(name, input, dim)
        return function(name, inverse, input, (axis,), {} if n is None else {axis: n}, norm)

    transform.__name__ = transform.__qualname__ = name
    transform.__doc__ = f"{what} along `dim`, of `n` numbers. As `torch.fft.{name}`. RuntimeError for n < 1."
    return _public(name, transform)


def _public(name: str, transform: Any) -> Any:
    return checking(f"fft_{name}", with_out(f"fft_{name}", transform), home=__name__, written=False)


def _all_resized(x: Tensor, axes: tuple[int, ...], sizes: Mapping[int, int]) -> Tensor:
    for axis in axes:
        x = _resized(x, axis, sizes[axis] if axis in sizes else x._d.shape[axis])
    return x


def _all_to_all(
    name: str, inverse: bool, x: Tensor, axes: tuple[int, ...], sizes: Mapping[int, int], norm: str | None
) -> Tensor:
    scale = _norm(norm, inverse)
    real = x._dtype().kind != "c" and len(axes) == 1
    x = _all_resized(_floating(x) if real else _complex(x), axes, sizes)
    if not real:
        return E.fft(x, axes=axes, inverse=inverse, norm=scale) if axes else x
    forward = named(E.fft(_complex(x), axes=axes, inverse=False, norm=scale), "FftR2CBackward0")
    return E.conj(forward) if inverse else forward


def _to_half(
    name: str, inverse: bool, x: Tensor, axes: tuple[int, ...], sizes: Mapping[int, int], norm: str | None
) -> Tensor:
    scale = _norm(norm, inverse)
    x = _real(x, name)
    if not axes:
        raise RuntimeError(f"{name} must transform at least one axis")
    x = _all_resized(x, axes, sizes)
    if not inverse:
        return E.rfft(x, axes=axes, norm=scale, twice=False)
    last = E.conj(E.rfft(x, axes=axes[-1:], norm=scale, twice=False))
    return E.fft(last, axes=axes[:-1], inverse=True, norm=scale) if axes[1:] else last


def _from_half(
    name: str, inverse: bool, x: Tensor, axes: tuple[int, ...], sizes: Mapping[int, int], norm: str | None
) -> Tensor:
    scale = _norm(norm, inverse)
    x = _complex(x)
    if not axes:
        raise RuntimeError(f"{name} must transform at least one axis")
    last = axes[-1]
    n = sizes[last] if last in sizes else 2 * (x._d.shape[last] - 1)
    if n < 1:
        raise RuntimeError(SIZE.format(n=n))
    x = _resized(_all_resized(x, axes[:-1], sizes), last, n // 2 + 1)
    if inverse:
        return E.irfft(x, axes=axes, n=n, norm=scale, twice=True)
    if axes[1:]:
        x = E.fft(x, axes=axes[:-1], inverse=False, norm=scale)
    return E.irfft(E.conj(x), axes=axes[-1:], n=n, norm=scale, twice=True)


fft = _along_one("fft", _all_to_all, False, "The discrete Fourier transform")
ifft = _along_one("ifft", _all_to_all, True, "The inverse of `fft`")
rfft = _along_one("rfft", _to_half, False, "The first half of the transform of real numbers")
irfft = _along_one("irfft", _from_half, True, "The inverse of `rfft`")
hfft = _along_one("hfft", _from_half, False, "The real transform of half of a Hermitian signal")
ihfft = _along_one("ihfft", _to_half, True, "The inverse of `hfft`")


def _several_axes(name: str, input: Any, s: Any, dim: Any) -> tuple[tuple[int, ...], dict[int, int]]:
    shape = shape_of(input, f"fft_{name}")
    ndim = len(shape)
    sizes = None if s is None else [index(n) for n in (s if isinstance(s, Sequence) else (s,))]
    if dim is not None:
        given = dim if isinstance(dim, Sequence) else (dim,)
        if given and not ndim:
            raise IndexError(NO_DIMS.format(dim=given[0]))
        axes = tuple(normalize_axis(d, ndim) for d in given)
        if len(set(axes)) < len(axes):
            raise RuntimeError("FFT dims must be unique")
        if sizes is not None and len(sizes) != len(axes):
            raise RuntimeError("When given, dim and shape arguments must have the same length")
    elif sizes is not None:
        if len(sizes) > ndim:
            raise RuntimeError(f"Got shape with {len(sizes)} values but input tensor only has {ndim} dimensions.")
        axes = tuple(range(ndim - len(sizes), ndim))
    else:
        axes = tuple(range(ndim))
    chosen = {} if sizes is None else {a: n for a, n in zip(axes, sizes, strict=True) if n != -1}
    for n in chosen.values():
        if n < 1:
            raise RuntimeError(SIZE.format(n=n))
    return axes, chosen


def _along_several(name: str, function: Any, inverse: bool, what: str) -> Any:
    def transform(input: Tensor, s: Any = None, dim: Any = None, norm: str | None = None) -> Tensor:
        return function(name, inverse, input, *_several_axes(name, input, s, dim), norm)

    transform.__name__ = transform.__qualname__ = name
    transform.__doc__ = f"{what} along `dim`, all dims by default. As `torch.fft.{name}`."
    return _public(name, transform)


def _along_two(name: str, general: Any) -> Any:
    def transform(input: Tensor, s: Any = None, dim: Any = (-2, -1), norm: str | None = None) -> Tensor:
        return general(input, s, dim, norm)

    transform.__name__ = transform.__qualname__ = name
    transform.__doc__ = f"`{general.__name__}` along two dims. As `torch.fft.{name}`."
    return _public(name, transform)


fftn = _along_several("fftn", _all_to_all, False, "The discrete Fourier transform")
ifftn = _along_several("ifftn", _all_to_all, True, "The inverse of `fftn`")
rfftn = _along_several("rfftn", _to_half, False, "The transform of real numbers, half of the last dim,")
irfftn = _along_several("irfftn", _from_half, True, "The inverse of `rfftn`")
hfftn = _along_several("hfftn", _from_half, False, "The real transform of half of a Hermitian signal")
ihfftn = _along_several("ihfftn", _to_half, True, "The inverse of `hfftn`")
fft2, ifft2 = _along_two("fft2", fftn), _along_two("ifft2", ifftn)
rfft2, irfft2 = _along_two("rfft2", rfftn), _along_two("irfft2", irfftn)
hfft2, ihfft2 = _along_two("hfft2", hfftn), _along_two("ihfft2", ihfftn)


def _shifted(input: Tensor, dim: Any, up: bool, name: str) -> Tensor:
    shape = shape_of(input, f"fft_{name}")
    dims = tuple(range(len(shape))) if dim is None else tuple(dim) if isinstance(dim, Sequence) else (dim,)
    if not dims:
        return E.clone(input)
    sizes = [shape[normalize_axis(index(d), len(shape))] for d in dims]
    return roll(input, tuple(n // 2 if up else (n + 1) // 2 for n in sizes), dims)


@partial(checking, "fft_fftshift", home=__name__)
def fftshift(input: Tensor, dim: Any = None) -> Tensor:
    """The zero frequency moved to the middle of `dim`, of all dims by default. As `torch.fft.fftshift`."""
    return _shifted(input, dim, True, "fftshift")


@partial(checking, "fft_ifftshift", home=__name__)
def ifftshift(input: Tensor, dim: Any = None) -> Tensor:
    """The inverse of `fftshift`. As `torch.fft.ifftshift`."""
    return _shifted(input, dim, False, "ifftshift")


def _frequencies(
    name: str, places: np.ndarray, n: int, d: float, dtype: Any, device: Any, requires_grad: bool, out: Tensor | None
) -> Tensor:
    check_device(device)
    kind = dtype_or(dtype, default_float(), out=out)
    if not is_inexact(kind):
        raise RuntimeError(f"{name} requires a floating point or complex dtype")
    array = places.astype(kind) * kind.type(1 / (n * d) if n else 0.0)
    return delivered(array, name, out, None, device, requires_grad)


@partial(checking, "fft_fftfreq")
def fftfreq(n: int, d: float = 1.0, *, out: Tensor | None = None, dtype: Any = None, layout: Any = None,
            device: Any = None, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """The frequencies of `fft` of `n` samples, `d` apart. As `torch.fft.fftfreq`."""
    places = np.arange(n)
    places[(n + 1) // 2 :] -= n
    return _frequencies("fftfreq", places, n, d, dtype, device, requires_grad, out)


@partial(checking, "fft_rfftfreq")
def rfftfreq(n: int, d: float = 1.0, *, out: Tensor | None = None, dtype: Any = None, layout: Any = None,
             device: Any = None, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """The frequencies of `rfft` of `n` samples, `d` apart. As `torch.fft.rfftfreq`."""
    return _frequencies("rfftfreq", np.arange(n // 2 + 1), n, d, dtype, device, requires_grad, out)
