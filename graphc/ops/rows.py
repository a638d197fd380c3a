"""What reductions, scans and orders mean: functions of a row of Python numbers, written from the definitions.

They are references (see graphc.ops.references) and share nothing with the kernels. A row that a definition does not
decide raises ValueError: there is no opinion.
"""

from __future__ import annotations

import cmath
import functools
import itertools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from graphc.ops import scalars
from graphc.ops.references import everywhere

Row = Sequence[Any]
UNIT = 2**1074  # any finite float is a multiple of 1 / UNIT
LONG = 1000  # elements of a row, beyond which its beginnings are not looked at one by one


def reduced(function: Callable[..., Any], **fixed: Any) -> Callable[..., np.ndarray]:
    """`function(row, **params)`, a number, for each of the rows along `axis` (a tuple, or one), dims kept or not."""

    def reference(x: np.ndarray, axis: Any, keepdims: bool = False, **params: Any) -> np.ndarray:
        axes = tuple(axis) if isinstance(axis, tuple) else (axis,) if x.ndim else ()
        rest = [k for k in range(x.ndim) if k not in axes]
        sizes = [x.shape[k] for k in rest]
        flat = np.transpose(x, (*rest, *axes)).reshape(math.prod(sizes), -1 if x.size else 0).tolist()
        found = _objects([function(row, **fixed, **params) for row in flat])
        return found.reshape([1 if k in axes else n for k, n in enumerate(x.shape)] if keepdims else sizes)

    return everywhere(reference)


def picked_extreme(largest: bool) -> Callable[..., tuple[np.ndarray, ...]]:
    """The largest (or smallest) of each of the rows along `axis`, and where it is: the first of equals."""

    def reference(x: np.ndarray, axis: int, keepdims: bool) -> tuple[np.ndarray, ...]:
        place = functools.partial(place_of_extreme, largest=largest)
        functions = (lambda row: row[place(row)]), place
        return tuple(reduced(function)(x, axis=axis, keepdims=keepdims) for function in functions)

    return everywhere(reference)


def scanned(function: Callable[..., Row], **fixed: Any) -> Callable[..., np.ndarray]:
    """`function(row, **params)`, a row, for each of the rows along one axis."""

    def reference(x: np.ndarray, axis: int, **params: Any) -> np.ndarray:
        last = np.moveaxis(x, axis, -1) if x.ndim else x.reshape(1)
        found = [v for row in last.reshape(-1, last.shape[-1]).tolist() for v in function(row, **fixed, **params)]
        result = _objects(found).reshape(last.shape)
        return np.moveaxis(result, -1, axis) if x.ndim else result.reshape(())

    return everywhere(reference)


def backward(function: Callable[..., Row], **fixed: Any) -> Callable[..., np.ndarray]:
    """The gradient of a reduction: `function(g, row, **params)`, a row, for each of the rows and its cotangent."""

    def slope(g: np.ndarray, x: np.ndarray, axis: Any, keepdims: bool = False, **params: Any) -> np.ndarray:
        axes = tuple(axis)
        kept = g.reshape([1 if k in axes else n for k, n in enumerate(x.shape)])
        rest = [k for k in range(x.ndim) if k not in axes]
        order = (*rest, *axes)
        rows = np.transpose(x, order).reshape(math.prod(x.shape[k] for k in rest), -1)
        heads = np.transpose(kept, order).reshape(-1)
        found = [function(h, row, **fixed, **params) for h, row in zip(heads.tolist(), rows.tolist(), strict=True)]
        moved = np.array(found, float).reshape([x.shape[k] for k in order])
        return np.transpose(moved, np.argsort(order))

    return slope


def _objects(found: Sequence[Any]) -> np.ndarray:
    result = np.empty(len(found), object)
    result[:] = found
    return result


def total(row: Row) -> Any:
    """The sum, rounded once."""
    if any(isinstance(v, complex) for v in row):
        return complex(total([v.real for v in row]), total([v.imag for v in row]))
    if not any(isinstance(v, float) for v in row) or not all(map(math.isfinite, row)):
        return sum(row)
    try:
        return math.fsum(row)
    except OverflowError:
        return sum(row)


def mean(row: Row) -> Any:
    return total(row) / len(row) if row else scalars.NAN


def variance(row: Row, correction: float) -> float:
    """The sum of squared distances from the mean over n - correction, a number below 0 counting as 0."""
    freedom = max(len(row) - correction, 0.0)
    middle = mean(row)
    distances = [abs(v - middle) for v in row]
    return scalars.quotient(total([d * d for d in distances]), freedom)


def product(row: Row) -> Any:
    found = 1
    for v in row:
        found = found * v
    return found


def extreme(row: Row, better: Callable[[Any, Any], Any]) -> Any:
    found = row[0]
    for v in row[1:]:
        found = better(found, v)
    return found


def place_of_extreme(row: Row, largest: bool) -> int:
    """The first of equals; the first nan before all."""
    best = 0
    for i, v in enumerate(row):
        if row[best] != row[best]:
            break
        if v != v or (v > row[best] if largest else v < row[best]):
            best = i
    return best


def log_of_sum(row: Row) -> Any:
    """log(sum(exp(x)))"""
    if any(isinstance(v, complex) for v in row):
        return cmath.log(sum(map(cmath.exp, row)))
    if any(v != v for v in row):
        return scalars.NAN
    top = max(row, default=-scalars.INF)
    return top if not math.isfinite(top) else top + math.log(math.fsum(math.exp(v - top) for v in row))


