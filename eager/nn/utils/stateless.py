"""The older name of `torch.func.functional_call`. As `torch.nn.utils.stateless`."""

from __future__ import annotations

import warnings
from typing import Any

from eager.func.modules import functional_call as call

__all__ = ["functional_call"]

DEPRECATED = (
    "`torch.nn.utils.stateless.functional_call` is deprecated as of PyTorch 2.0 and will be removed in a future "
    "version of PyTorch. Please use `torch.func.functional_call` instead which is a drop-in replacement."
)


def functional_call(
    module: Any, parameters_and_buffers: dict[str, Any], args: Any = None, kwargs: dict[str, Any] | None = None, *,
    tie_weights: bool = True, strict: bool = False,
) -> Any:  # fmt: skip
    """`torch.func.functional_call`; warns."""
    warnings.warn(DEPRECATED, FutureWarning, stacklevel=2)
    return call(module, parameters_and_buffers, args, kwargs, tie_weights=tie_weights, strict=strict)
