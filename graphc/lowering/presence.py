"""Where each process is, for the message that one of them did not come.

A thread of each process writes what it waits for, or else the line that its main thread is at, to the store that all
can read, some times in the time that a collective may take.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from typing import Any, final

_KEY = "graphc/presence/{rank}"
_ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), os.pardir, os.pardir))
_NOT_THE_USERS = (  # how the names of files begin whose lines say nothing
    "<", *(os.path.join(_ROOT, package, "") for package in ("graphc", "eager")), os.path.dirname(os.__file__) + os.sep
)  # fmt: skip
TIMED_OUT = "Timed out after {seconds:.1f} s: rank {rank} waits in {label}"
WAITS = "rank {rank} waits in {label} too"
ELSEWHERE = "rank {rank} waits in another collective, {label}"
AWAY = "rank {rank} has not come: it is at {where}"
SILENT = "rank {rank} has not come: nothing was heard of it for {seconds:.1f} s"
NEVER_HEARD = "rank {rank} has not come: nothing was heard of it"
NO_STORE = "nothing is known of the others: the store, in rank 0, does not answer"
_PATIENCE = 2.0  # seconds that the store has to answer


@final
class Presence:
    """What this process waits for, and what the others do."""

    def __init__(self, processes: Any, timeout: float):
        self._processes = processes
        self._interval = min(max(timeout / 8, 0.1), 5.0)
        self._waiting: tuple[str, float] | None = None
        self._main = threading.main_thread().ident
        self._ended = threading.Event()
        threading.Thread(target=self._report, name="graphc presence", daemon=True).start()

    def enter(self, label: str) -> None:
        """This process begins to wait for others."""
        self._waiting = label, time.monotonic()

    def leave(self) -> None:
        """It does no more."""
        self._waiting = None

    def stop(self) -> None:
        """Write nothing more."""
        self._ended.set()

    def _report(self) -> None:
        key = _KEY.format(rank=self._processes.rank)
        while not self._ended.wait(self._interval):
            waiting = self._waiting
            state = {"label": waiting and waiting[0], "where": self._where(), "time": time.time()}
            try:
                self._processes.put(key, json.dumps(state).encode())
            except Exception:  # the others have ended, or JAX has: there is nobody to tell
                return

    def _where(self) -> str:
        """The innermost line of the main thread that is the user's."""
        frame: Any = sys._current_frames().get(self._main or 0)
        found = "an unknown line"
        while frame is not None:
            name = frame.f_code.co_filename
            if not name.startswith(_NOT_THE_USERS):
                return f"{name}:{frame.f_lineno} in {frame.f_code.co_name}"
            frame = frame.f_back
        return found

    def report(self, label: str, seconds: float) -> str:
        """The message that a collective did not end in time."""
        others = [rank for rank in range(self._processes.size) if rank != self._processes.rank]
        found: list[str] = []
        asking = threading.Thread(target=lambda: found.extend(self._of(rank, label) for rank in others), daemon=True)
        asking.start()
        asking.join(_PATIENCE)
        first = TIMED_OUT.format(seconds=seconds, rank=self._processes.rank, label=label)
        return "\n  ".join([first, *(found or [NO_STORE])])

    def _of(self, rank: int, label: str) -> str:
        found = self._processes.try_get(_KEY.format(rank=rank))
        if found is None:
            return NEVER_HEARD.format(rank=rank)
        state = json.loads(found)
        silence = time.time() - state["time"]
        if silence > 3 * self._interval + 1:
            return SILENT.format(rank=rank, seconds=silence)
        if state["label"] is None:
            return AWAY.format(rank=rank, where=state["where"])
        return (WAITS if state["label"] == label else ELSEWHERE).format(rank=rank, label=state["label"])
