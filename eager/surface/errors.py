"""Exceptions that programs catch, and assertions that are part of a program."""

from __future__ import annotations

from typing import Any


class AcceleratorError(RuntimeError):
    """An error of an accelerator. Never raised: there is none."""


class OutOfMemoryError(RuntimeError):
    """No memory is left on a device. Never raised: NumPy raises MemoryError."""


def _assert(condition: Any, message: str) -> None:
    """AssertionError with `message` unless `condition` is true. As `torch._assert`."""
    if not condition:
        raise AssertionError(message)
