"""How a process says what it has failed with. As `torch.distributed.elastic.multiprocessing.errors`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["record"]
F = TypeVar("F", bound=Callable[..., Any])


def record(fn: F, error_handler: Any = None) -> F:
    """`fn`: what it raises ends the process, whose launcher shows the traceback, with or without this."""

    @functools.wraps(fn)
    def run(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    return run  # type: ignore[return-value]
