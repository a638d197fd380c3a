"""Which kernel computes attention. As `torch.nn.attention`: here there is one, and the choice changes nothing."""

from __future__ import annotations

import enum
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any

from graphc.lazy import lazy
from graphc.scoped import variable

__all__ = ["SDPBackend", "sdpa_kernel"]


class SDPBackend(enum.Enum):
    """PyTorch's kernels of `scaled_dot_product_attention`."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


_allowed: ContextVar[tuple[SDPBackend, ...]] = ContextVar("allowed", default=tuple(SDPBackend)[1:])


def sdpa_kernel(backends: Any, set_priority: bool = False) -> AbstractContextManager[None]:
    """A context in which only these kernels would be used, one or a list. AssertionError for anything else."""
    chosen = [backends] if isinstance(backends, SDPBackend) else backends
    if not isinstance(chosen, list) or not all(isinstance(each, SDPBackend) for each in chosen):
        raise AssertionError("Backend must be an instance of SDPBackend or a list of SDPBackend instances")
    return variable(_allowed, tuple(chosen))


__getattr__, __dir__ = lazy(__name__, {}, ("flex_attention",))
