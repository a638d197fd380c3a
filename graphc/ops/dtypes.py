"""Dtypes: short names, categories, and PyTorch's type promotion.

Inside the registry and the graph a dtype is a `numpy.dtype`. Promotion follows
https://docs.pytorch.org/docs/stable/tensor_attributes.html#type-promotion-doc : operands are ranked by
category (bool < integer < floating < complex) in three classes, dimensioned arrays over 0-d arrays over
Python scalars; a class of lower rank changes the result only when its category is higher.
"""

from __future__ import annotations

import numpy as np

BOOL = np.dtype(np.bool_)
INT32 = np.dtype(np.int32)
INT64 = np.dtype(np.int64)
FLOAT16 = np.dtype(np.float16)
FLOAT32 = np.dtype(np.float32)
FLOAT64 = np.dtype(np.float64)
COMPLEX64 = np.dtype(np.complex64)
COMPLEX128 = np.dtype(np.complex128)

SHORT_NAMES: dict[np.dtype, str] = {
    BOOL: "bool",
    np.dtype(np.uint8): "u8",
    np.dtype(np.int8): "i8",
    np.dtype(np.int16): "i16",
    INT32: "i32",
    INT64: "i64",
    FLOAT16: "f16",
    FLOAT32: "f32",
    FLOAT64: "f64",
    COMPLEX64: "c64",
    COMPLEX128: "c128",
}
BY_SHORT_NAME = {name: dtype for dtype, name in SHORT_NAMES.items()}

_CATEGORY = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}
_DEFAULT_FLOAT = FLOAT32


def category(dtype: np.dtype) -> int:
    """0 for bool, 1 for integer, 2 for floating, 3 for complex."""
    return _CATEGORY[dtype.kind]


def is_inexact(dtype: np.dtype) -> bool:
    """Whether `dtype` is floating or complex, i.e. can carry a gradient."""
    return dtype.kind in "fc"


def default_float() -> np.dtype:
    """The dtype given to Python floats and to results of true division of integers."""
    return _DEFAULT_FLOAT


def set_default_float(dtype: np.dtype) -> None:
    """Set what `default_float` returns. Raises TypeError unless `dtype` is floating."""
    global _DEFAULT_FLOAT
    if dtype.kind != "f":
        raise TypeError("only floating-point types are supported as the default type")
    _DEFAULT_FLOAT = dtype


def complex_of(dtype: np.dtype) -> np.dtype:
    """The complex dtype whose parts have floating dtype `dtype`."""
    return COMPLEX128 if dtype == FLOAT64 else COMPLEX64


def of_scalar(value: object) -> np.dtype:
    """The dtype that PyTorch gives to a Python scalar. Raises TypeError for anything else."""
    if isinstance(value, (bool, np.bool_)):
        return BOOL
    if isinstance(value, (int, np.integer)):
        return INT64
    if isinstance(value, (float, np.floating)):
        return _DEFAULT_FLOAT
    if isinstance(value, (complex, np.complexfloating)):
        return complex_of(_DEFAULT_FLOAT)
    raise TypeError(f"expected a Python scalar, got {type(value).__name__}")


def promote_types(a: np.dtype, b: np.dtype) -> np.dtype:
    """PyTorch's `torch.promote_types`: as NumPy's within a category, else the higher category's dtype."""
    if a == b:
        return a
    low, high = sorted((a, b), key=category)
    if category(low) == category(high):
        return np.promote_types(a, b)
    if high.kind == "c":
        return np.promote_types(high, low) if low.kind == "f" else high
    return high


def _combine(higher: np.dtype | None, lower: np.dtype | None) -> np.dtype | None:
    """Merge the results of two operand classes, of which `higher` ranks first (c10's `combine_categories`)."""
    if higher is None or lower is None:
        return higher or lower
    if higher.kind == "c":
        return higher
    if higher.kind == "f":
        return complex_of(higher) if lower.kind == "c" else higher
    if higher == BOOL or lower.kind in "fc":
        return promote_types(higher, lower)
    return higher


def result_type(operands: list[tuple[np.dtype, int]]) -> np.dtype:
    """The promoted dtype of `operands`, each a `(dtype, rank)`.

    rank is 2 for an array with dimensions, 1 for a 0-d array, 0 for a Python scalar.
    """
    by_rank: list[np.dtype | None] = [None, None, None]
    for dtype, rank in operands:
        seen = by_rank[rank]
        by_rank[rank] = dtype if seen is None else promote_types(seen, dtype)
    result = _combine(by_rank[2], _combine(by_rank[1], by_rank[0]))
    assert result is not None, "result_type needs at least one operand"
    return result
