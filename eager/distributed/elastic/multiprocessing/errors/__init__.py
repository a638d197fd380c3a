"""How a process says what it has failed with. As `torch.distributed.elastic.multiprocessing.errors`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["record"]
F = TypeVar("F", bound=Callable[..., Any])


def record(fn: F, error_handler: Any = None) -> F:
    """`fn` as it is: what it raises ends the process, whose launcher shows the traceback."""
    return fn
