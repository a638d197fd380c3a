"""Windows and short-time Fourier transforms: `torch.hann_window`, `torch.stft`, `torch.istft` and relatives."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from eager.core import dtypes
from eager.core.tensor import Tensor
from eager.core.warned import warn_once
from eager.engine.language import E
from eager.functional.arguments import shape_of
from eager.functional.buffers import finished
from eager.functional.complexes import view_as_real
from eager.functional.joining import cut
from eager.nn.functional import pad
from eager.signal.windows import kaiser_values
from graphc.ops.dtypes import complex_of, default_float, is_inexact
from graphc.ops.rules import C_NAMES, SHORT_NAMES, torch_name

NOT_COMPLEX = (
    "stft with return_complex=False is deprecated. In a future pytorch release, stft will return complex tensors for "
    "all inputs, and return_complex=False will raise an error.\nNote: you can still call torch.view_as_real on the "
    "complex output to recover the old return format."
)
NO_WINDOW = (
    "A window was not provided. A rectangular window will be applied,which is known to cause spectral leakage. Other "
    "windows such as torch.hann_window or torch.hamming_window are recommended to reduce spectral leakage.To suppress "
    "this warning and use a rectangular window, explicitly set `window=torch.ones(n_fft, device=<device>)`."
)


# windows, periodic by default; computed in the window's own dtype
def _window(name: str, length: int, periodic: bool, values: Callable[[np.ndarray, int], np.ndarray], dtype: Any,
            device: Any, requires_grad: bool) -> Tensor:  # fmt: skip
    """The first `length` of `values(n, N)`, where N + 1 numbers n are a whole window."""
    kind = default_float() if dtype is None else dtypes.to_numpy(dtype)
    if not is_inexact(kind):
        shown = C_NAMES[SHORT_NAMES[kind]]
        raise RuntimeError(
            f"{name} expects floating point dtypes, got: TensorOptions(dtype={shown}{' int' * (shown == 'long')}, "
            "device=cpu, layout=Strided (default), requires_grad=false (default), pinned_memory=false, "
            "memory_format=(nullopt))"
        )
    if length < 0:
        raise RuntimeError(f"{name} requires non-negative window_length, got window_length={length}")
    if length < 2:
        array = np.ones(length, kind)
    else:
        array = values(np.arange(length, dtype=kind), length if periodic else length - 1)
    return finished(array, device, requires_grad)


def _cosine(n: np.ndarray, factor: float, weight: float) -> np.ndarray:
    kind = n.dtype.type
    return np.cos(n * kind(factor)) * kind(weight)


def bartlett_window(window_length: int, periodic: bool = True, *, dtype: Any = None, layout: Any = None,
                    device: Any = None, requires_grad: bool = False, pin_memory: bool = False) -> Tensor:  # fmt: skip
    """A triangle. As `torch.bartlett_window`."""

    def triangle(n: np.ndarray, N: int) -> np.ndarray:
        rise = n * n.dtype.type(2 / N)
        return np.where(n <= N // 2, rise, 2 - rise)

    return _window("bartlett_window", window_length, periodic, triangle, dtype, device, requires_grad)


def blackman_window(window_length: int, periodic: bool = True, *, dtype: Any = None, layout: Any = None,
                    device: Any = None, requires_grad: bool = False, pin_memory: bool = False) -> Tensor:  # fmt: skip
    """0.42 - 0.5 cos(2 pi n / N) + 0.08 cos(4 pi n / N). As `torch.blackman_window`."""

    def cosines(n: np.ndarray, N: int) -> np.ndarray:
        n = n * n.dtype.type(math.pi / N)
        return _cosine(n, 4, 0.08) - _cosine(n, 2, 0.5) + n.dtype.type(0.42)

    return _window("blackman_window", window_length, periodic, cosines, dtype, device, requires_grad)


def hamming_window(window_length: int, periodic: bool = True, alpha: float = 0.54, beta: float = 0.46, *,
                   dtype: Any = None, layout: Any = None, device: Any = None, requires_grad: bool = False,
                   pin_memory: bool = False) -> Tensor:  # fmt: skip
    """alpha - beta cos(2 pi n / N). As `torch.hamming_window`."""

    def cosine(n: np.ndarray, N: int) -> np.ndarray:
        return _cosine(n, 2 * math.pi / N, -beta) + n.dtype.type(alpha)

    return _window("hamming_window", window_length, periodic, cosine, dtype, device, requires_grad)


def hann_window(window_length: int, periodic: bool = True, *, dtype: Any = None, layout: Any = None, device: Any = None,
                requires_grad: bool = False, pin_memory: bool = False) -> Tensor:  # fmt: skip
    """(1 - cos(2 pi n / N)) / 2. As `torch.hann_window`."""

    def cosine(n: np.ndarray, N: int) -> np.ndarray:
        return _cosine(n, 2 * math.pi / N, -0.5) + n.dtype.type(0.5)

    return _window("hann_window", window_length, periodic, cosine, dtype, device, requires_grad)


def kaiser_window(window_length: int, periodic: bool = True, beta: float = 12.0, *, dtype: Any = None,
                  layout: Any = None, device: Any = None, requires_grad: bool = False,
                  pin_memory: bool = False) -> Tensor:  # fmt: skip
    """I0(beta sqrt(1 - (2 n / N - 1)^2)) / I0(beta). As `torch.kaiser_window`."""

    def bessel(n: np.ndarray, N: int) -> np.ndarray:
        return kaiser_values(2 * n.astype(np.float64) / N - 1, beta).astype(n.dtype)

    return _window("kaiser_window", window_length, periodic, bessel, dtype, device, requires_grad)


def _refusal(name: str, input: Tensor, window: Tensor | None, **options: Any) -> Callable[[str], RuntimeError]:
    """Makes PyTorch's error for arguments that do not fit: all of them, then the reason."""

    def refuse(reason: str) -> RuntimeError:
        sizes = ", ".join(map(str, input._d.shape))
        seen = "None" if window is None else f"torch.{torch_name(window._dtype())}Tensor{{{list(window._d.shape)}}}"
        shown = [f"{option}={int(x) if isinstance(x, bool) else x}" for option, x in options.items()]
        shown.insert(3, f"window={seen}")
        return RuntimeError(f"{name}(torch.{torch_name(input._dtype())}Tensor[{sizes}], {', '.join(shown)}) : {reason}")

    return refuse


