"""`torch._dynamo`, as far as libraries use it: hints to PyTorch's compiler, which graphc does not need."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def allow_in_graph(fn: F) -> F:
    """`fn` itself: graphc traces through all functions."""
    return fn


def assume_constant_result(fn: F) -> F:
    """`fn` itself: graphc guards what a function reads."""
    return fn


def mark_static_address(t: Any, guard: bool = True) -> None:
    """Does nothing: compiled programs take arrays wherever they are."""
