"""What rules ask of their operands (`RewriteRule.when`): many equations hold for some dtypes only."""

from __future__ import annotations

from typing import Any

from graphc.ops.dtypes import BOOL, finfo, is_floating


def floating(x: Any, *rest: Any) -> bool:
    """The first operand holds real numbers that are rounded: no integers, which overflow, and no complex numbers."""
    return is_floating(x.dtype)


def all_floating(*operands: Any) -> bool:
    """All operands hold real numbers that are rounded."""
    return all(map(floating, operands))


def is_normal(x: Any, c: Any) -> bool:
    """Whether `c` is a normal number of the dtype of `x`: not what that takes for 0, inf or nan."""
    if not floating(x):
        return False
    limits = finfo(x.dtype)
    return float(limits.tiny) <= abs(c) <= float(limits.max)


def negative(x: Any, *rest: Any) -> bool:
    """The first operand may be less than 0."""
    return x.dtype.kind != "u"


def truth(x: Any, *rest: Any) -> bool:
    """The first operand is a bool, and no number that is taken for one."""
    return x.dtype == BOOL
