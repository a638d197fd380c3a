"""Warnings that PyTorch gives once in a process."""

from __future__ import annotations

import warnings

always = [False]  # whether they are given each time: `torch.set_warn_always`
_given: set[str] = set()


def warn_once(text: str, depth: int = 1) -> None:
    """Give a UserWarning, which names the line that has called the caller, or `depth` - 1 calls above it.

    Nothing happens the second time.
    """
    if text not in _given or always[0]:
        _given.add(text)
        warnings.warn(text, UserWarning, stacklevel=2 + depth)
