"""`torch.accelerator` of a machine without one."""

from __future__ import annotations

from typing import Any, NoReturn

from eager.core.devices import NO_ACCELERATOR
from eager.core.missing import explain

__all__ = [
    "current_accelerator",
    "current_device_idx",
    "current_device_index",
    "current_stream",
    "device_count",
    "is_available",
    "set_device_index",
    "synchronize",
]
explain(__name__)


def is_available() -> bool:
    """False: tensors live on the CPU."""
    return False


def device_count() -> int:
    """0: tensors live on the CPU."""
    return 0


def current_accelerator(check_available: bool = False) -> None:
    """None: tensors live on the CPU."""


def _needs_one(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises RuntimeError: there is no accelerator."""
    raise RuntimeError(NO_ACCELERATOR)


current_device_index = current_device_idx = current_stream = set_device_index = synchronize = _needs_one
