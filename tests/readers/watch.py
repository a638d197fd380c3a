"""What reading a file may not do: run code, open files, load modules, or work out of proportion to the file."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# what the interpreter reports when code runs, files open or modules load (sys.audit)
REPORTED = (
    "exec",
    "import",
    "open",
    "os.system",
    "os.exec",
    "os.remove",
    "subprocess.Popen",
    "socket",
    "pickle",
    "marshal",
    "ctypes",
)
MEMORY = 2**30  # bytes that `limit_memory` leaves
_watched: list[tuple[list[str], str]] = []
_installed: list[bool] = []


def _hear(event: str, arguments: tuple[object, ...]) -> None:
    # for a syntax error the interpreter looks for the line in a file of the text's name
    if _watched and event.startswith(REPORTED) and arguments != ("<graph>", "rb", 0):
        seen, allowed = _watched[-1]
        if not (allowed and event == "open" and str(arguments[0]).startswith(allowed)):
            seen.append(f"{event} {arguments}")


@contextmanager
def nothing_runs(allowed: str = "") -> Iterator[None]:
    """Raises AssertionError if code ran, a module was loaded or a file opened inside, but for files below `allowed`."""
    if not _installed:
        sys.addaudithook(_hear)
        _installed.append(True)
    seen: list[str] = []
    _watched.append((seen, allowed))
    try:
        yield
    finally:
        _watched.pop()
    assert not seen, seen


class TooMuchWork(BaseException):
    """More calls were made than the limit says."""


@contextmanager
def at_most(calls: int) -> Iterator[None]:
    """Raises TooMuchWork when functions have been called `calls` times inside."""
    left = calls

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            sys.setprofile(None)
            raise TooMuchWork(f"more than {calls:,} calls")

    sys.setprofile(count)
    try:
        yield
    finally:
        sys.setprofile(None)


def limit_memory() -> None:
    """Let this process have `MEMORY` more than it has, on systems that tell and limit it."""
    used = Path("/proc/self/statm")
    if used.exists():
        import resource

        most = int(used.read_text().split()[0]) * resource.getpagesize() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
