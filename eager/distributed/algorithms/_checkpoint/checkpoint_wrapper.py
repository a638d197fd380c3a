"""Modules of which backward computes again what it needs. As PyTorch's `checkpoint_wrapper`."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from functools import partial
from typing import Any

from eager.autograd.graph import save_on_cpu
from eager.distributed.fsdp.wrap import CustomPolicy, wrapped
from eager.distributed.transparent import Transparent
from eager.nn import Module
from eager.utils.checkpoint import checkpoint

__all__ = [
    "ActivationWrapper", "CheckpointImpl", "CheckpointWrapper", "OffloadWrapper", "apply_activation_checkpointing",
    "checkpoint_wrapper", "offload_wrapper",
]  # fmt: skip


class CheckpointImpl(Enum):
    """How it is done; see `torch.utils.checkpoint.checkpoint`."""

    REENTRANT = auto()
    NO_REENTRANT = auto()


class ActivationWrapper(Transparent):
    """A module around another, which decides what is kept for backward."""

    INSIDE = "_checkpoint_wrapped_module"


class OffloadWrapper(ActivationWrapper):
    """What is kept lies in the memory of the host."""

    def forward(self, *inputs: Any, **keywords: Any) -> Any:
        """What the module computes."""
        with save_on_cpu(pin_memory=True):
            return super().forward(*inputs, **keywords)


class CheckpointWrapper(ActivationWrapper):
    """Only the arguments are kept.

    checkpoint_fn: f(module, *args, **kwargs) in place of `torch.utils.checkpoint.checkpoint`, with its own settings
    """

    def __init__(
        self, mod: Module, checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
        checkpoint_fn: Callable[..., Any] | None = None, **checkpoint_fn_kwargs: Any,
    ):  # fmt: skip
        super().__init__(mod)
        self.checkpoint_impl = checkpoint_impl
        settings = checkpoint_fn_kwargs
        if checkpoint_fn is None:
            checkpoint_fn, settings = (
                checkpoint,
                {"use_reentrant": checkpoint_impl is CheckpointImpl.REENTRANT, **settings},
            )
        self.checkpoint_fn = partial(checkpoint_fn, **settings)

    def forward(self, *inputs: Any, **keywords: Any) -> Any:
        """What the module computes."""
        return self.checkpoint_fn(self._inside, *inputs, **keywords)


def checkpoint_wrapper(
    module: Module, checkpoint_impl: CheckpointImpl = CheckpointImpl.NO_REENTRANT,
    checkpoint_fn: Callable[..., Any] | None = None, **checkpoint_fn_kwargs: Any,
) -> CheckpointWrapper:  # fmt: skip
    """`module`, of which only the arguments are kept for backward; see `CheckpointWrapper`."""
    return CheckpointWrapper(module, checkpoint_impl, checkpoint_fn, **checkpoint_fn_kwargs)


def offload_wrapper(module: Module) -> OffloadWrapper:
    """`module`, of which what backward needs lies in the memory of the host."""
    return OffloadWrapper(module)


def apply_activation_checkpointing(
    model: Module, checkpoint_wrapper_fn: Callable[..., Module] = checkpoint_wrapper,
    check_fn: Callable[[Module], bool] = lambda _: True, auto_wrap_policy: Any = None,
) -> None:  # fmt: skip
    """Put `checkpoint_wrapper_fn` around the modules inside `model` that `check_fn`, or a policy of FSDP, chooses."""
    wrapped(model, auto_wrap_policy or CustomPolicy(check_fn), checkpoint_wrapper_fn, {})
