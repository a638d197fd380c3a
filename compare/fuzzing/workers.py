"""Processes that do one call after the other, each within limits of time and memory, and may end at any moment."""

from __future__ import annotations

import contextlib
import importlib
import math
import multiprocessing
import os
import signal
import subprocess
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, NamedTuple, final

HANG, MEMORY, PROCESS = "hang", "memory", "process"
POLL = 0.05  # seconds between two looks at what a process uses
IDLE = 10.0  # times the limit: as long a process may take by the clock, in which it waits, or others run
MIB = 1 << 20
READY = "ready"


class Limits(NamedTuple):
    """What one call may use.

    seconds  of processor time, in all threads: how busy the machine is makes no difference
    memory   bytes that the process has resident
    """

    seconds: float = 600.0
    memory: float = 4096.0 * MIB


class Ended(Exception):
    """A process has ended, or was ended, without a result. `kind`: HANG, MEMORY or PROCESS."""

    def __init__(self, kind: str, detail: str):
        super().__init__(detail)
        self.kind = kind


class Usage(NamedTuple):
    """What a process has used so far: processor seconds, and bytes that are resident now."""

    seconds: float
    memory: float


def usage(pid: int) -> Usage | None:
    """What the process uses; None if it is gone, or nobody can tell."""
    stat = Path(f"/proc/{pid}/stat")
    try:
        if stat.exists():
            fields = stat.read_text().rpartition(")")[2].split()
            ticks, pages = int(fields[11]) + int(fields[12]), int(fields[21])
            return Usage(ticks / os.sysconf("SC_CLK_TCK"), pages * os.sysconf("SC_PAGE_SIZE"))
        command = ["ps", "-o", "time=,rss=", "-p", str(pid)]
        shown, rss = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    except (OSError, ValueError, IndexError, subprocess.CalledProcessError):
        return None
    parts = reversed(shown.replace("-", ":").split(":"))  # [[days-]hours:]minutes:seconds
    return Usage(sum(float(p) * unit for p, unit in zip(parts, (1, 60, 3600, 86400), strict=False)), int(rss) * 1024.0)


@final
class Worker:
    """A process of its own, started anew after it has ended. Calls are functions of modules on plain values.

    preload  a module that the process imports before its first call, whose limits that is no part of
    """

    def __init__(self, limits: Limits, preload: str = ""):
        self._limits = limits
        self._preload = preload
        self._process: Any = None
        self._connection: Connection | None = None
        self._began, self._before = 0.0, 0.0
        self._late: Ended | None = None

    def begin(self, fn: Callable[..., Any], *args: Any) -> None:
        """Have the process call `fn(*args)`."""
        if self._process is None:
            context = multiprocessing.get_context("spawn")
            self._connection, theirs = context.Pipe()
            self._process = context.Process(target=_serve, args=(theirs, self._preload), daemon=True)
            self._process.start()
            theirs.close()
            with contextlib.suppress(EOFError):  # it has ended already: `result` says so
                self._connection.recv()  # READY: what it imports is no call's work
        used = usage(self._process.pid)
        self._began, self._before = time.monotonic(), used.seconds if used is not None else 0.0
        with contextlib.suppress(OSError):  # it has ended already, likewise
            self.connection.send((fn, args))

    @property
    def connection(self) -> Connection:
        """What is ready to be read once there is a result, or an end."""
        assert self._connection is not None
        return self._connection

    def done(self) -> bool:
        """Whether there is something to be had from `result`. Looks at the limits, too."""
        if self.connection.poll():
            return True  # or it has ended
        self._late = self._overdue()
        return self._late is not None

    def _overdue(self) -> Ended | None:
        used, limits = usage(self._process.pid), self._limits
        waited = time.monotonic() - self._began
        if used is not None and used.memory > limits.memory:
            return Ended(MEMORY, f"{used.memory / MIB:,.0f} MiB, the limit is {limits.memory / MIB:,.0f}")
        if used is not None and used.seconds - self._before > limits.seconds:
            return Ended(HANG, f"still running after {limits.seconds:,.0f} s of processor time")
        if waited > IDLE * limits.seconds:
            return Ended(HANG, f"still waiting after {waited:,.0f} s")
        return None

    def result(self) -> Any:
        """The result, once it is `done`. Raises Ended; what the function has raised, as a RuntimeError."""
        if (late := self._late) is not None:
            self.end()
            raise late
        try:
            fine, value = self.connection.recv()
        except (EOFError, OSError):
            self._process.join()
            code = self._process.exitcode
            self.end()
            raise Ended(
                PROCESS, f"the process ended: the compiler crashed, or memory ran out ({_said(code)})"
            ) from None
        if not fine:
            raise RuntimeError(value)
        return value

    def call(self, fn: Callable[..., Any], *args: Any) -> Any:
        """`fn(*args)`. Raises Ended, when the process has been ended."""
        self.begin(fn, *args)
        while not self.done():
            wait([self.connection], POLL)
        return self.result()

    def end(self) -> None:
        """End the process, whatever it is doing."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self.connection.close()
            self._process = self._connection = self._late = None


def _said(code: int | None) -> str:
    if code is None or code >= 0:
        return f"exit code {code}"
    return signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"


def _serve(connection: Connection, preload: str) -> None:
    """What the process does."""
    if preload:
        importlib.import_module(preload)
    connection.send(READY)
    while True:
        try:
            fn, args = connection.recv()
        except EOFError:
            return
        try:
            answer = True, fn(*args)
        except Exception as error:  # whatever it is belongs to the caller
            answer = False, "".join(traceback.format_exception(error))
        connection.send(answer)


def checked_limits(time_limit: float, memory_limit: float) -> Limits:
    """Limits from seconds and MiB. Raises ValueError."""
    for name, value in (("time_limit", time_limit), ("memory_limit", memory_limit)):
        if not value > 0 or math.isnan(value):
            raise ValueError(f"fuzz() needs a {name} above 0, got {value}")
    return Limits(time_limit, memory_limit * MIB)
