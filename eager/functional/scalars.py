"""Python numbers beside tensors, and as tensors, among them those that a trace alone knows: `loss.item()`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from eager.core.interpreter import current_interpreter
from eager.core.tensor import Tensor
from eager.engine.conversion import converted
from eager.engine.language import E
from eager.functional.arguments import fitting
from eager.functional.static import required
from graphc.ops.dtypes import BOOL, FLOAT32, FLOAT64, is_half, kind, of_scalar, real_of, result_type

ALPHA = "For integral input tensors, argument alpha must not be a floating point number."
COMPLEX_ALPHA = "For non-complex input tensors, argument alpha must not be a complex number."
BOOLEAN_ALPHA = "Boolean alpha only supported for Boolean results."


def kind_of(x: Any) -> str:
    """The kind of a tensor's or number's dtype: "b", "i" (and "u"), "f" or "c"."""
    if isinstance(x, Tensor):
        return kind(x._dtype())
    return "b" if isinstance(x, bool) else "i" if isinstance(x, int) else "c" if isinstance(x, complex) else "f"


def number_of(value: Any, wanted: np.dtype) -> Any:
    """`value` as a Python number that `wanted` holds: itself beside floats. RuntimeError as `fitting`; a 0-d Tensor
    that stands for a number becomes one."""
    if isinstance(value, Tensor):
        value = value.item()
    if value.__class__ is float and wanted.kind in "fcV":
        return value
    fitted = fitting(value, wanted)
    return value if wanted.kind in "fcV" else fitted.item()


def common_dtype(*operands: Any) -> np.dtype:
    """The dtype that Tensors and Python numbers are promoted to."""
    return result_type(
        [(x._dtype(), 2 if x._d.shape else 1) if isinstance(x, Tensor) else (of_scalar(x), 0) for x in operands]
    )


def same_float(*operands: Any) -> bool:
    """Whether all are tensors of float32, or all of float64: there is nothing to promote, and nothing to round once."""
    try:
        dtype = operands[0]._d.dtype
        if dtype is not FLOAT32 and dtype is not FLOAT64:
            return False
        for x in operands:
            if x._d.dtype is not dtype:
                return False
    except AttributeError:
        return False
    return True


def checked_alpha(alpha: Any, dtype: np.dtype) -> Any:
    """The factor `alpha` of an operand in a sum of dtype `dtype`, as a number of it. Raises PyTorch's RuntimeErrors."""
    factor = kind_of(alpha)
    if factor == "b" and dtype != BOOL:
        raise RuntimeError(BOOLEAN_ALPHA)
    if factor in "fc" and kind(dtype) in "iub":
        raise RuntimeError(ALPHA)
    if factor == "c" and dtype.kind != "c":
        raise RuntimeError(COMPLEX_ALPHA)
    return number_of(alpha, dtype)


def at_once(function: Callable[..., Tensor], *operands: Any) -> Tensor:
    """`function(*operands)` in the common dtype of the operands, as one kernel of PyTorch computes it.

    16-bit floats are computed in float32, and the result alone is rounded.
    """
    dtype = operands[0]._dtype() if isinstance(operands[0], Tensor) else None
    for x in operands[1:]:
        if dtype is None or not isinstance(x, Tensor) or x._dtype() != dtype:
            dtype = common_dtype(*operands)
            break
    assert dtype is not None
    wide = FLOAT32 if is_half(dtype) else dtype
    return converted(function(*(converted(x, wide) if isinstance(x, Tensor) else x for x in operands)), dtype)


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
