"""A line for the user where a compilation takes long."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from typing import final

PATIENCE = 1.0  # seconds, after which a line says what is going on
_running = threading.local()


@final
class Announced:
    """Context: after a second stderr shows that `what` is being compiled, and at the end how long it took."""

    def __init__(self, what: str):
        self._what = what

    def __enter__(self) -> Announced:
        self._start = time.perf_counter()
        self._shown = False
        self._timer = threading.Timer(PATIENCE, self._show)
        self._timer.daemon = True
        if not getattr(_running, "unannounced", False):
            self._timer.start()
        return self

    def _show(self) -> None:
        self._shown = True
        print(f"graphc: compiling {self._what} ...", file=sys.stderr, end="", flush=True)

    def __exit__(self, *error: object) -> None:
        self._timer.cancel()
        if self._shown:
            print(f" {time.perf_counter() - self._start:.1f} s", file=sys.stderr, flush=True)


@contextlib.contextmanager
def unannounced() -> Iterator[None]:
    """Context: stderr shows nothing of compilations in this thread."""
    before = getattr(_running, "unannounced", False)
    _running.unannounced = True
    try:
        yield
    finally:
        _running.unannounced = before
