"""The independent references of ops: what an op should give, by somebody who shares nothing with its kernel.

A reference is a function of arrays and parameters (or its dotted name). `Each` makes one of a function of Python
numbers, `everywhere` marks one of arrays that holds on everything that the op takes; any other holds where all is
finite, and of a pointwise op in its domain.
"""

from __future__ import annotations

import cmath
import functools
import importlib
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, final

import numpy as np

from graphc.ops.aval import aval_of, results_of, type_of
from graphc.ops.dtypes import is_inexact
from graphc.ops.samples import Complexes, interval
from graphc.ops.scalars import elementary
from graphc.ops.spec import Op, Trait

ELEMENTS = 256  # of an array that a function of Python numbers is asked for
FLOPS = 40_000  # of such a reference
WORK = 2**12  # elements of operands and result, together, that a reference of arrays is asked for
LONG = 2**16  # the same of one marked `everywhere`, which takes a time that is proportional to them
_EXACT_MATH = {"fabs", "copysign", "isnan", "isinf", "isfinite", "atan2", "hypot"}  # never raise


@final
class Each:
    """A function of Python numbers, applied to each element. Where it raises, there is no opinion."""

    def __init__(self, function: Callable[..., Any]):
        self.function = function

    def __call__(self, *arrays: Any, **params: Any) -> np.ndarray:
        shape = np.broadcast_shapes(*(np.shape(a) for a in arrays))
        found = self.at(arrays, params, range(math.prod(shape)))
        return np.array([0 if v is None else v for v in found]).reshape(shape)

    def at(self, arrays: Sequence[Any], params: Mapping[str, Any], places: Sequence[int]) -> list[Any]:
        """The results at some places of the flattened arrays, None where there is none."""
        shape = np.broadcast_shapes(*(np.shape(a) for a in arrays))
        given = [np.broadcast_to(a, shape).reshape(-1)[list(places)].tolist() for a in arrays]
        return [self._one(numbers, params) for numbers in zip(*given, strict=True)]

    def _one(self, numbers: Sequence[Any], params: Mapping[str, Any]) -> Any:
        try:
            found = self.function(*numbers, **params)
        except (ValueError, OverflowError, ZeroDivisionError):
            return None
        return None if isinstance(found, complex) and not cmath.isfinite(found) else found


