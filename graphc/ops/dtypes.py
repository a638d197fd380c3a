"""Dtypes: short names, categories, and PyTorch's type promotion.

Inside the registry and the graph a dtype is a `numpy.dtype`. Promotion follows
https://docs.pytorch.org/docs/stable/tensor_attributes.html#type-promotion-doc : operands are ranked by
category (bool < integer < floating < complex) in three classes, dimensioned arrays over 0-d arrays over
Python scalars; a class of lower rank changes the result only when its category is higher.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

BOOL = np.dtype(np.bool_)
UINT8 = np.dtype(np.uint8)
INT32 = np.dtype(np.int32)
INT64 = np.dtype(np.int64)
UNSIGNED = {n: np.dtype(f"u{n}") for n in (1, 2, 4, 8)}  # by the bytes of an element
FLOAT16 = np.dtype(np.float16)
FLOAT32 = np.dtype(np.float32)
FLOAT64 = np.dtype(np.float64)
COMPLEX64 = np.dtype(np.complex64)
COMPLEX128 = np.dtype(np.complex128)

SHORT_NAMES: dict[np.dtype, str] = {
    BOOL: "bool", UINT8: "u8", np.dtype(np.int8): "i8", np.dtype(np.int16): "i16", INT32: "i32", INT64: "i64",
    FLOAT16: "f16", FLOAT32: "f32", FLOAT64: "f64", COMPLEX64: "c64", COMPLEX128: "c128", np.dtype(np.uint16): "u16",
    np.dtype(np.uint32): "u32", np.dtype(np.uint64): "u64",
}  # fmt: skip


@functools.cache
def bfloat16() -> np.dtype:
    """The dtype of brain floats, an extension of NumPy's. Imports ml_dtypes, at the first call."""
    import ml_dtypes

    dtype = np.dtype(ml_dtypes.bfloat16)
    SHORT_NAMES[dtype] = "bf16"
    BY_SHORT_NAME["bf16"] = dtype
    return dtype


BY_SHORT_NAME = {name: dtype for dtype, name in SHORT_NAMES.items()}


def of_short_name(name: str) -> np.dtype | None:
    """The dtype that `SHORT_NAMES` calls `name`, or None."""
    return bfloat16() if name == "bf16" else BY_SHORT_NAME.get(name)


# PyTorch's scalar type names, as its messages use them
TORCH_NAMES = {"f16": "Half", "bf16": "BFloat16", "f32": "Float", "f64": "Double", "bool": "Bool", "u8": "Byte",
               "i8": "Char", "i16": "Short", "i32": "Int", "i64": "Long", "c64": "ComplexFloat",
               "c128": "ComplexDouble", "u16": "UInt16", "u32": "UInt32", "u64": "UInt64"}  # fmt: skip

# NumPy gives its extensions the kind of raw bytes, "V"; bfloat16 is the only one here
_CATEGORY = {"b": 0, "u": 1, "i": 1, "f": 2, "V": 2, "c": 3}
_KIND = {"V": "f"}
_HALF = "eE"  # the characters of float16 and bfloat16
_DEFAULT_FLOAT = FLOAT32
NO_PROMOTION = "Promotion for uint16, uint32, uint64 types is not supported, attempted to promote {} and {}"


def category(dtype: np.dtype) -> int:
    """0 for bool, 1 for integer, 2 for floating, 3 for complex."""
    return _CATEGORY[dtype.kind]


def kind(dtype: np.dtype) -> str:
    """`dtype.kind`, where bfloat16 is floating too: "b", "i", "u", "f" or "c"."""
    return _KIND.get(dtype.kind, dtype.kind)


def is_inexact(dtype: np.dtype) -> bool:
    """Whether `dtype` is floating or complex, i.e. can carry a gradient."""
    return dtype.kind in "fcV"


def is_floating(dtype: np.dtype) -> bool:
    """Whether `dtype` is a real floating one."""
    return dtype.kind in "fV"


