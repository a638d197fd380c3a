"""Calling a module, with hooks before and after it, forward and backward."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, ClassVar

from eager.core import state
from eager.core.interpreter import current_interpreter
from eager.core.tensor import Tensor
from eager.nn.hooks import Hook, HookTable, RemovableHandle, calls, hooks_of, marked

NO_INPUT = (
    "Full backward hook is firing when gradients are computed with respect to module outputs since no inputs require "
    "gradients. See https://docs.pytorch.org/docs/main/generated/torch.nn.Module.html"
    "#torch.nn.Module.register_full_backward_hook for more details."
)


class EveryModule:
    """Hooks on all modules, by kind."""

    pre, after, backward, before_backward = HookTable(), HookTable(), HookTable(), HookTable()
    registered: ClassVar = {table: HookTable() for table in ("_parameters", "_buffers", "_modules")}


def _as_tuple(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


class Called:
    """The part of Module that runs `forward`. Hooks are kept in calling order."""

    _forward_pre_hooks = HookTable()
    _forward_hooks = HookTable()
    _backward_hooks = HookTable()
    _backward_pre_hooks = HookTable()
    _is_full_backward_hook: bool | None = None
    forward: Any

    @property
    def _forward_hooks_with_kwargs(self) -> dict[int, bool]:
        return marked(self._forward_hooks, "with_kwargs")

    @property
    def _forward_pre_hooks_with_kwargs(self) -> dict[int, bool]:
        return marked(self._forward_pre_hooks, "with_kwargs")

    @property
    def _forward_hooks_always_called(self) -> dict[int, bool]:
        return marked(self._forward_hooks, "always_call")

    def __call__(self, *inputs: Any, **keywords: Any) -> Any:
        if state.closed:
            with current_interpreter().inside(self):
                return self._call_with_hooks(inputs, keywords)
        if (
            self._forward_hooks or self._forward_pre_hooks or self._backward_hooks or self._backward_pre_hooks
            or EveryModule.pre or EveryModule.after or EveryModule.backward or EveryModule.before_backward
        ):  # fmt: skip
            return self._call_with_hooks(inputs, keywords)
        return self.forward(*inputs, **keywords)

    def _call_with_hooks(self, inputs: Any, keywords: dict[str, Any]) -> Any:
        for hook in calls(EveryModule.pre, self._forward_pre_hooks):
            if hook.with_kwargs:
                changed = hook.function(self, inputs, keywords)
                if changed is not None:
                    if not (isinstance(changed, tuple) and len(changed) == 2):
                        raise RuntimeError(
                            f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got "
                            f"{changed}."
                        )
                    inputs, keywords = changed
            else:
                changed = hook.function(self, inputs)
                if changed is not None:
                    inputs = changed if isinstance(changed, tuple) else (changed,)
        watch = self._watch_backward()
        if watch is not None:
            inputs = watch.enter(inputs)
        pending = calls(EveryModule.after, self._forward_hooks)
        try:
            result = self.forward(*inputs, **keywords)
            while pending:
                result = self._after(pending.pop(0), inputs, keywords, result)
        except BaseException:
            for hook in pending:
                if hook.always_call:
                    self._after(hook, inputs, keywords, None)
            raise
        return result if watch is None else watch.leave(result)

    def _after(self, hook: Hook, inputs: Any, keywords: dict[str, Any], result: Any) -> Any:
        extra = (keywords,) if hook.with_kwargs else ()
        changed = hook.function(self, inputs, *extra, result)
        return result if changed is None else changed

    def _watch_backward(self) -> BackwardWatch | None:
        before = [*EveryModule.before_backward.values(), *self._backward_pre_hooks.values()]
        after = [*EveryModule.backward.values(), *self._backward_hooks.values()]
        if not before and not after:
            return None
        return BackwardWatch(self, before, after)

    def register_forward_pre_hook(
        self, hook: Callable[[Any, tuple[Any, ...]], Any] | Callable[[Any, tuple[Any, ...], dict[str, Any]], Any], *,
        prepend: bool = False, with_kwargs: bool = False,
    ) -> RemovableHandle:  # fmt: skip
        """Call `hook(module, args)` before `forward`; what it returns, if not None, becomes the arguments."""
        return hooks_of(self, "_forward_pre_hooks").register(hook, prepend, with_kwargs)

    def register_forward_hook(
        self,
        hook: Callable[[Any, tuple[Any, ...], Any], Any] | Callable[[Any, tuple[Any, ...], dict[str, Any], Any], Any],
        *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False,
    ) -> RemovableHandle:  # fmt: skip
        """Call `hook(module, args, output)` after `forward`; what it returns, if not None, becomes the output."""
        return hooks_of(self, "_forward_hooks").register(hook, prepend, with_kwargs, always_call)

    def register_full_backward_hook(
        self, hook: Callable[[Any, Any, Any], Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` when the gradients of the inputs are known.

        What it returns, if not None, becomes the gradients of the inputs.
        """
        return hooks_of(self, "_backward_hooks").register(hook, prepend)

    def register_full_backward_pre_hook(
        self, hook: Callable[[Any, Any], Any], prepend: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, grad_output)` when the gradients of the outputs are known, and may be changed."""
        return hooks_of(self, "_backward_pre_hooks").register(hook, prepend)

    register_backward_hook = register_full_backward_hook


class BackwardWatch:
    """One call of a module with backward hooks: its inputs and outputs pass through an identity that is watched."""

    def __init__(self, module: Any, before: list[Callable[..., Any]], after: list[Callable[..., Any]]):
        self.module, self.before, self.after = module, before, after
        self.grad_outputs: tuple[Any, ...] | None = None
        self.watches_inputs = False
        self.inputs = 0

    def enter(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """The inputs, watched: the hooks run when their gradients arrive."""
        self.inputs = len(inputs)
        tensors = [x for x in inputs if isinstance(x, Tensor)]
        self.watches_inputs = any(t.requires_grad for t in tensors)
        if not self.watches_inputs:
            return inputs
        watched = iter(_identity()(self._finish, inputs, tensors))
        return tuple(next(watched) if isinstance(x, Tensor) else x for x in inputs)

    def leave(self, result: Any) -> Any:
        """The result, watched: the gradients of the outputs are noted when they arrive."""
        outputs = _as_tuple(result)
        tensors = [x for x in outputs if isinstance(x, Tensor)]
        if not any(t.requires_grad for t in tensors):
            return result
        watched = iter(_identity()(self._at_outputs, outputs, tensors))
        marked = tuple(next(watched) if isinstance(x, Tensor) else x for x in outputs)
        return marked if isinstance(result, tuple) else marked[0]

    def _at_outputs(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        for hook in self.before:
            changed = hook(self.module, grads)
            if changed is not None:
                grads = self._replaced(grads, changed, "grad_output")
        self.grad_outputs = grads
        if not self.watches_inputs:
            warnings.warn(NO_INPUT, UserWarning, stacklevel=5)
            self._finish((None,) * self.inputs)
        return grads

    def _finish(self, grads: tuple[Any, ...]) -> tuple[Any, ...]:
        for hook in self.after:
            changed = hook(self.module, grads, self.grad_outputs)
            if changed is not None:
                grads = self._replaced(grads, changed, "grad_input")
        self.grad_outputs = None
        return grads

    @staticmethod
    def _replaced(grads: tuple[Any, ...], changed: Any, what: str) -> tuple[Any, ...]:
        new = _as_tuple(changed)
        if len(new) != len(grads):
            raise RuntimeError(
                f"Backward hook returned an invalid number of {what}, got {len(new)}, but expected {len(grads)}"
            )
        return new


def _identity() -> Callable[..., tuple[Any, ...]]:
    """identity(report, values, tensors): the tensors among `values`, whose gradients `report` sees and may replace."""
    from eager.autograd import Function

    class BackwardHookFunction(Function):
        @staticmethod
        def forward(ctx: Any, report: Any, places: list[int], count: int, *tensors: Tensor) -> tuple[Tensor, ...]:
            ctx.report, ctx.places, ctx.count = report, places, count
            ctx.mark_non_differentiable(*(t for t in tensors if not t.requires_grad))
            return tuple(t.view_as(t) for t in tensors)  # type: ignore[attr-defined]

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> tuple[Any, ...]:
            spread: list[Any] = [None] * ctx.count
            for place, g in zip(ctx.places, grads, strict=True):
                spread[place] = g
            reported = ctx.report(tuple(spread))
            return None, None, None, *(reported[place] for place in ctx.places)

    def identity(report: Any, values: tuple[Any, ...], tensors: list[Tensor]) -> tuple[Any, ...]:
        places = [i for i, value in enumerate(values) if isinstance(value, Tensor)]
        return _as_tuple(BackwardHookFunction.apply(report, places, len(values), *tensors))

    return identity
