"""Classes and modes that say what functions do: `__torch_function__`. As `torch.overrides`.

`eager.core.overriding` has the protocol. Functions of plain tensors ask nobody until a class or a mode takes part.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any, Self

from eager.core import overriding
from eager.core.overriding import (
    HANDLER,
    NO_IMPLEMENTATION,
    Asking,
    DisableTorchFunctionSubclass,
    called,
    handled,
    is_unhandled,
    local,
    overloaded,
)  # fmt: skip
from eager.core.tensor import Tensor
from eager.surface import overriding as asking
from graphc.scoped import attribute

__all__ = [
    "BaseTorchFunctionMode", "DisableTorchFunctionSubclass", "TorchFunctionMode", "enable_reentrant_dispatch",
    "get_default_nowrap_functions", "get_ignored_functions", "get_overridable_functions", "handle_torch_function",
    "has_torch_function", "has_torch_function_unary", "has_torch_function_variadic", "is_tensor_like",
    "is_tensor_method_or_property", "resolve_name", "wrap_torch_function",
]  # fmt: skip


class TorchFunctionMode:
    """A block in which each call of a public function or method goes to `__torch_function__` of the innermost mode.

    A subclass defines `__torch_function__(self, func, types, args=(), kwargs=None)`; while it runs, the mode is not in
    force, and `func(*args, **kwargs)` does what it would have done without. As `torch.overrides.TorchFunctionMode`.
    """

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise NotImplementedError

    def __enter__(self) -> Self:
        if not local.modes:
            local.asked = asking.asked(every=True)
            local.asked.__enter__()
        local.modes.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        local.modes.pop()
        if not local.modes:
            local.asked.__exit__(None, None, None)

    @classmethod
    def push(cls, *args: Any, **kwargs: Any) -> Self:
        """`cls(*args, **kwargs)`, its older name."""
        return cls(*args, **kwargs)


class BaseTorchFunctionMode(TorchFunctionMode):
    """A mode that changes nothing."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func(*args, **(kwargs or {}))


def enable_reentrant_dispatch() -> Any:
    """A block, within a handler, in which classes are asked again."""
    return attribute(local, "classes", True)


def has_torch_function(relevant_args: Iterable[Any]) -> bool:
    """Whether one of the arguments is of a class with `__torch_function__` (Tensor and Parameter have none to call),
    or a mode is in force."""
    return bool(local.modes) or (local.classes and bool(overloaded(tuple(relevant_args))))


def has_torch_function_unary(relevant_arg: Any) -> bool:
    """`has_torch_function` of one argument."""
    return has_torch_function((relevant_arg,))


def has_torch_function_variadic(*relevant_args: Any) -> bool:
    """`has_torch_function` of several arguments."""
    return has_torch_function(relevant_args)


def handle_torch_function(public_api: Any, relevant_args: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
    """What the mode in force or the classes of `relevant_args` make of `public_api(*args, **kwargs)`.

    TypeError if all of them return NotImplemented.
    """
    found = overloaded(tuple(relevant_args))
    try:
        return called(public_api, public_api, args, kwargs) if local.modes else handled(public_api, found, args, kwargs)
    except TypeError as error:
        if not is_unhandled(error):
            raise
        name = f"{public_api.__module__}.{public_api.__name__}"
        raise TypeError(NO_IMPLEMENTATION.format(name, [type(value) for value in found])) from None


def wrap_torch_function(dispatcher: Callable[..., Iterable[Any]]) -> Callable[[Any], Any]:
    """A decorator for a function of one's own that is to be overridden, too.

    dispatcher: takes the arguments of the function, and gives those whose classes are asked.
    """

    def wrap(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def wrapped(*args: Any, **kwargs: Any) -> Any:
            relevant = tuple(dispatcher(*args, **kwargs))
            if has_torch_function(relevant):
                return handle_torch_function(wrapped, relevant, *args, **kwargs)
            return function(*args, **kwargs)

        return wrapped

    return wrap


def is_tensor_like(inp: Any) -> bool:
    """Whether it is a Tensor, or has `__torch_function__`."""
    return isinstance(inp, Tensor) or hasattr(inp, HANDLER)


def get_default_nowrap_functions() -> set[Any]:
    """Functions whose results the default handler does not make instances of the subclass."""
    with asking.asked():
        return set(overriding.unconverted)


def get_ignored_functions() -> set[Any]:
    """Public functions that ask no class."""
    import eager

    return {getattr(eager, name) for name in asking.SILENT}


def get_overridable_functions() -> dict[Any, list[Any]]:
    """Namespace -> the functions in it that ask the classes of their arguments."""
    with asking.asked():
        found: dict[Any, list[Any]] = {Tensor: [getattr(Tensor, name) for name in vars(Asking) if name[0] != "_"]}
        for namespace, names in asking.namespaces():
            every = (getattr(namespace, name) for name in sorted(names))
            found[namespace] = [value for value in every if isinstance(value, asking.Public)]
    return found


def resolve_name(f: Any) -> str | None:
    """The name of a function that can be overridden: "torch.add", "torch.Tensor.add", "torch.Tensor.shape.__get__"."""
    return asking.name_of(f)


def is_tensor_method_or_property(func: Any) -> bool:
    """Whether `func`, which a handler was given, is a method of Tensor or the `__get__` of a property."""
    return (asking.name_of(func) or "").startswith("torch.Tensor.")
