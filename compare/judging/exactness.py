"""Which elements of a result no rounding touches: numbers of few digits, which every backend adds alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from graphc.ops.dtypes import FLOAT32, is_floating

Elements = np.ndarray | bool


def _sum(r: np.ndarray, x: np.ndarray, y: np.ndarray) -> Elements:
    """Knuth's TwoSum: what r = x + y has lost."""
    back = r - x
    return (x - (r - back)) + (y - back) == 0


def _product(r: np.ndarray, x: np.ndarray, y: np.ndarray) -> Elements:
    return _is_held(x, FLOAT32) & _is_held(y, FLOAT32)  # 24 digits by 24 fit into the 53 of float64


# f(result, *operands, **params): the elements that float64 has not rounded. Quotients are not among them: backends
# multiply with reciprocals.
_EXACTLY: Mapping[str, Callable[..., Elements]] = {
    "add": _sum,
    "sub": lambda r, x, y: _sum(r, x, -y),
    "mul": _product,
    "square": lambda r, x: _product(r, x, x),
    "cast": lambda r, x, dtype: True,
    "index_put": lambda r, *operands, accumulate, **_: not accumulate,
}


def exact_elements(
    name: str, params: Mapping[str, Any], value: np.ndarray, operands: Sequence[np.ndarray], dtype: np.dtype
) -> np.ndarray:
    """Where `value`, the float64 result of op `name` on numbers without errors, is what it is in `dtype` as well.

    >>> exact_elements("add", {}, np.float64([2, 1.1]), [np.float64([1, 1]), np.float64([1, 0.1])], np.dtype("f4"))
    array([ True, False])
    """
    found = _EXACTLY.get(name)
    if found is None or not is_floating(dtype) or any(a.dtype.kind == "c" for a in operands):
        return np.zeros(value.shape, bool)
    with np.errstate(all="ignore"):
        return np.broadcast_to(found(value, *operands, **params) & _is_held(value, dtype), value.shape)


def _is_held(value: np.ndarray, dtype: np.dtype) -> np.ndarray:
    with np.errstate(all="ignore"):
        return value.astype(dtype).astype(value.dtype) == value
