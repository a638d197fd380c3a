"""Which line of the user's program is running."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import CodeType

_ROOT = Path(__file__).resolve().parents[2]
_INTERNAL = tuple(f"{_ROOT / package}{os.sep}" for package in ("eager", "graphc"))
_is_user: dict[CodeType, str | None] = {}  # the file name to show for user code, None for ours


def _shown(code: CodeType) -> str | None:
    path = code.co_filename
    if path.startswith("<generated") or os.path.abspath(path).startswith(_INTERNAL):
        return None
    if path.startswith("<"):
        return path
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative


def is_user_code(code: CodeType) -> bool:
    """Whether `code` is neither eager's nor graphc's."""
    try:
        return _is_user[code] is not None
    except KeyError:
        shown = _is_user[code] = _shown(code)
        return shown is not None


def user_line() -> str:
    """The innermost frame outside eager and graphc, as "model.py:12"; relative to the working directory if inside."""
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        try:
            shown = _is_user[code]
        except KeyError:
            shown = _is_user[code] = _shown(code)
        if shown is not None:
            return f"{shown}:{frame.f_lineno}"
        frame = frame.f_back
    return ""
