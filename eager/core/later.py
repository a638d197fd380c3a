"""Attributes of Tensor that are made when they are first looked up."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, final

from eager.core.tensor import Tensor


@final
class Later:
    """An attribute of Tensor that puts the real one in its own place when it is first looked up."""

    __slots__ = ("name", "resolve")

    def __init__(self, name: str, resolve: Callable[[], Any]):
        self.name = name
        self.resolve = resolve

    def resolved(self) -> Any:
        """The real one; it is put in place unless another has been meanwhile."""
        real = self.resolve()
        if vars(Tensor).get(self.name) is self:
            setattr(Tensor, self.name, real)
        return real

    def __get__(self, instance: Any, owner: type) -> Any:
        return self.resolved().__get__(instance, owner)
