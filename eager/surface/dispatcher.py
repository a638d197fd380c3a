"""`torch.ops`, with PyTorch's own functions in the namespace `aten`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, final

from eager.autograd.custom_ops import fill, ops
from eager.core.tensor import Tensor
from eager.nn import functional
from eager.surface.public import named

__all__ = ["ops"]


@final
class BuiltInOp:
    """A function of PyTorch's as the dispatcher has it: `torch.ops.aten.add`, and its overloads, `.Tensor`, `.default`.

    One function stands for all overloads here. They are told apart as the keys of tables that users write.
    """

    def __init__(self, name: str, fn: Callable[..., Any]):
        self.__name__, self._fn = name, fn
        self._overloads: dict[str, BuiltInOp] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._fn(*args, **kwargs)

    def __getattr__(self, name: str) -> BuiltInOp:
        if name.startswith("_"):
            raise AttributeError(f"The underlying op of 'aten.{self.__name__}' has no overload name '{name}'")
        return self._overloads.setdefault(name, BuiltInOp(f"{self.__name__}.{name}", self._fn))

    def __repr__(self) -> str:
        return f"<OpOverload(op='aten.{self.__name__}')>"


def _sliced(self: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1) -> Tensor:
    return self[(slice(None),) * (dim % self.dim()) + (slice(start, end, step),)]


# what only the dispatcher has: functions that others are made of there
OWN: dict[str, Callable[..., Any]] = {
    "_local_scalar_dense": lambda self: self.item(),
    "_to_copy": lambda self, *, dtype=None, device=None, **_: self.to(
        device or self.device, dtype or self.dtype, copy=True
    ),
    "_unsafe_view": lambda self, size: self.reshape(size).clone(),
    "index": lambda self, indices: self[tuple(slice(None) if index is None else index for index in indices)],
    "alias": lambda self: self.view_as(self),
    "slice": _sliced,
    "sym_numel": lambda self: self.numel(),
    "sym_size": lambda self, dim=None: self.size(dim),
}


def _inner(name: str) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(f"torch.ops.aten.{name}: what PyTorch's functions are made of is not here")

    return refuse


@final
class _BuiltIns(dict[str, Any]):
    """By name, made when they are asked for: functions, else methods, else functions of layers."""

    def __missing__(self, name: str) -> BuiltInOp:
        try:
            found = OWN[name] if name in OWN else named(name)
        except LookupError:
            found = getattr(Tensor, name, None) or getattr(functional, name, None)
            if not callable(found) and name.startswith("_"):
                found = _inner(name)  # libraries write tables of them
            if not callable(found):
                raise KeyError(name) from None
        return self.setdefault(name, BuiltInOp(name, found))


fill("aten", _BuiltIns())
