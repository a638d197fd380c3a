"""The library that became `torch.func`, which programs from before import as `functorch`."""

from __future__ import annotations

import copy
import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from eager import func
from eager.core.tensor import Tensor
from eager.nn.module import Module

DEPRECATED = (
    "We've integrated functorch into PyTorch. As the final step of the integration, `functorch.{}` is deprecated as of "
    "PyTorch 2.0 and will be deleted in a future version of PyTorch >= 2.3. Please use `torch.func.{}` instead; see "
    "the PyTorch 2.0 release notes and/or the `torch.func` migration guide for more details "
    "https://pytorch.org/docs/main/func.migrating.html"
)
SAME = ("functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "vjp", "vmap")


def _warned(name: str, instead: str) -> None:
    warnings.warn(DEPRECATED.format(name, instead), FutureWarning, stacklevel=3)


def _moved(name: str) -> Callable[..., Any]:
    function = getattr(func, name)

    @functools.wraps(function)
    def moved(*args: Any, **kwargs: Any) -> Any:
        _warned(name, name)
        return function(*args, **kwargs)

    return moved


globals().update({name: _moved(name) for name in SAME})


class _Stateless:
    """A module as a function of its parameters, and its buffers."""

    def __init__(self, model: Module, buffers: bool):
        self.stateless_model = copy.deepcopy(model).to("meta")
        self._names = [name for name, _ in model.named_parameters()]
        self._buffers = [name for name, _ in model.named_buffers()] if buffers else []
        self._kept = {} if buffers else {name: b.clone() for name, b in model.named_buffers()}
        self._with_buffers = buffers

    def __call__(self, params: Sequence[Tensor], *args: Any, **kwargs: Any) -> Any:
        values = dict(zip(self._names, params, strict=True)) | self._kept
        if self._with_buffers:
            values |= zip(self._buffers, args[0], strict=True)
            args = args[1:]
        return func.functional_call(self.stateless_model, values, args, kwargs)


def _parameters(model: Module, untracked: bool) -> tuple[Tensor, ...]:
    return tuple(p.detach() if untracked else p.detach().clone().requires_grad_() for p in model.parameters())


def make_functional(model: Module, disable_autograd_tracking: bool = False) -> tuple[Callable[..., Any], Any]:
    """A function `f(params, *args)` of a module, and its parameters. As `functorch.make_functional`."""
    _warned("make_functional", "functional_call")
    return _Stateless(model, False), _parameters(model, disable_autograd_tracking)


def make_functional_with_buffers(
    model: Module, disable_autograd_tracking: bool = False
) -> tuple[Callable[..., Any], Any, Any]:
    """A function `f(params, buffers, *args)` of a module, its parameters, and its buffers."""
    _warned("make_functional_with_buffers", "functional_call")
    buffers = tuple(buffer.detach() for buffer in model.buffers())
    return _Stateless(model, True), _parameters(model, disable_autograd_tracking), buffers


def combine_state_for_ensemble(models: Sequence[Module]) -> tuple[Callable[..., Any], Any, Any]:
    """The function of modules that are alike, as of `make_functional_with_buffers`, and what they have, stacked.

    RuntimeError unless there are some, of one class and all in training or in evaluation.
    """
    _warned("combine_state_for_ensemble", "stack_module_state")
    params, buffers = func.stack_module_state(list(models))
    return _Stateless(models[0], True), tuple(params.values()), tuple(buffers.values())
