"""Names of `torch.optim.optimizer` that optimizers of libraries import."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

from eager.core.grad_mode import set_grad_enabled
from eager.core.tensor import Tensor

F = TypeVar("F", bound=Callable[..., Any])


class _RequiredParameter:
    """A setting that each group of parameters must give."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _RequiredParameter()


def _use_grad_for_differentiable(func: F) -> F:
    """A method `step` that records gradients if the optimizer's setting "differentiable" is true, and else none."""

    @functools.wraps(func)
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        with set_grad_enabled(self.defaults["differentiable"]):
            return func(self, *args, **kwargs)

    return step  # type: ignore[return-value]


def _default_to_fused_or_foreach(
    params: list[Tensor], differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """(False, False): neither is faster than the loop here."""
    return False, False


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """The kinds of devices on which a step can be captured. PyTorch's list."""
    return ["cuda", "xpu", "hpu", "privateuseone", *(["xla"] if supports_xla else [])]


def _get_value(x: Any) -> Any:
    """The number of a tensor; a number itself."""
    return x.item() if isinstance(x, Tensor) else x
