"""`resample`: each place along an axis of the result is a sum of a few places of the operand, with known weights.

Images are resized, and pooled over windows of uneven size, along one axis after the other. As products with matrices of
weights they would spread one nan over its whole row, for 0 * nan is nan, and take time for the zeros.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from graphc.ops import parts
from graphc.ops.aval import Aval
from graphc.ops.references import everywhere
from graphc.ops.rounding import Rounding
from graphc.ops.rules import accepting
from graphc.ops.samples import Sample
from graphc.ops.spec import Op, Rule, Trait, op

NONE = -1  # in a table of places: there are fewer than elsewhere
SHORT = 128  # places along the axis: up to these a product with a matrix is quicker
UNROLLED = 16  # places to a sum


Table = tuple[tuple[tuple[int, ...], ...], tuple[tuple[float, ...], ...]]  # places and weights


def rows_of(places: np.ndarray, weights: np.ndarray) -> Table:
    """A table of places and one of weights, (most places of a sum, sums) both, as the op takes them."""
    return tuple(map(tuple, places.tolist())), tuple(map(tuple, weights.tolist()))


def table_of(weights: np.ndarray) -> Table:
    """`rows_of` what is not 0 in a matrix (places, sums) of weights."""
    used = weights != 0
    most = max(int(used.sum(0).max(initial=0)), 1)
    places = np.argsort(~used, axis=0, kind="stable")[:most]
    shares = np.take_along_axis(weights, places, 0)
    return rows_of(np.where(shares != 0, places, NONE), shares)


@functools.lru_cache(256)
def _arrays(places: Any, weights: Any) -> tuple[np.ndarray, np.ndarray]:
    return np.array(places, np.int64), np.array(weights, np.float64)


@functools.lru_cache(256)
def _matrix(places: Any, weights: Any, size: int) -> np.ndarray:
    table, shares = _arrays(places, weights)
    result = np.zeros((size, table.shape[1]))
    np.add.at(result, (np.maximum(table, 0), np.arange(table.shape[1])), np.where(table < 0, 0, shares))
    return result


@functools.lru_cache(256)
def _turned(places: Any, weights: Any, size: int) -> dict[str, Any]:
    """The table of the transposed matrix: what each of `size` places is given by the places of a result."""
    return dict(zip(("places", "weights"), table_of(_matrix(places, weights, size).T), strict=True))


def _rule(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    (x,), axis = avals, params["axis"]
    return Aval((*x.shape[:axis], len(params["places"][0]), *x.shape[axis + 1 :]), x.dtype)


def _sums(xp: Any, x: Any, axis: int, places: Any, weights: Any) -> Any:
    table, shares = _arrays(places, weights)
    after = (1,) * (x.ndim - 1 - axis)

    def terms(at: np.ndarray, share: np.ndarray) -> Any:
        found = xp.take(x, np.maximum(at, 0), axis, mode="clip") * share.astype(x.dtype).reshape(*share.shape, *after)
        return found if at.min(initial=0) >= 0 else xp.where((at >= 0).reshape(*at.shape, *after), found, 0)

    if len(table) > UNROLLED:
        return xp.sum(terms(table, shares), axis, dtype=x.dtype)
    return functools.reduce(lambda a, b: a + b, map(terms, table, shares))


def _np_resample(x, axis, places, weights):
    n, m = x.shape[axis], len(places[0])
    if n <= SHORT and x.size:
        matrix = _matrix(places, weights, n).astype(x.dtype)
        rows = x.reshape(-1, n, math.prod(x.shape[axis + 1 :]))
        product = rows[..., 0] @ matrix if rows.shape[2] == 1 else matrix.T @ rows
        if np.isfinite(product.sum()):  # else nan is in rows to which it does not belong
            return product.reshape(*x.shape[:axis], m, *x.shape[axis + 1 :])
    return _sums(np, x, axis, places, weights)


@everywhere
def _reference(x, axis, places, weights):
    rows = np.moveaxis(x, axis, -1)
    result = np.zeros((*rows.shape[:-1], len(places[0])), x.dtype)
    for at, share in zip(places, weights, strict=True):
        for j, (place, weight) in enumerate(zip(at, share, strict=True)):
            if place != NONE:
                result[..., j] += rows[..., place] * weight
    return np.moveaxis(result, -1, axis)


_THIRDS = table_of(np.array([[1, 0.5, 0, 0, 0], [0, 0.5, 1, 0.25, 0], [0, 0, 0, 0.75, 1]]))
_MEANS = table_of(np.repeat(np.eye(2), 20, axis=0) / 20)

resample = op(
    "resample", "input", params={"axis": 0, "places": None, "weights": None},
    rule=Rule(_rule, accepts=accepting("fc", "\"resample\" not implemented for '{dtype}'")),
    numpy=_np_resample, impl=_sums, ref=_reference, traits=Trait.LINEAR | Trait.HOLOMORPHIC, parts=parts.ROWS,
    flops=lambda avals, result, params: 2 * len(params["places"]) * result.size,
    rounding=Rounding(length=lambda avals, result, params: len(params["places"])),
    samples=(Sample((2, 3), axis=1, places=_THIRDS[0], weights=_THIRDS[1]),
             Sample((3, 2), axis=0, places=_THIRDS[0], weights=_THIRDS[1]),
             Sample((2, 40), axis=1, places=_MEANS[0], weights=_MEANS[1])),
    vjp=dict(input=lambda F, g, axis, places, weights, input_shape: F.resample(
        g, axis=axis, **_turned(places, weights, input_shape[axis]))),
    doc="Each place along `axis` is the sum of `input` at its column of `places`, -1 for none, times `weights`.",
)  # fmt: skip
