"""`torch.ops`, with PyTorch's own functions in the namespace `aten`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eager.autograd.custom_ops import offer, ops
from eager.core.tensor import Tensor
from eager.nn import functional
from eager.surface.public import named

__all__ = ["ops"]


def _built_in(name: str) -> Callable[..., Any]:
    """The function, method or function of layers of this name. LookupError if there is none."""
    try:
        return named(name)
    except LookupError:
        found = getattr(Tensor, name, None) or getattr(functional, name, None)
        if not callable(found):
            raise
        return found


offer(_built_in)
