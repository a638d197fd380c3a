"""Classes and functions that `.pt` files may name because the user says so: `torch.serialization.add_safe_globals`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from eager.core import homes
from graphc.files.pickled import Function

_allowed: dict[str, Any] = {}  # full name in a file -> what the user has given


def _name(given: Any) -> str:
    """Under which name a file has a class or function: PyTorch's, if it is one of this package."""
    if isinstance(given, tuple):
        return given[1]
    if homes.is_ours(given.__module__):
        return ".".join(homes.pytorch_name(given))
    return f"{given.__module__}.{given.__qualname__}"


def add_safe_globals(safe_globals: Sequence[Callable[..., Any] | tuple[Callable[..., Any], str]]) -> None:
    """Let `torch.load` use these classes and functions: it calls them, and their `__setstate__`.

    An entry is one, or (one, the full name that files have for it). As `torch.serialization.add_safe_globals`.
    """
    _allowed.update({_name(given): given for given in list(safe_globals)})


def get_safe_globals() -> list[Any]:
    """What is let, as it was given. As `torch.serialization.get_safe_globals`."""
    return list(_allowed.values())


def clear_safe_globals() -> None:
    """Let nothing any more. As `torch.serialization.clear_safe_globals`."""
    _allowed.clear()


class safe_globals:
    """`add_safe_globals` for the length of a `with` block. As `torch.serialization.safe_globals`."""

    def __init__(self, safe_globals: Sequence[Callable[..., Any] | tuple[Callable[..., Any], str]]):
        self.safe_globals = safe_globals
        self._before: dict[str, Any] = {}

    def __enter__(self) -> None:
        self._before = dict(_allowed)
        add_safe_globals(self.safe_globals)

    def __exit__(self, *error: object) -> None:
        _allowed.clear()
        _allowed.update(self._before)


def allowed(full: str) -> Function | None:
    """What a file may call under the name `full`, if the user lets it."""
    given = _allowed.get(full)
    if given is None:
        return None
    value: Any = given[0] if isinstance(given, tuple) else given
    new = (lambda *arguments: value.__new__(value, *arguments)) if isinstance(value, type) else None
    return Function(full, value, new)


def made(value: Any) -> bool:
    """Whether a value is of a class that the user lets."""
    return type(value) in [given[0] if isinstance(given, tuple) else given for given in _allowed.values()]


def build(target: Any, state: Any) -> bool:
    """Give `target` its state, as `pickle` does, if it is of a class that the user lets. Whether it is."""
    if not made(target):
        return False
    if hasattr(target, "__setstate__"):
        target.__setstate__(state)
        return True
    attributes, slots = state if isinstance(state, tuple) and len(state) == 2 else (state, None)
    if attributes:
        vars(target).update(attributes)
    for name, value in (slots or {}).items():
        setattr(target, name, value)
    return True
