"""Python numbers beside tensors: whether a dtype holds one, and the dtype that operands have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from eager.core.tensor import Tensor
from eager.engine.conversion import converted
from eager.functional.arguments import fitting
from graphc.ops.dtypes import BOOL, FLOAT32, FLOAT64, is_half, kind, of_scalar, result_type

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
