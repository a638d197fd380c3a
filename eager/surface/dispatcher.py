"""`torch.ops`, with PyTorch's own functions in the namespace `aten`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn, final

import numpy as np

from eager.autograd.custom_ops import fill, ops
from eager.core import dtypes
from eager.core.tensor import Tensor
from eager.engine.dispatch import SCALARS, apply
from eager.engine.language import E
from eager.nn import functional
from eager.surface.public import named
from graphc.ops.operators import COMPARISON
from graphc.ops.spec import OPS, Op

__all__ = ["ops"]


@final
class BuiltInOp:
    """A function of PyTorch's as the dispatcher has it: `torch.ops.aten.add`, and its overloads, `.Tensor`, `.default`.

    One function stands for all overloads here. They are told apart as the keys of tables that users write.

    op: the op of that name, which modes are told of (`dispatch_modes`), with operands and parameters.
    """

    def __init__(self, name: str, fn: Callable[..., Any], op: Op | None = None, packet: BuiltInOp | None = None):
        self.__name__ = self.__qualname__ = name
        self.__module__ = "eager.ops.aten"
        self._fn, self._op = fn, op
        self._overloads: dict[str, BuiltInOp] = {}
        self.overloadpacket = self if packet is None else packet
        self._overloadname = name.partition(".")[2]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        op = self._op
        if op is not None and kwargs and kwargs.keys() <= op.params.keys():  # those of PyTorch have other names
            return apply(op, args, {k: v.numpy if isinstance(v, dtypes.dtype) else v for k, v in kwargs.items()})
        return self._fn(*args, **kwargs)

    def __getattr__(self, name: str) -> BuiltInOp:
        if name.startswith("_"):
            raise AttributeError(f"The underlying op of 'aten.{self.__name__}' has no overload name '{name}'")
        if name not in self._overloads:
            self._overloads[name] = BuiltInOp(f"{self.__name__}.{name}", self._fn, self._op, self)
        return self._overloads[name]

    def name(self) -> str:
        """Its name with that of the overload: "aten::add.Tensor"."""
        return f"aten::{self.__name__}".removesuffix(".default")

    def __str__(self) -> str:
        return f"aten.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='aten.{self.__name__}')>"


def keywords(params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of an op as an overload takes them."""
    return {name: dtypes.of_numpy(v) if isinstance(v, np.dtype) else v for name, v in params.items()}


def told(op: Op, operands: Sequence[Any]) -> BuiltInOp:
    """The overload that stands for an op on these operands, tensors and numbers."""
    packet = BUILT_INS[op.name]
    if not (op.pointwise and len(operands) == 2 and op.rule.scalars and op.rule.promote):
        return packet.default
    number = any(isinstance(x, SCALARS) for x in operands)
    return packet.Scalar if number and op.name in COMPARISON.values() else packet.Tensor


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
            if not callable(found) and name in OPS:
                found = getattr(E, name)
            if not callable(found) and name.startswith("_"):
                found = _inner(name)  # libraries write tables of them
            if not callable(found):
                raise KeyError(name) from None
        return self.setdefault(name, BuiltInOp(name, found, OPS.get(name)))


BUILT_INS = _BuiltIns()
fill("aten", BUILT_INS)
