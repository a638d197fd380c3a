"""Names of functions that other functions make."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from inspect import Parameter
from typing import Any


def called(name: str, does: str, where: str = "torch.nn.functional") -> Callable[[Any], Any]:
    """Gives a function the name that PyTorch has for it in `where`, and says in its docstring what it does."""

    def rename(function: Any) -> Any:
        function.__name__ = function.__qualname__ = name
        function.__doc__ = f"{does} As `{where}.{name}`."
        return function

    return rename


def signature_of(
    function: Callable[..., Any], first: str = "", without: str = "", out: bool = False
) -> inspect.Signature:
    """What `inspect.signature` is to say of a function that passes its arguments on to `function`.

    first: another name of the first parameter; without: a parameter that it gives itself; out: whether it has an `out`.
    """
    found = [p for name, p in inspect.signature(function).parameters.items() if name != without]
    if first:
        found[0] = found[0].replace(name=first)
    if out:
        found.insert(
            len(found) - (found[-1].kind is Parameter.VAR_KEYWORD),
            Parameter("out", Parameter.KEYWORD_ONLY, default=None, annotation="Any"),
        )
    return inspect.Signature(found, return_annotation=inspect.signature(function).return_annotation)
