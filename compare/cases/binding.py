"""Whether a function takes the arguments that it is to be called with."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any


class ArgumentsError(TypeError):
    """A function cannot be called with these arguments: no mode is at fault."""


def bind(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Raises ArgumentsError if `fn(*args, **kwargs)` is not a call of `fn`; a builtin may have no signature to tell."""
    try:
        signature = inspect.signature(getattr(fn, "forward", fn), follow_wrapped=False)
    except (TypeError, ValueError):
        return
    try:
        signature.bind(*args, **kwargs)
    except TypeError as error:
        name = getattr(fn, "__name__", type(fn).__name__)
        raise ArgumentsError(f"{name}{signature} cannot be called with these arguments: {error}") from None
