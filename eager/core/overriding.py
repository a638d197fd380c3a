"""`__torch_function__`: a class says what functions do with its instances. The protocol, not where it is asked.

Functions and methods of plain tensors are not touched until the first class that takes part is made: `Overrides`
gives such a class the methods that ask, and `on_first_class` is called once, to put the asking ones in the place of
the public functions.

The protocol is NumPy's (NEP 18) with PyTorch's changes: https://pytorch.org/docs/stable/notes/extending.html.
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from eager.core.shown import Shown

NO_HANDLER = (
    "Multiple dispatch failed for '{name}'; all __torch_function__ handlers returned NotImplemented:\n\n{tried}\n"
    "For more information, try re-running with TORCH_LOGS=not_implemented"
)
NO_IMPLEMENTATION = "no implementation found for '{}' on types that implement __torch_function__: {}"
PLAIN_METHOD = (
    "Defining your `__torch_function__` as a plain method is deprecated and will be an error in future, please define "
    "it as a classmethod."
)
HANDLER = "__torch_function__"


def _unhandled(text: str) -> TypeError:
    error = TypeError(text)
    error.unhandled = True  # type: ignore[attr-defined]
    return error


def is_unhandled(error: TypeError) -> bool:
    """Whether all that were asked returned NotImplemented: Python's operators then ask the other operand."""
    return getattr(error, "unhandled", False)


class _Local(threading.local):
    """What is in force in a thread."""

    def __init__(self) -> None:
        self.classes = True  # whether classes are asked
        self.modes: list[Any] = []  # the modes that are entered, the innermost last
        self.asked: Any = None  # while there are any: the context in which public functions ask


local = _Local()
in_use: list[bool] = []  # not empty once there is such a class
public_of: list[Callable[..., Any]] = []  # gives the public function of a name, behind an op or another function
on_first_class: list[Callable[[], None]] = []  # called before the first class that takes part exists
unconverted: set[Any] = set()  # functions whose results the default handler leaves as they are
resolve_name: list[Callable[[Any], str]] = [lambda function: getattr(function, "__name__", str(function))]


class DisableTorchFunctionSubclass:
    """A block in which no class is asked; modes still are. As `torch._C.DisableTorchFunctionSubclass`."""

    _before: bool

    def __enter__(self) -> None:
        self._before = local.classes
        local.classes = False

    def __exit__(self, *error: object) -> None:
        local.classes = self._before


class DisableTorchFunction(DisableTorchFunctionSubclass):
    """A block in which neither classes nor modes are asked. As `torch._C.DisableTorchFunction`."""

    _modes: list[Any]

    def __enter__(self) -> None:
        super().__enter__()
        self._modes, local.modes = local.modes, []

    def __exit__(self, *error: object) -> None:
        local.modes = self._modes
        super().__exit__(*error)


def disabled(func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None) -> Any:
    """The handler of a class that takes no part: its instances are tensors like others."""
    with DisableTorchFunctionSubclass():
        return func(*args, **(kwargs or {}))


class Overrides(Shown):
    """The type of Tensor, and of its subclasses.

    A subclass whose `__torch_function__` is not `disabled` finds the methods of `Asking` before those of Tensor.
    """

    def mro(cls) -> list[type]:
        """Python's order, with `Asking` before Tensor, the last class of this type."""
        found = super().mro()
        tensor = max(k for k, base in enumerate(found) if isinstance(base, Overrides))
        if not tensor:
            return found
        handler = next(vars(base)[HANDLER] for base in found if HANDLER in vars(base))
        if getattr(handler, "__func__", handler) is disabled:
            return found
        for call in on_first_class:
            call()
        return [*found[:tensor], Asking, *found[tensor:]]


class Asking:
    """The methods and properties of Tensor, asking: filled before the first class is given them."""

    __slots__ = ()


def overloaded(values: Iterable[Any]) -> list[Any]:
    """One instance of each class among `values` that takes part, subclasses before their bases, else in order.

    What is in lists and tuples counts, but not what lists in these have.
    """
    found: list[Any] = []
    for value in values:
        for new in value if type(value) is list or type(value) is tuple else (value,):
            if _takes_part(kind := type(new)) and all(kind is not type(other) for other in found):
                at = next((k for k, other in enumerate(found) if isinstance(new, type(other))), len(found))
                found.insert(at, new)
    return found


def _takes_part(kind: type) -> bool:
    if Asking in kind.__mro__:
        return True
    if isinstance(kind, Overrides) or issubclass(kind, type) or (handler := getattr(kind, HANDLER, None)) is None:
        return False
    return getattr(handler, "__module__", None) != "torch._tensor"  # PyTorch's own, which would call again


def called(public: Any, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """`function(*args, **kwargs)`, or what the innermost mode or a class of the arguments makes of the call.

    public: the function that they are told, which the user knows. TypeError if all that are asked return
    NotImplemented.
    """
    if local.modes:
        return _of_mode(public, function, args, kwargs)
    if local.classes and (found := overloaded((*args, *kwargs.values()) if kwargs else args)):
        return handled(public, found, args, kwargs)
    return function(*args, **kwargs)


def handled(public: Any, found: Sequence[Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """What the classes of `found` make of `public(*args, **kwargs)`."""
    types = tuple(type(value) for value in found)
    rest = (kwargs,) if kwargs else ()
    for value in found:
        handler = getattr(value, HANDLER)
        if getattr(handler, "__self__", None) is value:
            warnings.warn(PLAIN_METHOD, UserWarning, stacklevel=4)
        result = handler(public, types, tuple(args), *rest)
        if result is not NotImplemented:
            return result
    name = resolve_name[0](public)
    if name.startswith("torch.nn.functional."):
        raise _unhandled(NO_IMPLEMENTATION.format(name, list(types)))
    tried = "".join(f"  - tensor subclass {kind}\n" for kind in types)
    raise _unhandled(NO_HANDLER.format(name=name, tried=tried))


def _of_mode(public: Any, function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """What the innermost mode makes of the call; it is not in force meanwhile."""
    found = overloaded((*args, *kwargs.values())) if local.classes else []
    types = tuple(type(value) for value in found)
    mode = local.modes.pop()
    try:
        result = mode.__torch_function__(public, types, tuple(args), dict(kwargs))
    finally:
        local.modes.append(mode)
    if result is NotImplemented:
        tried = f"  - mode object {mode!r}\n"
        raise _unhandled(NO_HANDLER.format(name=resolve_name[0](public), tried=tried))
    return result


def of_class(result: Any, cls: type) -> Any:
    """`result` with its tensors as a `cls`, which is how the default handler returns it. Lists and tuples are kept."""
    if isinstance(type(result), Overrides):
        return result if isinstance(result, cls) else result.as_subclass(cls)
    if isinstance(result, (tuple, list)):
        parts: list[Any] = [of_class(part, cls) for part in result]
        kind: Any = type(result)
        return kind(*parts) if hasattr(kind, "_fields") else kind(parts)
    return result


class AskingFunction:
    """What stands in the place of a public function, `__wrapped__`, once there is anybody to be asked."""


def own(function: Any) -> Any:
    """A public function itself, which asks nobody."""
    return function.__wrapped__ if isinstance(function, AskingFunction) else function  # type: ignore[attr-defined]