def power_norm(row: Row, order: float) -> float:
    """sum(|x|^order)^(1/order), and for order 0 how many are not 0."""
    if order == 0:
        return float(sum(v != 0 for v in row))
    return scalars.power(float(total([scalars.power(float(abs(v)), order) for v in row])), 1 / order)


def _as_float(units: int) -> float:
    try:
        return units / UNIT
    except OverflowError:
        return math.copysign(scalars.INF, units)


def running_total(row: Row, reverse: bool = False) -> Row:
    row = row[::-1] if reverse else row
    exact = all(isinstance(v, float) and math.isfinite(v) for v in row)
    whole = (n * (UNIT // d) for n, d in map(float.as_integer_ratio, row)) if exact else row
    found = [_as_float(total) if exact else total for total in itertools.accumulate(whole)]
    return found[::-1] if reverse else found


def running_product(row: Row) -> Row:
    return list(itertools.accumulate(row, lambda a, b: a * b))


def running_log_of_sum(row: Row) -> Row:
    if len(row) > LONG:
        raise ValueError("each sum begins anew")
    return [log_of_sum(row[: i + 1]) for i in range(len(row))]


def shares(row: Row) -> Row:
    """exp(x) / sum(exp(x)): softmax"""
    return [math.exp(v) if math.isfinite(v) else 0.0 if v == -scalars.INF else v for v in log_shares(row)]


def log_shares(row: Row) -> Row:
    """x - log(sum(exp(x))); nan where that is no number"""
    if any(isinstance(v, complex) for v in row):
        raise ValueError("of real numbers only")
    top = log_of_sum(row)
    return [v - top if math.isfinite(top) else scalars.NAN for v in row]


def order(row: Row, descending: bool) -> Row:
    """Places in order; equals as they were, nan as the largest."""

    def key(i: int) -> tuple[bool, Any]:
        odd = row[i] != row[i]
        return (odd is not descending, 0 if odd else -row[i] if descending else row[i])

    return sorted(range(len(row)), key=key)


def place_of_median(row: Row, ignore_nan: bool) -> int:
    """The lower one; a nan that counts before all."""
    numbers = sum(v == v for v in row)
    some = numbers == len(row) or (ignore_nan and numbers)
    return order(row, False)[(numbers - 1) // 2 if some else 0 if ignore_nan else numbers]


def place_of_mode(row: Row) -> int:
    """The smallest of the most frequent ones, where it is last; each nan is another."""
    best = max(row, key=lambda v: (row.count(v) if v == v else 1, -v))
    return max(i for i, v in enumerate(row) if v is best or v == best)


def running_place_of_extreme(row: Row, largest: bool) -> Row:
    """The last of equals; from the first nan on, the last nan."""

    def later(i: int, j: int) -> int:
        if row[j] != row[j]:
            return j
        return j if row[j] == row[i] or (row[j] > row[i] if largest else row[j] < row[i]) else i

    return list(itertools.accumulate(range(len(row)), later))


# gradients, at ties and zeros as well
def extreme_slope(g: float, row: Row, largest: bool) -> Row:
    """Equals share; beside nan there is no number."""
    if any(v != v for v in row):
        return [scalars.NAN] * len(row)
    best = max(row) if largest else min(row)
    count = sum(v == best for v in row)
    return [g / count if v == best else 0.0 for v in row]


def product_slope(g: float, row: Row) -> Row:
    """g times the product of the others."""
    if not all(map(math.isfinite, row)):
        raise ValueError("the limits are left to the rule")
    before, after = (list(itertools.accumulate(r, operator.mul, initial=1)) for r in (row[:-1], row[:0:-1]))
    return [g * a * b for _, a, b in zip(row, before, after[::-1], strict=False)]


def power_norm_slope(g: float, row: Row, order: float) -> Row:
    """g sgn(x) (|x| / r)^(order - 1), 0 at a norm of 0 and, for orders below 1, where x is 0"""
    norm = power_norm(row, order)
    if order == 0 or not norm:
        return [0.0] * len(row)
    if not math.isfinite(norm) or not all(map(math.isfinite, row)):
        raise ValueError("the limits are left to the rule")
    return [0.0 if not v and order < 1 else g * scalars.sign(v) * scalars.power(abs(v) / norm, order - 1) for v in row]


def _without(k: int, g: Row, row: Row) -> float:
    products = itertools.accumulate(row[k + 1 :], operator.mul, initial=product(row[:k]))
    return math.fsum(h * p for h, p in zip(g[k:], products, strict=True))


def running_product_slope(g: np.ndarray, x: np.ndarray, axis: int) -> np.ndarray:
    """At place k: the sum over i >= k of g[i] times the product of the first i without the k-th."""
    if not np.isfinite(x).all():
        raise ValueError("the limits are left to the rule")
    heads, rows = (np.moveaxis(a, axis, -1).reshape(-1, x.shape[axis]) for a in (g, x))
    found = [
        [_without(k, h, row) for k in range(len(row))] for h, row in zip(heads.tolist(), rows.tolist(), strict=True)
    ]
    return np.moveaxis(np.array(found).reshape(np.moveaxis(x, axis, -1).shape), -1, axis)
