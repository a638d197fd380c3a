"""`assert_close` and `make_tensor`. As `torch.testing`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from eager.core import dtypes
from eager.core.dtypes import dtype as DType
from eager.core.sparse import is_sparse
from eager.core.tensor import Tensor
from eager.functional.strides import stride
from eager.rng import functions
from graphc.ops.dtypes import BOOL, FLOAT32, is_inexact, promote_types

__all__ = ["assert_close", "make_tensor"]

# (rtol, atol) by dtype; all others must be equal
TOLERANCES: dict[DType, tuple[float, float]] = {
    dtypes.float16: (1e-3, 1e-5), dtypes.bfloat16: (1.6e-2, 1e-5), dtypes.float32: (1.3e-6, 1e-5),
    dtypes.float64: (1e-7, 1e-7), dtypes.complex64: (1.3e-6, 1e-5), dtypes.complex128: (1e-7, 1e-7),
}  # fmt: skip
NUMBERS = (int, float, complex, np.number)
BOOLS = (bool, np.bool_)


class Options(NamedTuple):
    """How values are compared."""

    rtol: float | None
    atol: float | None
    equal_nan: bool
    check_dtype: bool
    check_stride: bool
    msg: Any


def assert_close(
    actual: Any,
    expected: Any,
    *,
    allow_subclasses: bool = True,
    rtol: float | None = None,
    atol: float | None = None,
    equal_nan: bool = False,
    check_device: bool = True,
    check_dtype: bool = True,
    check_layout: bool = True,
    check_stride: bool = False,
    msg: str | Callable[[str], str] | None = None,
) -> None:
    """Raise AssertionError unless |actual - expected| <= atol + rtol |expected|. As `torch.testing.assert_close`.

    For tensors, arrays, numbers, and sequences and mappings of these. The tolerances depend on the dtype unless both
    are given. All tensors here are strided and on the CPU, so that `check_device` and `check_layout` find nothing.
    """
    if (rtol is None) != (atol is None):
        missing = "rtol" if rtol is None else "atol"
        raise ValueError(f"Both 'rtol' and 'atol' must be either specified or omitted, but got no {missing}.")
    options = Options(rtol, atol, equal_nan, check_dtype, check_stride, msg)
    for a, b, place in list(_pairs(actual, expected, (), options)):
        _compare(a, b, place, options)


def _pairs(actual: Any, expected: Any, place: tuple[Any, ...], options: Options) -> list[tuple[Any, Any, Any]]:
    """What is to be compared with what, and where it is. AssertionError for nests of different structure."""
    if _is_sequence(actual) and _is_sequence(expected):
        if len(actual) != len(expected):
            text = f"The length of the sequences mismatch: {len(actual)} != {len(expected)}"
            raise _failure(text, place, options)
        items = [(k, a, b) for k, (a, b) in enumerate(zip(actual, expected, strict=True))]
    elif isinstance(actual, Mapping) and isinstance(expected, Mapping):
        missing, additional = expected.keys() - actual.keys(), actual.keys() - expected.keys()
        if missing or additional:
            text = (
                f"The keys of the mappings do not match:\nMissing keys in the actual mapping: {sorted(missing)}\n"
                f"Additional keys in the actual mapping: {sorted(additional)}"
            )
            raise _failure(text, place, options)
        items = [(k, actual[k], expected[k]) for k in sorted(actual, key=str)]
    else:
        return [(actual, expected, place)]
    return [pair for k, a, b in items for pair in _pairs(a, b, (*place, k), options)]


def _is_sequence(x: Any) -> bool:
    return isinstance(x, Sequence) and not isinstance(x, str)


def _failure(text: str, place: tuple[Any, ...], options: Options) -> AssertionError:
    if place:
        text += f"\n\nThe failure occurred for item {''.join(f'[{k!r}]' for k in place)}"
    msg = options.msg
    return AssertionError(text if msg is None else msg(text) if callable(msg) else msg)


def _compare(actual: Any, expected: Any, place: tuple[Any, ...], options: Options) -> None:
    text = _difference(actual, expected, options)
    if text is not None:
        raise _failure(text, place, options)


def _difference(actual: Any, expected: Any, options: Options) -> str | None:
    """What is wrong with `actual`, or None. TypeError for what cannot be compared."""
    if actual is None and expected is None:
        return None
    if actual is None or expected is None:
        return f"None mismatch: {actual} is not {expected}"
    if isinstance(actual, BOOLS) and isinstance(expected, BOOLS):
        return None if bool(actual) is bool(expected) else f"Booleans mismatch: {actual} is not {expected}"
    if _is_number(actual) and _is_number(expected):
        if options.check_dtype and type(actual) is not type(expected):
            return f"The (d)types do not match: {type(actual)} != {type(expected)}."
        floating = not all(isinstance(x, (int, np.integer)) for x in (actual, expected))
        return _scalar_difference(actual, expected, TOLERANCES[dtypes.float64] if floating else (0, 0), options)
    tensors: list[Any] = [Tensor._wrap(x) if isinstance(x, np.ndarray) else x for x in (actual, expected)]
    if not all(isinstance(x, Tensor) for x in tensors):
        raise TypeError(f"No comparison pair was able to handle inputs of type {type(actual)} and {type(expected)}.")
    return _tensor_difference(tensors[0], tensors[1], options)


def _is_number(x: Any) -> bool:
    return isinstance(x, NUMBERS) and not isinstance(x, BOOLS)


def _tensor_difference(actual: Tensor, expected: Tensor, options: Options) -> str | None:
    attributes: list[tuple[str, Any, Any]] = [("shape", actual.shape, expected.shape)]
    if options.check_dtype:
        attributes.append(("dtype", actual.dtype, expected.dtype))
    if options.check_stride:
        attributes.append(("stride()", stride(actual), stride(expected)))
    for name, mine, wanted in attributes:
        if mine != wanted:
            return f"The values for attribute '{name}' do not match: {mine} != {wanted}."
    found = [TOLERANCES.get(t.dtype, (0, 0)) for t in (actual, expected)]
    tolerances = max(found[0][0], found[1][0]), max(found[0][1], found[1][1])
    actual, expected = (t.to_dense() if is_sparse(t) else t for t in (actual, expected))
    common = promote_types(actual._dtype(), expected._dtype())
    a, b = (_comparable(t._array(), common) for t in (actual, expected))
    if not a.shape:
        return _scalar_difference(a.item(), b.item(), tolerances, options)
    return _array_difference(a, b, tolerances, options)


def _comparable(array: np.ndarray, common: np.dtype) -> np.ndarray:
    """`array` in a dtype that NumPy computes in, without overflow of small integers."""
    if common == BOOL or not is_inexact(common):
        return array.astype(np.int64)
    return array.astype(FLOAT32 if common.itemsize == 2 else common)


def _tolerances(default: tuple[float, float], options: Options) -> tuple[float, float]:
    return default if options.rtol is None or options.atol is None else (options.rtol, options.atol)


def _scalar_difference(actual: Any, expected: Any, default: tuple[float, float], options: Options) -> str | None:
    rtol, atol = _tolerances(default, options)
    difference = abs(actual - expected)
    nan = options.equal_nan and actual != actual and expected != expected
    if nan or actual == expected or (difference <= atol + rtol * abs(expected) and np.isfinite(difference)):
        return None
    relative = difference / abs(expected) if expected else float("inf")
    exact = rtol == 0 and atol == 0
    limits = ("", "") if exact else (f" (up to {atol} allowed)", f" (up to {rtol} allowed)")
    return (
        f"Scalars are not {'equal' if exact else 'close'}!\n\nExpected {expected} but got {actual}.\n"
        f"Absolute difference: {difference}{limits[0]}\nRelative difference: {relative}{limits[1]}"
    )


def _array_difference(a: np.ndarray, b: np.ndarray, default: tuple[float, float], options: Options) -> str | None:
    rtol, atol = _tolerances(default, options)
    match = np.isclose(a, b, rtol=rtol, atol=atol, equal_nan=options.equal_nan)
    if match.all():
        return None
    absolute = np.abs(a - b)
    relative = absolute / np.abs(b) if absolute.dtype.kind == "f" else (absolute / np.abs(b)).astype(FLOAT32)
    exact = rtol == 0 and atol == 0
    lines = [f"Tensor-likes are not {'equal' if exact else 'close'}!", ""]
    wrong = match.size - np.count_nonzero(match)
    lines.append(f"Mismatched elements: {wrong} / {match.size} ({wrong / match.size:.1%})")
    for name, values, limit in (("absolute", absolute, atol), ("relative", relative, rtol)):
        values = np.where(match, 0, values)
        at = tuple(int(k) for k in np.unravel_index(np.argmax(values), values.shape))
        allowed = "" if exact else f" (up to {limit} allowed)"
        lines.append(f"Greatest {name} difference: {values[at].item()} at index {at}{allowed}")
    return "\n".join(lines)


def make_tensor(
    *shape: Any,
    dtype: Any,
    device: Any = "cpu",
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """A tensor of uniform random numbers in [low, high). As `torch.testing.make_tensor`.

    By default floats are in [-9, 9), integers in [-9, 10) ([0, 10) if unsigned). `noncontiguous`: with gaps in memory.
    ValueError for low >= high, or for integers that are to require grad.
    """
    sizes = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], Sequence) else shape
    kind = dtypes.to_numpy(dtype)
    floating = is_inexact(kind)
    if requires_grad and not floating:
        raise ValueError(f"`requires_grad=True` is not supported for boolean and integral dtypes, but got {dtype=}")
    usual = (-9, 9) if floating else (0, 2) if kind == BOOL else (0, 10) if kind.kind == "u" else (-9, 10)
    bounds = usual[0] if low is None else low, usual[1] if high is None else high
    if bounds[0] >= bounds[1]:
        raise ValueError(f"`low` must be less than `high`, but got {bounds[0]} >= {bounds[1]}")
    wide = (*sizes[:-1], 2 * sizes[-1]) if noncontiguous and sizes and sizes[-1] else sizes
    if not floating:
        made = functions.randint(int(bounds[0]), int(bounds[1]), wide)._array().astype(kind)
    else:
        parts = [functions.rand(wide, dtype=dtypes.float64)._array() for _ in range(2 if kind.kind == "c" else 1)]
        parts = [part * (bounds[1] - bounds[0]) + bounds[0] for part in parts]
        made = (parts[0] if len(parts) == 1 else parts[0] + 1j * parts[1]).astype(kind)
    if wide != sizes:
        made = made[..., ::2]
    if exclude_zero:
        made[made == 0] = 1
    result = Tensor._wrap(made)
    return result.requires_grad_() if requires_grad else result
