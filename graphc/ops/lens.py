"""How a view shows its part of a whole, and how a write to the part is one to the whole, in graphs without memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from graphc.ops.aval import Aval
from graphc.ops.strides import Place, Strides


def _as_the_whole(whole: Aval, strides: Strides, /, **params: Any) -> Place:
    return strides, 0


class Lens(NamedTuple):
    """What the result of an op, the part, is of its first operand, the whole.

    put      `f(F, whole, part, *operands, **params)` in the op language: the whole, once its part has become `part`;
             None if elements of the part always repeat, and are written one by one
    lies     `f(whole, strides, **params)`: the strides of the part of a whole (its Aval) that lies so, and how far from
             the first element of the whole its own is, both in the part's elements; None for the latter if that is not
             known. None if the part would be a copy
    repeats  `f(**params)`: whether elements of the part may share a place in memory
    shown_by  the op that shows the part in the eager engine, if the kernel of this one copies
    """

    put: Callable[..., Any] | None
    lies: Callable[..., Place | None] = _as_the_whole
    repeats: Callable[..., bool] = lambda **params: False
    shown_by: str | None = None
