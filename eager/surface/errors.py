"""Exceptions that programs catch, and assertions that are part of a program."""

from __future__ import annotations

from typing import Any

from eager.core.overriding import handled, overloaded, public_of


class AcceleratorError(RuntimeError):
    """An error of an accelerator. Never raised: there is none."""


class OutOfMemoryError(RuntimeError):
    """No memory is left on a device. Never raised: NumPy raises MemoryError."""


def _assert(condition: Any, message: str) -> Any:
    """AssertionError with `message` unless `condition` is true. As `torch._assert`."""
    if type(condition) is not bool and (found := overloaded((condition,))):
        return handled(public_of[0]("_assert"), found, (condition, message), {})
    if not condition:
        raise AssertionError(message)
