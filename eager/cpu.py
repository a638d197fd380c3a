"""`torch.cpu`: the device that there is."""

from __future__ import annotations

from typing import Any


def is_available() -> bool:
    """True."""
    return True


def is_initialized() -> bool:
    """True."""
    return True


def device_count() -> int:
    """1."""
    return 1


def current_device() -> str:
    """ "cpu"."""
    return "cpu"


def synchronize(device: Any = None) -> None:
    """Does nothing: operations are done when they return."""


def set_device(device: Any) -> None:
    """Does nothing: there is one."""
