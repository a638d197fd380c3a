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

from graphc import forking

Fn = TypeVar("Fn", bound=Callable[..., Any])

_lock = forking.renewed(threading.Lock())
_pausing: list[int] = []  # the thread of each such call
_was_enabled = False


def without_collector(fn: Fn) -> Fn:
    """`fn` with the collector paused; it resumes, if it was on, when the last such call in any thread has returned."""

    @functools.wraps(fn)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        thread = threading.get_ident()
        _pause(thread)
        try:
            return fn(*args, **kwargs)
        finally:
            _resume(thread)

    return wrapped  # type: ignore[return-value]


def _pause(thread: int) -> None:
    global _was_enabled
    with _lock:
        if not _pausing:
            _was_enabled = gc.isenabled()
            gc.disable()
        _pausing.append(thread)


def _resume(*threads: int) -> None:
    with _lock:
        for thread in threads:
            _pausing.remove(thread)
        if threads and not _pausing and _was_enabled:
            gc.enable()


# the other threads are not in a child
forking.in_child(lambda: _resume(*(thread for thread in _pausing if thread != threading.get_ident())))