def everywhere(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a reference of arrays that holds on special values, too, and does not take long."""
    function.everywhere = True  # type: ignore[attr-defined]
    return function


def reference_of(op: Op) -> Callable[..., Any]:
    """The reference as a function of arrays and parameters; a function of `math` is applied to each element.

    LookupError if the declaration names none, or none that exists.
    """
    if op.ref is None:
        raise LookupError(f"{op.name} has no reference")
    if not isinstance(op.ref, str):
        return op.ref
    try:
        return _named(op.ref)
    except LookupError as error:
        raise LookupError(f"{op.name}: {error}") from None


@functools.cache
def _named(name: str) -> Callable[..., Any]:
    path = name.split(".")
    for length in range(len(path) - 1, 0, -1):
        try:
            module = importlib.import_module(".".join(path[:length]))
        except ModuleNotFoundError:
            continue
        found: Any = functools.reduce(getattr, path[length:], module)
        if path[0] == "math":
            return Each(found if path[1] in _EXACT_MATH else elementary(path[1]))
        return Each(found) if path[0] == "operator" else found
    raise LookupError(f"the reference {name} names no module")


def opinion(
    op: Op, arrays: Sequence[np.ndarray], params: Mapping[str, Any], result: Any
) -> list[np.ma.MaskedArray] | None:
    """What the reference of `op` gives on these arrays for each result, in the dtypes of the kernel's; None if nothing.

    Masked where the reference has no opinion, or is not asked: of large arrays, special values and a few others are.
    An array of another shape than the kernel's is a dispute on that. Of several results that may be chosen freely,
    the references' are those nearest to the kernel's.

    result: the kernel's, an array or a tuple of several
    """
    results = results_of(result)
    reference = reference_of(op)
    with np.errstate(all="ignore"):
        if isinstance(reference, Each):
            return [_by_element(reference, arrays, params, results[0])]
        if (
            sum(a.size for a in (*arrays, *results)) > (LONG if getattr(reference, "everywhere", False) else WORK)
            or _flops(op, arrays, params, result) > FLOPS
            or not _holds(op, reference, arrays)
        ):
            return None
        try:
            found = reference(*arrays, **params)
        except ValueError:  # no opinion
            return None
        except Exception:
            if getattr(reference, "everywhere", False):
                raise
            return None  # declared for the samples of the op, it need not take all that the op takes
        said = [_masked(f, r.dtype) for f, r in zip(results_of(found), results, strict=True)]
        return said if op.nearest is None else _chosen(op, arrays, said, result)


def _masked(found: Any, dtype: np.dtype) -> np.ma.MaskedArray:
    known = np.ma.getmaskarray(found) if isinstance(found, np.ma.MaskedArray) else False
    found = np.asarray(np.ma.getdata(found))
    return np.ma.MaskedArray(_in(found, dtype), known | np.zeros(found.shape, bool))


def _chosen(
    op: Op, arrays: Sequence[np.ndarray], said: list[np.ma.MaskedArray], result: Any
) -> list[np.ma.MaskedArray]:
    """Of the right results the one nearest to `result`, the kernel's."""
    if [s.shape for s in said] != [r.shape for r in results_of(result)]:
        return said
    assert op.nearest is not None
    data = tuple(np.ma.getdata(s) for s in said)
    nearest = results_of(op.nearest(data if op.several else data[0], result))
    # of finite operands nan is no result: the reference has none, as for vectors of values that are equal
    finite = all(np.isfinite(a).all() for a in arrays)
    masks = [np.ma.getmaskarray(s) | (np.isnan(n) & finite) for s, n in zip(said, nearest, strict=True)]
    return [np.ma.MaskedArray(n, mask) for n, mask in zip(nearest, masks, strict=True)]


def _flops(op: Op, arrays: Sequence[np.ndarray], params: Mapping[str, Any], result: Any) -> int:
    if op.flops is None or op.traits & Trait.ORDERS:  # Python's sort is fast
        return 0
    return op.flops([aval_of(a) for a in arrays], type_of(result), params)


def _holds(op: Op, reference: Callable[..., Any], arrays: Sequence[np.ndarray]) -> bool:
    if getattr(reference, "everywhere", False):
        return True
    if not all(np.isfinite(a).all() for a in arrays if is_inexact(a.dtype)):
        return False
    if any(a.dtype.kind == "c" for a in arrays) and not any(
        isinstance(s, Complexes) for p in op.samples for s in p.inputs
    ):
        return False
    if not op.pointwise:
        return True
    bounds = [interval(op.domain, k) for k in range(len(arrays))]
    return all(bool(((low <= a) & (a <= high)).all()) for a, (low, high) in zip(arrays, bounds, strict=True))


def _by_element(
    reference: Each, arrays: Sequence[np.ndarray], params: Mapping[str, Any], result: np.ndarray
) -> np.ma.MaskedArray:
    shape = np.broadcast_shapes(*(a.shape for a in arrays))
    places = picked([np.broadcast_to(a, shape).reshape(-1) for a in arrays])
    found = reference.at(arrays, params, places)
    values, mask = np.zeros(math.prod(shape), result.dtype), np.ones(math.prod(shape), bool)
    for place, value in zip(places, found, strict=True):
        if value is not None:
            values[place], mask[place] = _as(value, result.dtype), False
    return np.ma.MaskedArray(values.reshape(shape), mask.reshape(shape))


def picked(flat: Sequence[np.ndarray]) -> list[int]:
    """At most `ELEMENTS` places of flat arrays: those of special values first, then some at even distances."""
    size = flat[0].size if flat else 1
    if size <= ELEMENTS:
        return list(range(size))
    special = np.zeros(size, bool)
    for a in flat:
        special |= ~np.isfinite(a) | (a == 0) if is_inexact(a.dtype) else a < 0
        special |= a == flat[0] if a is not flat[0] else False
    chosen = np.flatnonzero(special)[: ELEMENTS // 2]
    return sorted({*chosen.tolist(), *np.linspace(0, size - 1, ELEMENTS // 2).astype(int).tolist()})


def _as(value: Any, dtype: np.dtype) -> Any:
    """A Python number as one of `dtype`: integers by their lowest bits."""
    if dtype.kind == "b":
        return bool(value)
    if dtype.kind in "iu":
        bits = 8 * dtype.itemsize
        low = int(value) % 2**bits
        return low - 2**bits if dtype.kind == "i" and low >= 2 ** (bits - 1) else low
    return value


def _in(found: np.ndarray, dtype: np.dtype) -> np.ndarray:
    if found.dtype == object:
        return np.array([_as(v, dtype) for v in found.reshape(-1)], dtype).reshape(found.shape)
    return found if found.dtype == dtype or found.dtype.kind == "c" != dtype.kind else found.astype(dtype)
