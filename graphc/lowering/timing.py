"""How long JAX and XLA take over a program, and a line for the user where that is long."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any, final

import jax.monitoring

PATIENCE = 1.0  # seconds, after which a line says what is going on
_STAGES = {
    "/jax/core/compile/jaxpr_trace_duration": "jax trace",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "lower",
    "/jax/core/compile/backend_compile_duration": "xla",
}
_running = threading.local()


@final
class Stopwatch:
    """Context: `seconds` is what each stage of JAX took in this thread. After a second stderr shows `what`."""

    def __init__(self, what: str):
        self.seconds: dict[str, float] = {}
        self._what = what

    def __enter__(self) -> Stopwatch:
        self._outer = getattr(_running, "watch", None)
        _running.watch = self
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
        _running.watch = self._outer
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


def _hear(event: str, duration_secs: float, **about: Any) -> None:
    watch = getattr(_running, "watch", None)
    stage = _STAGES.get(event)
    if watch is not None and stage is not None:
        watch.seconds[stage] = watch.seconds.get(stage, 0.0) + duration_secs


jax.monitoring.register_event_duration_secs_listener(_hear)