def _full_window(window: Tensor | None, win_length: int, n_fft: int, like: np.dtype) -> Tensor:
    """`window`, ones by default, with zeros on both sides up to `n_fft`."""
    found = Tensor._wrap(np.ones(win_length, like)) if window is None else window
    left = (n_fft - win_length) // 2
    if win_length == n_fft:
        return found
    return E.pad_zeros(found, low=(left,), high=(n_fft - win_length - left,), interior=(0,))


def _frames(count: int, n_fft: int, hop: int) -> Tensor:
    return Tensor._wrap(np.arange(count)[:, None] * hop + np.arange(n_fft))


def stft(input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
         window: Tensor | None = None, center: bool = True, pad_mode: str = "reflect", normalized: bool = False,
         onesided: bool | None = None, return_complex: bool | None = None,
         align_to_window: bool | None = None) -> Tensor:  # fmt: skip
    """Fourier transforms of overlapping frames of input (L) or (B, L): (B, frequencies, frames). As `torch.stft`."""
    shape = shape_of(input, "stft")
    if window is None:
        warn_once(NO_WINDOW)
    if center:
        extended = E.reshape(input, shape=(1,) * max(3 - len(shape), 0) + tuple(shape))
        extended = pad(extended, (n_fft // 2, n_fft // 2), pad_mode)
        input = E.reshape(extended, shape=(*shape[:-1], extended._d.shape[-1]))
        shape = input._d.shape
    hop = n_fft // 4 if hop_length is None else hop_length
    length = n_fft if win_length is None else win_length

    if return_complex is False:
        warn_once(NOT_COMPLEX)
    refuse = _refusal("stft", input, window, n_fft=n_fft, hop_length=hop, win_length=length, normalized=normalized,
                      onesided=onesided, return_complex=return_complex, align_to_window=align_to_window)  # fmt: skip
    dtype = input._dtype()
    if return_complex is None:
        if dtype.kind != "c" and (window is None or window._dtype().kind != "c"):
            raise RuntimeError(
                "stft requires the return_complex parameter be given for real inputs, and will further require that "
                "return_complex=True in a future PyTorch release."
            )
        return_complex = True
    if not is_inexact(dtype):
        raise refuse("expected a tensor of floating point or complex values")
    if not 1 <= len(shape) <= 2:
        raise refuse("expected a 1D or 2D tensor")
    signal = E.reshape(input, shape=(1, *shape)) if len(shape) == 1 else input
    size = signal._d.shape[-1]
    if not 0 < n_fft <= size:
        raise refuse(f"expected 0 < n_fft < {size}, but got n_fft={n_fft}")
    if hop <= 0:
        raise refuse(f"expected hop_length > 0, but got hop_length={hop}")
    if not 0 < length <= n_fft:
        raise refuse(f"expected 0 < win_length <= n_fft, but got win_length={length}")
    if window is not None and tuple(window._d.shape) != (length,):
        raise refuse(
            f"expected a 1D window tensor of size equal to win_length={length}, but got window with size "
            f"{list(window._d.shape)}"
        )
    whole = dtype.kind == "c" or (window is not None and window._dtype().kind == "c")
    if whole and onesided:
        raise RuntimeError(
            "Cannot have onesided output if window or input is complex"
        )  # fmt: skip
    frames = E.index(signal, _frames(1 + (size - n_fft) // hop, n_fft, hop), spec=(None, 0))
    if window is not None or length < n_fft:
        frames = E.mul(frames, _full_window(window, length, n_fft, dtype))
    norm = "ortho" if normalized else "none"
    if whole or onesided is False:
        if frames._dtype().kind != "c":
            frames = E.cast(frames, dtype=complex_of(frames._dtype()))
        result = E.fft(frames, axes=(2,), inverse=False, norm=norm)
    else:
        result = E.rfft(frames, axes=(2,), norm=norm, twice=False)
    result = E.permute(result, dims=(0, 2, 1))
    if len(shape) == 1:
        result = E.reshape(result, shape=tuple(result._d.shape[1:]))
    return result if return_complex else view_as_real(result)


def istft(input: Tensor, n_fft: int, hop_length: int | None = None, win_length: int | None = None,
          window: Tensor | None = None, center: bool = True, normalized: bool = False, onesided: bool | None = None,
          length: int | None = None, return_complex: bool = False) -> Tensor:  # fmt: skip
    """The signal whose `stft` is input (frequencies, frames) or (B, frequencies, frames). As `torch.istft`."""
    shape = shape_of(input, "istft")
    hop = n_fft // 4 if hop_length is None else hop_length
    size = n_fft if win_length is None else win_length

    refuse = _refusal(
        "istft", input, window, n_fft=n_fft, hop_length=hop, win_length=size, center=center, normalized=normalized,
        onesided=onesided, length=length, return_complex=return_complex,
    )  # fmt: skip
    if input._dtype().kind != "c":
        raise RuntimeError(
            "istft requires a complex-valued input tensor matching the output from stft with return_complex=True."
        )
    if 0 in shape:
        raise refuse("input tensor cannot be empty.")
    if len(shape) not in (2, 3):
        raise refuse(f"expected a tensor with 3 or 4 dimensions, but got {len(shape) + 1}")
    z = E.reshape(input, shape=(1, *shape)) if len(shape) == 2 else input
    whole = n_fft != z._d.shape[1] if onesided is None else onesided
    expected = n_fft // 2 + 1 if whole else n_fft
    if z._d.shape[1] != expected:
        formula = "n_fft / 2 + 1" if whole else "n_fft"
        raise refuse(
            f"expected the frequency dimension (3rd to the last) of the input tensor to match {formula} when onesided="
            f"{whole}, but got {z._d.shape[1]}"
        )
    if not 0 < hop <= size:
        raise refuse("expected 0 < hop_length <= win_length")
    if not 0 < size <= n_fft:
        raise refuse("expected 0 < win_length <= n_fft")
    if window is not None and tuple(window._d.shape) != (size,):
        raise refuse(f"Invalid window shape. window has to be 1D and length of `win_length`={size}")
    norm = "ortho" if normalized else "full"
    z = E.permute(z, dims=(0, 2, 1))
    if return_complex:
        frames = E.fft(z, axes=(2,), inverse=True, norm=norm)
    else:
        if not whole:
            z = cut(z, 2, 0, n_fft // 2 + 1)
        frames = E.irfft(z, axes=(2,), n=n_fft, norm=norm, twice=True)
    real = np.dtype(np.float64) if input._dtype().itemsize == 16 else np.dtype(np.float32)
    full = _full_window(window, size, n_fft, real)
    batch, count = z._d.shape[:2]
    total = n_fft + hop * (count - 1)
    at = _frames(count, n_fft, hop)
    signal = _overlapped(E.mul(frames, full), (batch, total), at)
    weight = E.broadcast_to(E.reshape(E.mul(full, full), shape=(1, 1, n_fft)), shape=(1, count, n_fft))
    envelope = _overlapped(weight, (1, total), at)
    first = n_fft // 2 if center else 0
    last = first + length if length is not None else (total - n_fft // 2 if center else total)
    stop = min(last, total)
    signal, envelope = cut(signal, 1, first, stop), cut(envelope, 1, first, stop)
    if _least(envelope) <= 1e-11:
        raise refuse(f"window overlap add min: {1}")
    signal = E.div(signal, envelope)
    if last > total:
        signal = E.pad_zeros(signal, low=(0, 0), high=(0, last - total), interior=(0, 0))
    return E.reshape(signal, shape=tuple(signal._d.shape[1:])) if len(shape) == 2 else signal


def _least(envelope: Tensor) -> float:
    data = envelope._d
    return float(np.abs(data).min()) if isinstance(data, np.ndarray) and data.size else 1.0


def _overlapped(frames: Tensor, shape: tuple[int, int], at: Tensor) -> Tensor:
    """Frames (B, count, n) added up at the places `at` of signals (B, total)."""
    zeros = E.full(shape=shape, value=0, dtype=frames._dtype())
    return E.index_put(zeros, frames, at, spec=(None, 0), accumulate=True)
