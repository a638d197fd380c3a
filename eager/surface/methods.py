"""Giving Tensor its methods, by the tables in `eager.surface.names`: each at its first use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eager.core.later import Later
from eager.core.missing import MissingMethod
from eager.core.tensor import Tensor
from eager.functional.checking import raise_better
from eager.surface import names
from eager.surface.public import METHODS, PROPERTIES, found, offered


def install() -> None:
    """Give Tensor what the tables say. Some replace the plain forms that `eager.surface.operators` gives."""
    for name, where in METHODS.items():
        setattr(Tensor, name, Later(name, lambda name=name, where=where: _method(name, where)))
    for name, where in PROPERTIES.items():
        setattr(Tensor, name, Later(name, lambda where=where: property(found(*where))))
    for name, target in names.ALIASES.items():
        for end in ("", "_"):
            if (of := target + end) in vars(Tensor):
                setattr(Tensor, name + end, Later(name + end, lambda n=name + end, of=of: _alias(n, of)))
    for name in names.MISSING_METHODS.split():
        setattr(Tensor, name, MissingMethod(name))
    for name, value in names.ALIKE.items():
        setattr(Tensor, name, value)


def _method(name: str, where: tuple[str, str]) -> Any:
    method = offered(name, where, method=True)
    if name.startswith("__r") and name != "__repr__":  # a reflected operator, which shows its own name
        method.__name__ = method.__qualname__ = name
    return method


def _alias(name: str, target: str) -> Callable[..., Any]:
    def method(self: Tensor, *operands: Any, **named: Any) -> Any:
        try:
            return getattr(self, target)(*operands, **named)
        except Exception as error:
            return raise_better(error, name, method, (self, *operands), named, True)

    from eager.functional.naming import signature_of

    like = getattr(Tensor, target)
    method.__name__ = method.__qualname__ = target
    method.__doc__ = like.__doc__
    method.__signature__ = signature_of(like, "self")  # type: ignore[attr-defined]
    return method
