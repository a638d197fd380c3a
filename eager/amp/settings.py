"""The functions of `torch` that read and set the state of autocast."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from eager.amp import casting
from eager.core import dtypes
from eager.core.autocast import DTYPES, autocast_state, set_autocast_state
from eager.core.devices import device
from eager.core.dtypes import type_name

DEPRECATED = "torch.{name}({arguments}) is deprecated. Please use torch.{instead} instead."
WRONG = "{name}(): argument '{argument}' (position {position}) must be {expected}, not {kind}"


def _device_type(name: str, given: Any) -> str:
    if not isinstance(given, str):
        raise TypeError(
            WRONG.format(name=name, argument="device_type", position=1, expected="str", kind=type_name(given))
        )
    return device(given).type


def _check(name: str, argument: str, position: int, given: Any, kind: type, expected: str) -> None:
    if not isinstance(given, kind):
        raise TypeError(
            WRONG.format(name=name, argument=argument, position=position, expected=expected, kind=type_name(given))
        )


def is_autocast_available(device_type: str) -> bool:
    """Whether there is autocast for devices of this type. As `torch.amp.is_autocast_available`."""
    return _device_type("_is_autocast_available", device_type) in DTYPES


def is_autocast_enabled(device_type: str = "cuda") -> bool:
    """Whether operations on this type of device are autocast in this thread. As `torch.is_autocast_enabled`."""
    return _device_type("is_autocast_enabled", device_type) in autocast_state().enabled


def set_autocast_enabled(*args: Any) -> None:
    """`set_autocast_enabled(device_type, enabled)`; of CUDA if one argument is given."""
    name = "set_autocast_enabled"
    if not 1 <= len(args) <= 2:
        raise TypeError(f"{name}() takes 1 or 2 positional arguments but {len(args)} were given")
    given, enabled = args if len(args) == 2 else ("cuda", *args)
    device_type = _device_type(name, given)
    _check(name, "enabled", len(args), enabled, bool, "bool")
    if enabled and device_type == "cpu":
        casting.install()
    set_autocast_state(autocast_state().with_enabled(device_type, enabled))


def get_autocast_dtype(device_type: str) -> dtypes.dtype:
    """The dtype of autocast. As `torch.get_autocast_dtype`. RuntimeError for a device type that has no autocast."""
    return _dtype(_device_type("get_autocast_dtype", device_type))


def _dtype(device_type: str) -> dtypes.dtype:
    if device_type not in DTYPES:
        raise RuntimeError("unsupported scalarType")
    return autocast_state().dtype(device_type)


def set_autocast_dtype(device_type: str, dtype: dtypes.dtype) -> None:
    """Set what `get_autocast_dtype` returns. As `torch.set_autocast_dtype`."""
    found = _device_type("set_autocast_dtype", device_type)
    _check("set_autocast_dtype", "dtype", 2, dtype, dtypes.dtype, "torch.dtype")
    _dtype(found)
    set_autocast_state(autocast_state().with_dtype(found, dtype))


def is_autocast_cache_enabled() -> bool:
    """Whether casts of weights are kept until autocast ends. As `torch.is_autocast_cache_enabled`."""
    return autocast_state().cache_enabled


def set_autocast_cache_enabled(enabled: Any) -> None:
    """Keep casts of weights until autocast ends, or make each anew. As `torch.set_autocast_cache_enabled`."""
    if not isinstance(enabled, bool):
        raise TypeError(f"enabled must be a bool (got {type_name(enabled)})")
    set_autocast_state(autocast_state()._replace(cache_enabled=enabled))


def clear_autocast_cache() -> None:
    """Forget the casts of weights that this thread has made. As `torch.clear_autocast_cache`."""
    casting.thread.casts.clear()


def autocast_increment_nesting() -> int:
    """Count one more context that is entered. Returns how many. As `torch.autocast_increment_nesting`."""
    casting.thread.nesting += 1
    return casting.thread.nesting


def autocast_decrement_nesting() -> int:
    """Count one context less. Returns how many are left. As `torch.autocast_decrement_nesting`."""
    casting.thread.nesting -= 1
    return casting.thread.nesting


# deprecated: one function for each type of device
def _deprecated(
    name: str, argument: str, function: Callable[..., Any], device_type: str, instead: str
) -> Callable[..., Any]:
    message = DEPRECATED.format(name=name, arguments=argument, instead=instead)

    def old(*args: Any) -> Any:
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return function(device_type, *args)

    old.__name__ = old.__qualname__ = name
    old.__doc__ = f"Deprecated: use `torch.{instead}`."
    return old


_OLD = {"cpu": "cpu", "gpu": "cuda", "xla": "xla", "ipu": "ipu"}
METHODS: dict[str, Callable[..., Any]] = {}
for _short, _type in _OLD.items():
    for _name, _argument, _function in (
        ("get_autocast_{}_dtype", "", get_autocast_dtype),
        ("set_autocast_{}_dtype", "dtype", set_autocast_dtype),
        ("is_autocast_{}_enabled", "", is_autocast_enabled),
        ("set_autocast_{}_enabled", "enabled", set_autocast_enabled),
    ):
        _old = _name.format(_short)
        _arguments = f"'{_type}', {_argument}" if _argument else f"'{_type}'"
        METHODS[_old] = _deprecated(_old, _argument, _function, _type, f"{_function.__name__}({_arguments})")
