"""Warnings that PyTorch gives, which name the line of the user; some once in a process."""

from __future__ import annotations

import sys
import warnings

always = [False]  # whether they are given each time: `torch.set_warn_always`
_given: set[str] = set()
_PACKAGES = ("eager", "graphc", "compare")


def warn(text: str, kind: type[Warning] = UserWarning) -> None:
    """Give a warning, which names the line outside these packages that led to it."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and str(frame.f_globals.get("__name__", "")).partition(".")[0] in _PACKAGES:
        level, frame = level + 1, frame.f_back
    warnings.warn(text, kind, stacklevel=level)


def warn_once(text: str, kind: str = "") -> None:
    """Give a UserWarning, as `warn`. Nothing happens the second time for the same text, or for a kind of texts."""
    if (kind or text) not in _given or always[0]:
        _given.add(kind or text)
        warn(text)
