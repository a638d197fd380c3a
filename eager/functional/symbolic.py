"""`torch.sym_max` and its like: arithmetic of numbers that may be sizes of a trace."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from graphc.ops.dims import Dim


def sym_int(a: Any) -> int:
    """`a` without its fraction. As `torch.sym_int`."""
    return math.trunc(a)


def sym_float(a: Any) -> float:
    """`a` as a float. As `torch.sym_float`."""
    return float(a)


def sym_max(a: Any, b: Any) -> Any:
    """The larger one; a float if either is. As `torch.sym_max`."""
    return _alike(max(a, b), a, b)


def sym_min(a: Any, b: Any) -> Any:
    """The smaller one; a float if either is. As `torch.sym_min`."""
    return _alike(min(a, b), a, b)


def _alike(number: Any, a: Any, b: Any) -> Any:
    return float(number) if isinstance(a, float) or isinstance(b, float) else number


def sym_not(a: Any) -> bool:
    """Whether `a` is false. As `torch.sym_not`."""
    return not a


def sym_ite(b: bool, t: Any, f: Any) -> Any:
    """`t` if `b`, else `f`. As `torch.sym_ite`."""
    return t if b else f


def sym_sum(args: Iterable[Any]) -> Any:
    """The sum. As `torch.sym_sum`."""
    return sum(args)


def sym_sqrt(a: Any) -> float:
    """The square root. As `torch.sym_sqrt`."""
    return math.sqrt(a)


class _Sizes(type):
    """The class of the classes of numbers under a trace."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return cls is SymInt and type(instance) is Dim


class SymInt(metaclass=_Sizes):
    """The sizes of a trace for any size, which are `graphc`'s Dims. For `isinstance`. As `torch.SymInt`."""


class SymFloat(metaclass=_Sizes):
    """There are none. For `isinstance`, as `torch.SymFloat`."""


class SymBool(metaclass=_Sizes):
    """There are none. For `isinstance`, as `torch.SymBool`."""


def statically_known_true(x: Any) -> bool:
    """Whether a condition holds: sizes are known here. As `torch.fx.experimental.symbolic_shapes` has it."""
    return bool(x)


guard_or_false = guard_or_true = statically_known_true


def get_proxy_mode() -> None:
    """None: no trace of PyTorch's is under way. As `torch.fx.experimental.proxy_tensor` has it."""
