"""`torch.cpu.amp` and `torch.cuda.amp`: what `torch.amp` has, for one type of device. Deprecated in PyTorch."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from typing import Any

from eager.amp import autocast_mode, grad_scaler


def _warn(place: str, name: str, instead: str) -> None:
    message = f"`torch.{place}.amp.{name}(args...)` is deprecated. Please use `torch.amp.{instead}` instead."
    warnings.warn(message, FutureWarning, stacklevel=3)


def autocast_of(device_type: str, usual: Any) -> type[autocast_mode.autocast]:
    """torch.<device_type>.amp.autocast, whose dtype is `usual`."""

    class autocast(autocast_mode.autocast):
        __doc__ = f'Deprecated: use `torch.amp.autocast("{device_type}")`.'

        def __init__(self, enabled: bool = True, dtype: Any = usual, cache_enabled: bool = True):
            _warn(device_type, "autocast", f"autocast('{device_type}', args...)")
            super().__init__(device_type, enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)

    return autocast


def grad_scaler_of(device_type: str) -> type[grad_scaler.GradScaler]:
    """torch.<device_type>.amp.GradScaler."""

    class GradScaler(grad_scaler.GradScaler):
        __doc__ = f'Deprecated: use `torch.amp.GradScaler("{device_type}")`.'

        def __init__(self, init_scale: float = 2.0**16, growth_factor: float = 2.0, backoff_factor: float = 0.5,
                     growth_interval: int = 2000, enabled: bool = True):  # fmt: skip
            _warn(device_type, "GradScaler", f"GradScaler('{device_type}', args...)")
            super().__init__(device_type, init_scale, growth_factor, backoff_factor, growth_interval, enabled)

    return GradScaler


def custom_of(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """torch.cuda.amp.custom_fwd or custom_bwd."""

    @functools.wraps(function)
    def old(*args: Any, **kwargs: Any) -> Any:
        _warn("cuda", name, f"{name}(args..., device_type='cuda')")
        return function(*args, **kwargs, device_type="cuda")

    return old
