"""`torch.cpu`: the CPU as a device, so that code for any device runs on it."""

from __future__ import annotations

from typing import Any

from eager.core import state
from graphc.lazy import lazy

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
    """Wait for the programs that `graphc.compile` has begun; operations have ended when they return."""
    for wait in state.waiters:
        wait()


__getattr__, __dir__ = lazy(__name__, {}, ("amp",))
