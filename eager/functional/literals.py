"""The array of numbers, nested sequences and arrays: PyTorch's rules for its dtype, and its errors."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from eager.core import dtypes
from eager.core.tensor import Tensor
from graphc.ops.dtypes import complex_of, default_float, is_inexact, of_scalar, promote_types

_PYTHON = {bool, int, float, complex}
_SEQUENCES = {list, tuple}
_NESTED = (list, tuple, np.ndarray, np.generic)


def array_of(data: Any, dtype: Any, name: str = "tensor") -> np.ndarray:
    """A new array of `data` with PyTorch's dtype for it, or with `dtype`."""
    wanted = None if dtype is None else dtypes.to_numpy(dtype, name)
    if isinstance(data, Tensor):
        return _copied(data._array(), wanted)
    if isinstance(data, (np.ndarray, np.generic)):
        dtypes.of_numpy(data.dtype)
        return _copied(np.asarray(data), wanted)
    kinds, leaves = leaves_of(data)
    if not kinds <= _PYTHON and any(
        issubclass(kind, Sequence) and not issubclass(kind, (str, bytes)) for kind in kinds
    ):
        data = _listed(data)  # `x.shape`, ranges, named tuples
        kinds, leaves = leaves_of(data)
    if not kinds <= _PYTHON:
        data = _resolved(data, kinds, leaves)
        wanted = functools.reduce(promote_types, map(dtype_of, leaves)) if wanted is None else wanted
    try:
        array = np.array(data, wanted)
    except (ValueError, TypeError) as error:
        check_sequence(data)
        if complex in kinds and wanted is not None:
            real = is_inexact(wanted)
            raise TypeError(
                "must be real number, not complex" if real else "'complex' object cannot be interpreted as an integer"
            ) from None
        raise error
    except OverflowError:
        if wanted is None:
            raise
        # out of range of a narrow integer: PyTorch lets negative numbers wrap
        return _wrapped(np.array(data), wanted)
    if wanted is None:
        if array.dtype.kind in "fc":
            return array.astype(complex_of(default_float()) if array.dtype.kind == "c" else default_float())
        if array.dtype.kind not in "bi":
            check_sequence(data)
            if not kinds <= _PYTHON:
                raise RuntimeError(f"Could not infer dtype of {type(data).__name__}")
            raise ValueError("Overflow when unpacking long long")
    elif wanted.kind in "iu" and array.size and float in kinds:
        return _wrapped(np.array(data), wanted)
    return array


def _copied(array: np.ndarray, wanted: np.dtype | None) -> np.ndarray:
    if wanted is not None and wanted.kind not in "cb" and array.dtype.kind == "c":
        array = array.real
    return np.array(array, wanted, order="C")


def _wrapped(values: np.ndarray, wanted: np.dtype) -> np.ndarray:
    """Numbers as integers of `wanted`, which they must fit into; negative ones wrap if it has no sign."""
    limits = np.iinfo(wanted)
    low = 0 if wanted.kind == "u" and values.dtype.kind == "f" else limits.min if wanted.kind == "i" else -limits.max
    if not bool(np.all((values >= low) & (values <= limits.max))):
        raise RuntimeError(f"value cannot be converted to type {wanted} without overflow")
    return values.astype(np.int64).astype(wanted) if limits.max <= 2**63 else values.astype(wanted)


def leaves_of(data: Any) -> tuple[set[type], list[Any]]:
    """The types of what nested lists and tuples hold, and the things themselves."""
    level = [data]
    kinds: set[type] = {type(data)}
    while kinds and kinds <= _SEQUENCES:
        level = list(chain.from_iterable(level))
        kinds = set(map(type, level))
    while kinds & _SEQUENCES and all(issubclass(kind, _NESTED) for kind in kinds):  # lists beside arrays
        level = list(chain.from_iterable(x if x.__class__ in _SEQUENCES else np.ravel(x) for x in level))
        kinds = set(map(type, level))
    return kinds, level


def _listed(data: Any) -> Any:
    """Sequences of any class as lists."""
    is_sequence = isinstance(data, Sequence) and not isinstance(data, (str, bytes))
    return [_listed(each) for each in data] if is_sequence else data


def dtype_of(x: Any) -> np.dtype:
    """The dtype that a leaf gives to the whole."""
    if isinstance(x, Tensor):
        return x._dtype()
    return x.dtype if isinstance(x, (np.ndarray, np.generic)) else of_scalar(x)


def _resolved(data: Any, kinds: set[type], leaves: list[Any]) -> Any:
    """`data` with tensors as numbers. Raises PyTorch's error for what is no number."""
    check_sequence(data)
    if any(issubclass(kind, Tensor) for kind in kinds):
        data = _with_numbers(data)
    for x in leaves:
        if isinstance(x, np.ndarray):
            dtypes.of_numpy(x.dtype)
    return data


def _with_numbers(data: Any) -> Any:
    if isinstance(data, Tensor):
        if data._d.shape and data._array().size != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        return data.item()
    return [_with_numbers(x) for x in data] if isinstance(data, (list, tuple)) else data


def check_sequence(data: Any) -> None:
    """Raise PyTorch's error for a sequence that is ragged or holds what is no number."""
    shape: list[int] = []
    first = data
    while isinstance(first, Sequence):
        if isinstance(first, str):
            if shape:
                raise ValueError(f"too many dimensions '{type(first).__name__}'")
            break
        shape.append(len(first))
        if not first:
            break
        first = first[0]
    if isinstance(first, np.ndarray):
        shape += first.shape
    _check_level(data, shape, 0)


def _check_level(data: Any, shape: list[int], depth: int) -> None:
    if depth == len(shape):
        if isinstance(data, str):
            raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
        if isinstance(data, Sequence):
            raise TypeError(f"'{type(data).__name__}' object cannot be interpreted as an integer")
        if not isinstance(data, (bool, int, float, complex, np.generic, np.ndarray, Tensor)):
            raise RuntimeError(f"Could not infer dtype of {type(data).__name__}")
        return
    if isinstance(data, np.ndarray) and data.ndim:
        if data.shape != tuple(shape[depth:]):
            raise ValueError(f"expected sequence of length {shape[depth]} at dim {depth} (got {len(data)})")
        return
    if isinstance(data, str):
        raise TypeError(f"new(): invalid data type '{type(data).__name__}'")
    if not isinstance(data, Sequence):
        raise TypeError("not a sequence")
    if len(data) != shape[depth]:
        raise ValueError(f"expected sequence of length {shape[depth]} at dim {depth} (got {len(data)})")
    for item in data:
        _check_level(item, shape, depth + 1)
