"""`torch.cpu`: the CPU as a device, so that code for any device runs on it."""

from __future__ import annotations

import importlib
from typing import Any

__all__ = ["current_device", "device_count", "is_available", "is_initialized", "set_device", "synchronize"]


def is_available() -> bool:
    """True: there is a CPU."""
    return True


is_initialized = is_available


def device_count() -> int:
    """1: there is one CPU."""
    return 1


def current_device() -> str:
    """The name of the device: "cpu"."""
    return "cpu"


def set_device(device: Any) -> None:
    """Does nothing: there is one CPU."""


def synchronize(device: Any = None) -> None:
    """Does nothing: operations have ended when they return."""


def __getattr__(name: str) -> Any:
    if name == "amp":
        return importlib.import_module("eager.cpu.amp")
    raise AttributeError(f"module 'eager.cpu' has no attribute '{name}'")
