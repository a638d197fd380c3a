"""`torch.sym_max` and its like: arithmetic of numbers that may be sizes of a trace."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any


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
