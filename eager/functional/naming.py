"""Names of functions that other functions make."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def called(name: str, does: str, where: str = "torch.nn.functional") -> Callable[[Any], Any]:
    """Gives a function the name that PyTorch has for it in `where`, and says in its docstring what it does."""

    def rename(function: Any) -> Any:
        function.__name__ = function.__qualname__ = name
        function.__doc__ = f"{does} As `{where}.{name}`."
        return function

    return rename
