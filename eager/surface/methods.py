"""Giving Tensor its methods, by the tables in `eager.surface.names`: each at its first use."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

from eager.core.missing import MissingMethod
from eager.core.tensor import Tensor
from eager.surface import names
from eager.surface.deprecations import offered
from eager.surface.entries import METHODS, PROPERTIES, found


@final
class _Later:
    """An attribute of Tensor that puts the real one in its own place when it is first looked up."""

    __slots__ = ("name", "resolve")

    def __init__(self, name: str, resolve: Callable[[], Any]):
        self.name = name
        self.resolve = resolve

    def __get__(self, instance: Any, owner: type) -> Any:
        real = self.resolve()
        setattr(Tensor, self.name, real)
        return real.__get__(instance, owner)


def install() -> None:
    """Give Tensor what the tables say. Some replace the plain forms that `eager.surface.operators` gives."""
    for name, where in METHODS.items():
        setattr(Tensor, name, _Later(name, lambda name=name, where=where: offered(name, where, method=True)))
    for name, where in PROPERTIES.items():
        setattr(Tensor, name, _Later(name, lambda where=where: property(found(*where))))
    for name, target in names.ALIASES.items():
        setattr(Tensor, name, _alias(target))
        if hasattr(Tensor, f"{target}_"):
            setattr(Tensor, f"{name}_", _alias(f"{target}_"))
    for name in names.MISSING_METHODS.split():
        setattr(Tensor, name, MissingMethod(name))
    for name, value in names.ALIKE.items():
        setattr(Tensor, name, value)


def _alias(target: str) -> Callable[..., Any]:
    def method(self: Tensor, *operands: Any, **named: Any) -> Any:
        return getattr(self, target)(*operands, **named)

    like = getattr(Tensor, target)
    method.__name__ = method.__qualname__ = target
    method.__doc__ = like.__doc__
    method.__signature__ = like.__signature__  # type: ignore[attr-defined]
    return method
