"""Pausing the garbage collector while graphs are built.

Nodes refer to operands by number, so graphs have no reference cycles; but the collector, triggered by the number of new
objects, would walk them all again and again: a third of the time at 10,000 nodes.
"""

from __future__ import annotations

import functools
import gc
import threading
from collections.abc import Callable
from typing import Any, TypeVar

Fn = TypeVar("Fn", bound=Callable[..., Any])

_lock = threading.Lock()
_depth = 0
_was_enabled = False


def without_collector(fn: Fn) -> Fn:
    """`fn` with the collector paused; it resumes, if it was on, when the last such call in any thread has returned."""

    @functools.wraps(fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        _shift(+1)
        try:
            return fn(*args, **kwargs)
        finally:
            _shift(-1)

    return wrapped  # type: ignore[return-value]


def _shift(by: int) -> None:
    global _depth, _was_enabled
    with _lock:
        if _depth == 0:
            _was_enabled = gc.isenabled()
            gc.disable()
        _depth += by
        if _depth == 0 and _was_enabled:
            gc.enable()
