"""Which line of the user's program is running."""

from __future__ import annotations

import os
import sys
import weakref
from itertools import islice
from pathlib import Path
from types import CodeType, FrameType
from typing import final

_ROOT = Path(__file__).resolve().parents[2]
_INTERNAL = tuple(f"{_ROOT / package}{os.sep}" for package in ("eager", "graphc"))
_shown: dict[str, str | None] = {}  # file name -> how to show it, None for our own


def _show(path: str) -> str | None:
    if path.startswith("<generated") or os.path.abspath(path).startswith(_INTERNAL):
        return None
    if path.startswith("<"):
        return path
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative


def shown_file(code: CodeType) -> str | None:
    """The file of `code`, relative to the working directory if it is inside; None for eager's and graphc's own code."""
    path = code.co_filename
    try:
        return _shown[path]
    except KeyError:
        shown = _shown[path] = _show(path)
        return shown


def user_frame(skip: tuple[str, ...] = ()) -> FrameType | None:
    """The innermost frame outside eager and graphc, and not in a file whose name begins with one of `skip`."""
    frame = sys._getframe(1)
    while frame is not None and (shown_file(frame.f_code) is None or frame.f_code.co_filename.startswith(skip)):
        frame = frame.f_back
    return frame


def user_line() -> str:
    """The line of that frame, as "model.py:12"."""
    frame = user_frame()
    return "" if frame is None else line_of(frame.f_code, frame.f_lasti)


def line_of(code: CodeType, place: int) -> str:
    """The line of the instruction of `code` that stands at `place`."""
    known = _lines.get(id(code))
    if known is None or known.of() is not code:
        known = _lines[id(code)] = _Lines(code)
    return known.at[place // 2]


@final
class _Lines:
    """The lines of the instructions of a code object: to ask a frame for its line takes a walk over all before it."""

    def __init__(self, code: CodeType):
        key = id(code)
        self.of = weakref.ref(code, lambda _: _lines.pop(key, None))
        self.at: list[str] = []
        file, line = shown_file(code), code.co_firstlineno
        for start, end, found in code.co_lines():
            line = line if found is None else found
            self.at += [f"{file}:{line}"] * ((end - start) // 2)


_lines: dict[int, _Lines] = {}  # by the id of the code: to compare it takes a walk, too


def span_of(frame: FrameType) -> tuple[int, int, int, int] | None:
    """Where the expression that a frame is evaluating stands: line, last line, column, end; None if that is unknown."""
    found = next(islice(frame.f_code.co_positions(), frame.f_lasti // 2, None), (None,))
    return None if None in found else found  # type: ignore[return-value]
