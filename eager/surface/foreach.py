"""`torch._foreach_add` and its like: one function of each tensor of a list, which optimizers of libraries call.

PyTorch makes few kernels of many that way. Here they are loops: eager calls are cheap, and a trace sees each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import repeat
from typing import Any

from eager.core.tensor import Tensor
from eager.linalg.named import vector_norm
from eager.surface.names import FOREACH, FOREACH_IN_ONE_FORM

NO_TENSOR = "Tensor list must have at least one tensor."
UNEQUAL = "Tensor lists must have the same number of tensors, got {} and {}"
UNEQUAL_SCALARS = "Tensor list must have same number of elements as scalar list."
NOT_A_SCALAR = "scalar tensor expected to be 0 dim but it has {} dimensions and {} elements."

_SCALED = {"addcdiv", "addcmul"}  # their last number is a keyword of the method
_OF_NUMBERS = {"maximum": "clamp_min", "minimum": "clamp_max"}  # methods that take numbers in the place of tensors


def _method(name: str) -> Callable[..., Any]:
    stem, tail = name.rstrip("_"), "_" if name.endswith("_") else ""

    def call(tensor: Any, *operands: Any, **settings: Any) -> Any:
        if stem in _SCALED and len(operands) == 3:
            *operands, settings["value"] = operands  # type: ignore[assignment]
        if not isinstance(tensor, Tensor):  # `_foreach_pow` of a number
            return tensor ** operands[0]
        method = _OF_NUMBERS[stem] if stem in _OF_NUMBERS and not isinstance(operands[0], Tensor) else stem
        return getattr(tensor, method + tail)(*operands, **settings)

    return call


def _norm(tensor: Tensor, ord: Any = 2, dtype: Any = None) -> Tensor:
    return vector_norm(tensor, ord, dtype=dtype)


def _powsum(tensor: Tensor, ord: Any = 2, dtype: Any = None) -> Tensor:
    return tensor.abs().pow(ord).sum(dtype=dtype)


def _column(operand: Any, count: int, name: str) -> Any:
    """One operand of each tensor: of a list one, of a tensor of numbers (`addcmul`) one, else the same for all."""
    if isinstance(operand, (list, tuple)):
        if len(operand) != count:
            of_numbers = operand and not isinstance(operand[0], Tensor)
            raise RuntimeError(UNEQUAL_SCALARS if of_numbers else UNEQUAL.format(count, len(operand)))
        return operand
    if isinstance(operand, Tensor) and operand.dim():
        if name.rstrip("_") not in _SCALED:
            raise RuntimeError(NOT_A_SCALAR.format(operand.dim(), operand.numel()))
        return operand.tolist()
    return repeat(operand, count)


def _made(name: str, each: Callable[..., Any]) -> Callable[..., Any]:
    in_place = name.endswith("_")

    def foreach(self: Any, *operands: Any, **settings: Any) -> Sequence[Tensor]:
        listed = self if isinstance(self, (list, tuple)) else operands[0]  # a number is raised to a list of powers
        if not listed:
            raise RuntimeError(NO_TENSOR)
        columns = [_column(operand, len(listed), name) for operand in (self, *operands)]
        found = [each(*row, **settings) for row in zip(*columns, strict=True)]
        return listed if in_place else tuple(found)

    foreach.__name__ = foreach.__qualname__ = f"_foreach_{name}"
    foreach.__doc__ = f"`{name}` of each tensor of a list, with one operand for all or a list of one for each."
    return foreach


FUNCTIONS = {
    **{name: _method(name) for stem in FOREACH for name in (stem, f"{stem}_")},
    **{name: _method(name) for name in FOREACH_IN_ONE_FORM},
    "norm": _norm,
    "powsum": _powsum,
}
globals().update({f"_foreach_{name}": _made(name, each) for name, each in FUNCTIONS.items()})
