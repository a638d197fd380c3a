"""Module, and hooks on all modules. As `torch.nn.modules.module`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eager.nn.calling import EveryModule
from eager.nn.hooks import RemovableHandle
from eager.nn.module import Module
from eager.nn.saving import IncompatibleKeys as _IncompatibleKeys  # noqa: F401  (a name that Lightning takes)

__all__ = [
    "Module", "register_module_buffer_registration_hook", "register_module_forward_hook",
    "register_module_forward_pre_hook", "register_module_full_backward_hook", "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook", "register_module_parameter_registration_hook",
]  # fmt: skip


def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, args)` before every module's `forward`."""
    return EveryModule.pre.register(hook)


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call `hook(module, args, output)` after every module's `forward`."""
    return EveryModule.after.register(hook, False, with_kwargs, always_call)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, grad_input, grad_output)` in every module's backward."""
    return EveryModule.backward.register(hook)


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, grad_output)` before every module's backward."""
    return EveryModule.before_backward.register(hook)


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, name, parameter)` when a module gets a parameter; what it returns takes its place."""
    return EveryModule.registered["_parameters"].register(hook)


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, name, buffer)` when a module gets a buffer; what it returns takes its place."""
    return EveryModule.registered["_buffers"].register(hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, name, submodule)` when a module gets a submodule; what it returns takes its place."""
    return EveryModule.registered["_modules"].register(hook)
