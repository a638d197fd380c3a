"""The decorator by which PyTorch says how stable a function of `torch.fx` is. As `torch.fx._compatibility`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["compatibility"]


def compatibility(is_backward_compatible: bool) -> Callable[[Any], Any]:
    """A decorator that changes nothing."""
    return lambda decorated: decorated
