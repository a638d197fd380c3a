"""Order: increasing functions keep the largest element where it is, so that they are computed of it alone.

Of functions that are nan for some numbers (logarithms, roots) this is false: amax passes nan on. It is the place of the
largest element only for rows with neither nan nor inf, and not where functions saturate: softmax alone keeps it.
"""

from __future__ import annotations

from typing import Any

from graphc.ops.samples import Floats, Full
from graphc.passes.rules.operands import floating
from graphc.rewrite import REASSOCIATES, number
from graphc.rewrite import RewriteRule as R

INCREASING = ("exp", "expm1", "sigmoid", "tanh", "atan", "relu")
_LINES = {"x": Floats((3, 4)), "a": (1,), "k": False}


def _place_of(name: str) -> R:
    return R(
        f"argmax_of_{name}", REASSOCIATES,
        lambda F, x, a, k: F.argmax(getattr(F, name)(x, axis=a), axis=a, keepdims=k),
        lambda F, x, a, k: F.argmax(x, axis=a, keepdims=k), when=floating,
        example={"x": Floats((3, 4)), "a": 1, "k": False},
    )  # fmt: skip


def _extreme_of(extreme: str, name: str) -> R:
    return R(
        f"{extreme}_of_{name}", REASSOCIATES,
        lambda F, x, a, k: getattr(F, extreme)(getattr(F, name)(x), axis=a, keepdims=k),
        lambda F, x, a, k: getattr(F, name)(getattr(F, extreme)(x, axis=a, keepdims=k)), when=floating, example=_LINES,
    )  # fmt: skip


def _is_number(x: Any, c: Any, *_: Any) -> bool:
    return floating(x) and c.shape == () and x.shape != ()


def _extreme_of_scaled(extreme: str) -> R:
    return R(
        f"{extreme}_of_scaled", REASSOCIATES,
        lambda F, x, c, a, k: getattr(F, extreme)(x * c, axis=a, keepdims=k),
        lambda F, x, c, a, k: getattr(F, extreme)(x, axis=a, keepdims=k) * number(c),
        numbers="c", when=lambda x, c, a, k: _is_number(x, c) and number(c) > 0,
        example={"x": Floats((3, 4)), "c": Full((), 1.7), "a": (1,), "k": False},
    )  # fmt: skip


def _extreme_of_negated(extreme: str, opposite: str) -> R:
    return R(
        f"{extreme}_of_negated", REASSOCIATES, lambda F, x, a, k: getattr(F, extreme)(F.neg(x), axis=a, keepdims=k),
        lambda F, x, a, k: F.neg(getattr(F, opposite)(x, axis=a, keepdims=k)), when=floating, example=_LINES,
    )  # fmt: skip


def _extreme_of_shifted(extreme: str) -> R:
    return R(
        f"{extreme}_of_shifted", REASSOCIATES,
        lambda F, x, c, a, k: getattr(F, extreme)(x + c, axis=a, keepdims=k),
        lambda F, x, c, a, k: getattr(F, extreme)(x, axis=a, keepdims=k) + c, when=_is_number,
        example={"x": Floats((3, 4)), "c": Floats(()), "a": (1,), "k": False},
    )  # fmt: skip


RULES = (
    *map(_place_of, ("softmax", "log_softmax")),
    *[_extreme_of(extreme, name) for name in INCREASING for extreme in ("amax", "amin")],
    *map(_extreme_of_scaled, ("amax", "amin")),
    *map(_extreme_of_negated, ("amax", "amin"), ("amin", "amax")),
    *map(_extreme_of_shifted, ("amax", "amin")),
)
