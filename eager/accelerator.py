"""`torch.accelerator`: the GPUs that JAX has, whichever kind they are."""

from __future__ import annotations

from typing import Any

from eager.core.devices import NO_ACCELERATOR, accelerator, device, named, set_current
from eager.core.runtime import devices
from eager.cuda.devices import Stream, wait

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


def is_available() -> bool:
    """Whether there is one."""
    return device_count() > 0


def device_count() -> int:
    """The number of them."""
    return len(devices(accelerator()))


def current_accelerator(check_available: bool = False) -> device | None:
    """The kind of device, without an index; None if there is none."""
    return device(accelerator()) if is_available() else None


def _one(where: Any = None) -> device:
    """A device of the kind. RuntimeError if there is none."""
    if not is_available():
        raise RuntimeError(NO_ACCELERATOR)
    return named(accelerator(), where)


def current_device_index() -> int:
    """The number of the device that is meant where none is named. RuntimeError if there is none."""
    return _one().index or 0


current_device_idx = current_device_index


def set_device_index(device: Any) -> None:
    """Let `device` be the one that is meant where none is named, in this thread. RuntimeError if there is none."""
    set_current(_one(device))


def current_stream(device: Any = None) -> Stream:
    """The queue of a device. RuntimeError if there is none."""
    return Stream(_one(device), kind=accelerator())


def synchronize(device: Any = None) -> None:
    """Wait for all that devices are computing. RuntimeError if there is none."""
    _one(device)
    wait()
