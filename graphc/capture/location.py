"""Which line of the user's program is running."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import CodeType

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


def user_line() -> str:
    """The innermost frame outside eager and graphc, as "model.py:12"."""
    frame = sys._getframe(1)
    while frame is not None:
        shown = shown_file(frame.f_code)
        if shown is not None:
            return f"{shown}:{frame.f_lineno}"
        frame = frame.f_back
    return ""
