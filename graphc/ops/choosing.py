"""`where` and bounds on NumPy.

`np.where` branches for each element, and takes ten times longer where no branch predictor can guess the condition:
large arrays are then chosen bit by bit. `np.maximum` and `np.minimum` of an array and a number take three times as long
as `np.clip`, whose call takes longer.
"""

from __future__ import annotations

from typing import Any

import numpy as np

LONG = 2**13  # elements, from which the choice of the way pays
BLOCK = 2**14
LOOKED_AT = 2**11  # elements of a condition, of which it is told how often it changes
CHANGES = 2**6  # of these, from which branches cost more than bits
_INTS = {n: np.dtype(f"i{n}") for n in (1, 2, 4, 8)}


def where(condition: Any, x: Any, y: Any) -> np.ndarray:
    """`np.where`, the same bits."""
    if condition.size < LONG:
        return np.where(condition, x, y)
    x, y = _as_array(x, y), _as_array(y, x)
    if not _is_plain(condition, x, y):
        return np.where(condition, x, y)
    if not _changes_often(condition):
        return np.array(y) if y.ndim and not condition.any() else np.where(condition, x, y)
    ints = _INTS[x.dtype.itemsize]
    result = np.empty(condition.shape, x.dtype)
    out, mask = result.reshape(-1).view(ints), condition.reshape(-1)
    a, b = (v.reshape(-1).view(ints) if v.ndim else v.view(ints) for v in (x, y))
    # the bits, as whole numbers, times 1 or 0
    if not b.ndim and not b:
        np.multiply(a, mask, out=out)
        return result
    if not a.ndim and not a:
        np.multiply(b, ~mask, out=out)
        return result
    for start in range(0, out.size, BLOCK):
        block = slice(start, start + BLOCK)
        part = out[block]
        first, second = (v[block] if v.ndim else v for v in (a, b))
        np.bitwise_xor(first, second, out=part)
        np.multiply(part, mask[block], out=part)
        np.bitwise_xor(part, second, out=part)
    return result


def _as_array(x: Any, other: Any) -> Any:
    """A Python number, which a gradient rule may write, of the dtype it takes beside an array."""
    return x if hasattr(x, "dtype") else np.asarray(x, np.result_type(x, other))


def _is_plain(condition: Any, x: Any, y: Any) -> bool:
    if condition.dtype.kind != "b" or not condition.flags.c_contiguous:
        return False
    return (
        x.dtype == y.dtype
        and x.dtype.itemsize in _INTS
        and x.dtype.kind in "fiub"
        and all(not v.ndim or (v.shape == condition.shape and v.flags.c_contiguous) for v in (x, y))
    )


def _changes_often(condition: np.ndarray) -> bool:
    """Whether a condition changes often from one element to the next, in a part in the middle."""
    flat = condition.reshape(-1)
    middle = flat[(flat.size - LOOKED_AT) // 2 :][:LOOKED_AT]
    return int(np.count_nonzero(middle[1:] != middle[:-1])) > CHANGES


def at_least(x: Any, bound: Any) -> Any:
    """The elements of x, or the bound where it is larger, or nan: of equal numbers that of x."""
    return np.clip(x, bound, np.inf) if x.size >= LONG and _is_number(bound, x) else np.maximum(bound, x)


def at_most(x: Any, bound: Any) -> Any:
    """The elements of x, or the bound where it is smaller, or nan: of equal numbers that of x."""
    return np.clip(x, -np.inf, bound) if x.size >= LONG and _is_number(bound, x) else np.minimum(bound, x)


def _is_number(bound: Any, x: Any) -> bool:
    """Whether floats have one bound, of their dtype."""
    alone = isinstance(bound, float) or (not bound.ndim and bound.dtype == x.dtype)
    return alone and x.dtype.kind == "f"
