"""Results of NumPy's ufuncs in memory that somebody else gave.

Where that has gaps, or another order, they are computed in fresh memory first: NumPy's loops for such memory have been
wrong, in place (`negative`) and not (`isnan`), see docs/findings.md. Memory without is `flags.carray`, one look-up,
which the methods that optimizers call ask by themselves.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def write(ufunc: np.ufunc, array: np.ndarray, x: Any, y: Any) -> None:
    """Write `ufunc(x, y)`, of the shape of `array`, into `array`, which `x` or `y` may be or overlap."""
    if array.flags.carray:
        ufunc(x, y, out=array)
    else:
        write_apart(ufunc, array, x, y)


def write_apart(ufunc: np.ufunc, array: np.ndarray, *operands: Any) -> None:
    """Write `ufunc(*operands)` into `array`, computed in fresh memory."""
    np.copyto(array, ufunc(*operands), casting="same_kind")
