"""Collectives that gradients flow through. As `torch.distributed.nn`."""

from eager.distributed.nn import functional
from eager.distributed.nn.functional import *  # noqa: F403
from eager.distributed.nn.functional import __all__ as _functions

__all__ = ["functional", *_functions]  # pyright: ignore[reportUnsupportedDunderAll]
