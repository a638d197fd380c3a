"""Python numbers as tensors, among them those that a trace alone knows: `loss.item()`, or an argument that varies."""

from __future__ import annotations

from typing import Any

import numpy as np

from eager.core.interpreter import current_interpreter
from eager.core.tensor import Tensor
from eager.engine.language import E
from eager.functional.arguments import fitting
from eager.functional.static import required
from graphc.ops.dtypes import real_of

TOO_LARGE = "value cannot be converted to type {} without overflow"


def traced(value: Any) -> Tensor | None:
    """A number that is part of a program under capture, as a 0-d tensor of bool, int64 or float64; else None."""
    return current_interpreter().tensor_of(value)


def filler(value: Any, wanted: np.dtype, limited: bool = True) -> Tensor:
    """The number `value` as a 0-d tensor of `wanted`. RuntimeError as `fitting`, for a traced one when it runs."""
    number = traced(value)
    return Tensor._wrap(fitting(value, wanted)) if number is None else fitted(number, wanted, limited)


def filled(shape: tuple[int, ...], number: Tensor, wanted: np.dtype, limited: bool = True) -> Tensor:
    """A new tensor that holds the traced `number` everywhere."""
    return E.clone(E.broadcast_to(fitted(number, wanted, limited), shape=shape))


def fitted(number: Tensor, wanted: np.dtype, limited: bool = True) -> Tensor:
    """`number`, which only a program knows, in the dtype `wanted`: `fitting` as operations.

    limited: whether a finite number has to be a finite float; else it may become infinite
    """
    given = number._dtype()
    if given == wanted:
        return number
    result = E.cast(number, dtype=wanted)
    if wanted.kind == "b" or given.kind not in "fi":
        return result
    if wanted.kind in "iu":
        if given.kind == "f":
            result = E.cast(E.cast(number, dtype=np.dtype(np.int64)), dtype=wanted)
        fits = _within(number, np.iinfo(wanted))
    elif limited and (real := real_of(wanted)) != given:
        fits = E.eq(E.isfinite(E.cast(number, dtype=real)), E.isfinite(number))
    else:
        return result
    return required(result, fits, TOO_LARGE.format(wanted))


def _within(number: Tensor, limits: np.iinfo) -> Tensor:
    """Whether an integer type holds `number`; negative ones wrap if it has no sign."""
    low, high = limits.min or -limits.max, limits.max
    if number._dtype().kind == "i":
        return E.logical_and(E.ge(number, max(low, -(2**63))), E.le(number, min(high, 2**63 - 1)))
    below = E.le(number, float(high)) if float(high) == high else E.lt(number, float(high))
    return E.logical_and(E.ge(number, float(low)) if float(low) == low else E.gt(number, float(low)), below)
