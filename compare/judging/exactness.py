"""Which elements of a result no rounding touches: numbers of few digits, which every backend adds alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from graphc.ops import Op
from graphc.ops.dtypes import is_floating
from graphc.ops.rounding import held


def exact_elements(
    op: Op, params: Mapping[str, Any], value: np.ndarray, operands: Sequence[np.ndarray], dtype: np.dtype
) -> np.ndarray:
    """Where `value`, the float64 result of `op` on numbers without errors, is what it is in `dtype` as well.

    Quotients are not among them: backends multiply with reciprocals.

    >>> from graphc.ops import OPS
    >>> ones, value = [np.float64([1, 1]), np.float64([1, 0.1])], np.float64([2, 1.1])
    >>> exact_elements(OPS["add"], {}, value, ones, np.dtype("f4"))
    array([ True, False])
    """
    exact = op.rounding.exact
    if exact is None or not is_floating(dtype) or any(a.dtype.kind == "c" for a in operands):
        return np.zeros(value.shape, bool)
    with np.errstate(all="ignore"):
        return np.broadcast_to(exact(value, *operands, **params) & held(value, dtype), value.shape)
