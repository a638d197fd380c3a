"""Window functions. As `torch.signal.windows`: symmetric (`sym`), or periodic, which drops the last of M + 1."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from eager.core import dtypes
from eager.core.devices import CPU, check_device
from eager.core.tensor import Tensor
from eager.engine.crossing import transferred
from eager.engine.language import E
from eager.functional.lines import linspace
from eager.functional.naming import called
from graphc.ops.dtypes import FLOAT32, FLOAT64, default_float

__all__ = [
    "bartlett", "blackman", "cosine", "exponential", "gaussian", "general_cosine", "general_hamming", "hamming",
    "hann", "kaiser", "nuttall",
]  # fmt: skip


def _checked(name: str, M: int, dtype: Any, layout: Any, device: Any) -> Any:
    """The torch dtype. Raises PyTorch's ValueError for a length, layout or dtype that does not do."""
    check_device(device)
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if layout is not None and str(layout) != "torch.strided":
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    kind = default_float() if dtype is None else dtypes.to_numpy(dtype)
    if kind not in (FLOAT32, FLOAT64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtypes.of_numpy(kind)}")
    return dtypes.of_numpy(kind)


def _line(start: float, step: float, M: int, dtype: Any, requires_grad: bool) -> Tensor:
    """start, start + step, ...: M numbers."""
    return linspace(start, start + (M - 1) * step, M, dtype=dtype, requires_grad=requires_grad)


def _trivial(M: int, dtype: Any, requires_grad: bool) -> Tensor:
    """The windows of none and of one number."""
    return Tensor._wrap(np.ones(M, dtype.numpy)).requires_grad_(requires_grad)


def exponential(M: int, *, center: float | None = None, tau: float = 1.0, sym: bool = True, dtype: Any = None,
                layout: Any = None, device: Any = None, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """exp(-|n - center| / tau). As `torch.signal.windows.exponential`."""
    kind = _checked("exponential", M, dtype, layout, device)
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError("Center must be None for symmetric windows")
    if not M:
        return _trivial(M, kind, requires_grad)
    middle = _steps(M, sym) / 2 if center is None else center
    return E.exp(E.neg(E.abs(_line(-middle / tau, 1 / tau, M, kind, requires_grad))))


def _steps(M: int, sym: bool) -> int:
    return M - 1 if sym or M == 1 else M


def cosine(M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
           requires_grad: bool = False) -> Tensor:  # fmt: skip
    """sin(pi (n + 1/2) / M). As `torch.signal.windows.cosine`."""
    kind = _checked("cosine", M, dtype, layout, device)
    if not M:
        return _trivial(M, kind, requires_grad)
    step = math.pi / (_steps(M, sym) + 1)
    return E.sin(_line(0.5 * step, step, M, kind, requires_grad))


def gaussian(M: int, *, std: float = 1.0, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
             requires_grad: bool = False) -> Tensor:  # fmt: skip
    """exp(-((n - middle) / std)^2 / 2). As `torch.signal.windows.gaussian`."""
    kind = _checked("gaussian", M, dtype, layout, device)
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    if not M:
        return _trivial(M, kind, requires_grad)
    step = 1 / (std * math.sqrt(2))
    return E.exp(E.neg(E.square(_line(-_steps(M, sym) / 2 * step, step, M, kind, requires_grad))))


def kaiser(M: int, *, beta: float = 12.0, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
           requires_grad: bool = False) -> Tensor:  # fmt: skip
    """I0(beta sqrt(1 - (2 n / N - 1)^2)) / I0(beta). As `torch.signal.windows.kaiser`."""
    kind = _checked("kaiser", M, dtype, layout, device)
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    if M < 2:
        return _trivial(M, kind, requires_grad)
    places = 2 * np.arange(M) / _steps(M, sym) - 1
    return Tensor._wrap(kaiser_values(places, beta).astype(kind.numpy)).requires_grad_(requires_grad)


def kaiser_values(places: np.ndarray, beta: float) -> np.ndarray:
    """The window at `places` in [-1, 1], in float64."""
    return np.i0(beta * np.sqrt(np.maximum(1 - places**2, 0))) / np.i0(np.float64(beta))


def general_cosine(M: int, *, a: Iterable[float], sym: bool = True, dtype: Any = None, layout: Any = None,
                   device: Any = None, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """sum_i (-1)^i a[i] cos(2 pi i n / N). As `torch.signal.windows.general_cosine`."""
    kind = _checked("general_cosine", M, dtype, layout, device)
    if M < 2:
        return _trivial(M, kind, requires_grad)
    if not isinstance(a, Iterable):
        raise TypeError("Coefficients must be a list/tuple")
    weights = np.array(list(a), kind.numpy)
    if not weights.size:
        raise ValueError("Coefficients cannot be empty")
    weights[1::2] *= -1
    angle = _line(0, 2 * math.pi / _steps(M, sym), M, kind, requires_grad)
    multiples = E.mul(Tensor._wrap(np.arange(len(weights), dtype=kind.numpy)[:, None]), angle)
    return E.sum(E.mul(Tensor._wrap(weights[:, None]), E.cos(multiples)), axis=(0,), keepdims=False)


def general_hamming(M: int, *, alpha: float = 0.54, sym: bool = True, dtype: Any = None, layout: Any = None,
                    device: Any = None, requires_grad: bool = False) -> Tensor:  # fmt: skip
    """alpha - (1 - alpha) cos(2 pi n / N). As `torch.signal.windows.general_hamming`."""
    return general_cosine(M, a=[alpha, 1.0 - alpha], sym=sym, dtype=dtype, layout=layout, device=device,
                          requires_grad=requires_grad)  # fmt: skip


def _cosine_window(name: str, a: list[float], checks: bool = False) -> Any:
    @called(name, f"The sum of cosines with weights {a}.", "torch.signal.windows")
    def window(M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
               requires_grad: bool = False) -> Tensor:  # fmt: skip
        if checks:  # else errors name `general_cosine`
            _checked(name, M, dtype, layout, device)
        return general_cosine(M, a=a, sym=sym, dtype=dtype, layout=layout, device=device, requires_grad=requires_grad)

    return window


hamming = _cosine_window("hamming", [0.54, 0.46])
hann = _cosine_window("hann", [0.5, 0.5])
blackman = _cosine_window("blackman", [0.42, 0.5, 0.08], checks=True)
nuttall = _cosine_window("nuttall", [0.3635819, 0.4891775, 0.1365995, 0.0106411])


def bartlett(M: int, *, sym: bool = True, dtype: Any = None, layout: Any = None, device: Any = None,
             requires_grad: bool = False) -> Tensor:  # fmt: skip
    """1 - |2 n / N - 1|. As `torch.signal.windows.bartlett`."""
    kind = _checked("bartlett", M, dtype, layout, device)
    if M < 2:
        return _trivial(M, kind, requires_grad)
    return E.sub(1, E.abs(_line(-1, 2 / _steps(M, sym), M, kind, requires_grad)))


def _where_asked(window: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """`window`, whose result is on the device that it is asked for on."""

    @functools.wraps(window)
    def placed(*args: Any, device: Any = None, requires_grad: bool = False, **named: Any) -> Tensor:
        where = check_device(device)
        if where is CPU:
            return window(*args, device=device, requires_grad=requires_grad, **named)
        return transferred(window(*args, **named), where).requires_grad_(requires_grad)

    return placed


for _name in __all__:
    globals()[_name] = _where_asked(globals()[_name])
