"""`torch.autocast`, and what a Function of the user's needs under it."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from eager.amp import casting
from eager.amp.settings import (
    autocast_decrement_nesting,
    autocast_increment_nesting,
    clear_autocast_cache,
    get_autocast_dtype,
    is_autocast_available,
    is_autocast_cache_enabled,
    is_autocast_enabled,
)
from eager.core import dtypes
from eager.core.autocast import AutocastState, autocast_state, set_autocast_state
from eager.core.shown import ShownObject
from eager.core.tensor import Tensor

__all__ = ["autocast", "autocast_decorator", "custom_bwd", "custom_fwd", "is_autocast_available"]

NOT_CALLABLE = (
    "autocast()(func) requires a callable, but got {kind}. Did you mean to use autocast as a context manager? For "
    "example:\n    with torch.autocast(device_type=...):\n        output = model(input)"
)
NOT_SUPPORTED = (
    "In {name} autocast, but the target dtype is not supported. Disabling autocast.\n{name} Autocast only supports "
    "dtypes of torch.bfloat16, torch.float16 currently."
)
NO_CUDA = "CUDA is not available or torch_xla is imported. Disabling autocast."
NOT_A_NAME = "Expected `device_type` of type `str`, got: `{kind}`"


class autocast(ShownObject):
    """Context and decorator: products are computed in 16 bits, what needs more in float32. As `torch.autocast`.

    device_type    tensors here are those of "cpu"; "cuda" warns and does nothing, as in a build without CUDA
    dtype          bfloat16 or float16; None is `torch.get_autocast_dtype(device_type)`. Another one warns, and disables
    enabled        False: the region is not autocast
    cache_enabled  whether a weight is cast once for the whole region; None leaves it as it is

    Contexts nest, and hold in the thread that enters them. A weight that has been written is cast anew.

    Raises ValueError for a `device_type` that is no string, RuntimeError for one that has no autocast.
    """

    def __init__(
        self, device_type: str, dtype: Any = None, enabled: bool = True, cache_enabled: bool | None = None
    ) -> None:
        if not isinstance(device_type, str):
            raise ValueError(NOT_A_NAME.format(kind=type(device_type)))
        self.fast_dtype = get_autocast_dtype(device_type) if dtype is None else dtype
        self.device = device_type
        if not is_autocast_available(device_type):
            raise RuntimeError(f"User specified an unsupported autocast device_type '{device_type}'")
        self._cache_enabled = is_autocast_cache_enabled() if cache_enabled is None else cache_enabled
        if enabled and device_type == "cuda":
            warnings.warn(NO_CUDA, stacklevel=2)
            enabled = False
        elif enabled and self.fast_dtype not in (dtypes.bfloat16, dtypes.float16):
            warnings.warn(NOT_SUPPORTED.format(name=device_type.upper()), stacklevel=2)
            enabled = False
        self._enabled = enabled
        self._before: list[AutocastState] = []

    def __enter__(self) -> autocast:
        kind = self.device.partition(":")[0]
        before = autocast_state()
        if self._enabled and kind == "cpu":
            casting.install()
        inside = before.with_enabled(kind, self._enabled).with_dtype(kind, self.fast_dtype)
        set_autocast_state(inside._replace(cache_enabled=self._cache_enabled))
        self._before.append(before)
        autocast_increment_nesting()
        return self

    def __exit__(self, *error: object) -> bool:
        if not autocast_decrement_nesting():
            clear_autocast_cache()
        # of another device the state stays as it is now
        kind, before, now = self.device.partition(":")[0], self._before.pop(), autocast_state()
        now = now.with_enabled(kind, kind in before.enabled).with_dtype(kind, before.dtype(kind))
        set_autocast_state(now._replace(cache_enabled=before.cache_enabled))
        return False

    def __call__(self, func: Any) -> Any:
        """`func`, called in this context. TypeError for what cannot be called."""
        if not callable(func):
            raise TypeError(NOT_CALLABLE.format(kind=type(func).__name__))
        return autocast_decorator(self, func)


def autocast_decorator(autocast_instance: autocast, func: Callable[..., Any]) -> Callable[..., Any]:
    """`func`, called in the context `autocast_instance`."""

    @functools.wraps(func)
    def decorate_autocast(*args: Any, **kwargs: Any) -> Any:
        with autocast_instance:
            return func(*args, **kwargs)

    return decorate_autocast


def _cast(value: Any, device_type: str, dtype: Any) -> Any:
    """`value` with the floating Tensors in its containers in `dtype`, but for those of float64."""
    if isinstance(value, Tensor):
        eligible = casting.is_cast(value._dtype()) and value.device.type == device_type
        return value.to(dtype) if eligible else value
    if isinstance(value, (str, bytes, np.ndarray)):
        return value
    if isinstance(value, Mapping):
        return {_cast(k, device_type, dtype): _cast(v, device_type, dtype) for k, v in value.items()}
    if isinstance(value, Iterable):
        items = (_cast(item, device_type, dtype) for item in value)
        return value.__class__(items) if isinstance(value, (list, tuple)) else items
    return value


def custom_fwd(fwd: Any = None, *, device_type: str, cast_inputs: Any = None) -> Any:
    """Decorator for `forward` of a Function that may run under autocast. As `torch.amp.custom_fwd`.

    cast_inputs  None runs `forward` under autocast as it is. A dtype: floating inputs are cast to it, but for those of
                 float64, and `forward` runs without autocast

    Raises ValueError for a `device_type` that is no string.
    """
    if not isinstance(device_type, str):
        raise ValueError(NOT_A_NAME.format(kind=type(device_type)))
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def decorate_fwd(*args: Any, **kwargs: Any) -> Any:
        ctx, on = args[0], is_autocast_enabled(device_type)
        ctx._dtype = get_autocast_dtype(device_type)
        ctx._fwd_used_autocast = on and cast_inputs is None
        if not on or cast_inputs is None:
            return fwd(*args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(*_cast(args, device_type, cast_inputs), **_cast(kwargs, device_type, cast_inputs))

    return decorate_fwd


def custom_bwd(bwd: Any = None, *, device_type: str) -> Any:
    """Decorator for `backward` of a Function: autocast is as it was in its forward. As `torch.amp.custom_bwd`.

    Raises ValueError for a `device_type` that is no string.
    """
    if not isinstance(device_type, str):
        raise ValueError(NOT_A_NAME.format(kind=type(device_type)))
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorate_bwd(*args: Any, **kwargs: Any) -> Any:
        with autocast(device_type, enabled=args[0]._fwd_used_autocast, dtype=args[0]._dtype):
            return bwd(*args, **kwargs)

    return decorate_bwd