def finfo(dtype: np.dtype) -> Any:
    """`numpy.finfo`, which the extensions of NumPy have, too."""
    if dtype.isbuiltin == 1:
        return np.finfo(dtype)
    import ml_dtypes

    return ml_dtypes.finfo(dtype)


def is_half(dtype: np.dtype) -> bool:
    """Whether `dtype` has 16 bits and is floating: kernels compute in float32, and round once."""
    return dtype.char in _HALF


def default_float() -> np.dtype:
    """The dtype given to Python floats and to results of true division of integers."""
    return _DEFAULT_FLOAT


def set_default_float(dtype: np.dtype) -> None:
    """Set what `default_float` returns. Raises TypeError unless `dtype` is floating."""
    global _DEFAULT_FLOAT
    if not is_floating(dtype):
        raise TypeError("only floating-point types are supported as the default type")
    _DEFAULT_FLOAT = dtype


def real_of(dtype: np.dtype) -> np.dtype:
    """The dtype of the parts of a complex dtype; any other dtype itself."""
    return {COMPLEX64: FLOAT32, COMPLEX128: FLOAT64}.get(dtype, dtype)


def complex_of(dtype: np.dtype) -> np.dtype:
    """The complex dtype whose parts have floating dtype `dtype`; of a complex dtype itself."""
    return COMPLEX128 if dtype in (FLOAT64, COMPLEX128) else COMPLEX64


def of_scalar(value: object) -> np.dtype:
    """The dtype that PyTorch gives to a Python scalar. TypeError for anything else, OverflowError beyond 64 bits."""
    if isinstance(value, (bool, np.bool_)):
        return BOOL
    if isinstance(value, (int, np.integer)):
        if type(value) is not int:  # a size that is not known is not compared
            return INT64
        _check_width(value)
        return np.dtype(np.uint64) if value >= 2**63 else INT64
    if isinstance(value, (float, np.floating)):
        return _DEFAULT_FLOAT
    if isinstance(value, (complex, np.complexfloating)):
        return complex_of(_DEFAULT_FLOAT)
    raise TypeError(f"expected a Python scalar, got {type(value).__name__}")


def _check_width(value: int) -> None:
    if not -(2**63) <= value < 2**64:
        raise OverflowError("int too big to convert")


def scalar_array(value: Any, dtype: np.dtype) -> np.ndarray:
    """The Python scalar `value` as a 0-d array of `dtype`; an integer that is out of range wraps, as in PyTorch.

    OverflowError for an integer of more than 64 bits.
    """
    if type(value) is int:
        _check_width(value)
    try:
        return np.array(value, dtype)
    except OverflowError:
        return np.array(int(value) % 2**64, np.uint64).astype(dtype)


def _is_wide_unsigned(dtype: np.dtype) -> bool:
    return dtype.kind == "u" and dtype.itemsize > 1


def promote_types(a: np.dtype, b: np.dtype) -> np.dtype:
    """PyTorch's `torch.promote_types`: as NumPy's within a category, else the higher category's dtype.

    RuntimeError for an unsigned integer of more than 8 bits beside anything but itself and real floats.
    """
    if a == b:
        return a
    low, high = sorted((a, b), key=category)
    if (_is_wide_unsigned(a) or _is_wide_unsigned(b)) and not is_floating(high):
        raise RuntimeError(NO_PROMOTION.format(*(TORCH_NAMES[SHORT_NAMES[t]] for t in (a, b))))
    if category(low) == category(high):
        return FLOAT32 if is_half(a) and is_half(b) else np.promote_types(a, b)
    return COMPLEX128 if high.kind == "c" and low == FLOAT64 else high


def _combine(higher: np.dtype | None, lower: np.dtype | None) -> np.dtype | None:
    """Merge the results of two operand classes, of which `higher` ranks first (c10's `combine_categories`)."""
    if higher is None or lower is None:
        return higher or lower
    if higher.kind == "c":
        return higher
    if is_floating(higher):
        return complex_of(higher) if lower.kind == "c" else higher
    if higher == BOOL:
        return promote_types(higher, lower)
    if is_inexact(lower):
        return lower
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
