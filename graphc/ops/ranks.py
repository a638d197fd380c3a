"""Where along an axis the median is, and the most frequent element: one kernel each, several ops in graphs."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from graphc.ops import orders, rows
from graphc.ops.aval import Aval
from graphc.ops.dtypes import BOOL, INT64, is_inexact
from graphc.ops.interpret import F as arrays
from graphc.ops.reduce import kept
from graphc.ops.rules import refuse_unordered
from graphc.ops.samples import Ints, Sample
from graphc.ops.spec import Op, Rule, Trait, op


def _one_place(op: Op, avals: list[Aval], params: Mapping[str, Any]) -> Aval:
    refuse_unordered(op, [avals[0].dtype])
    return Aval(kept(avals[0].shape, (params["axis"],)), INT64)


def _median(F: Any, x: Any, axis: int, ignore_nan: bool) -> Any:
    """If nan counts and there is one, the first nan is the median."""
    count = x.shape[axis]
    nans = F.sum(x != x, axis=(axis,), keepdims=True)
    if ignore_nan:
        rank = F.where(nans < count, (count - 1 - nans) // 2, 0)
    else:
        rank = F.where(nans > 0, count - nans, (count - 1) // 2)
    return F.gather(F.argsort(x, axis=axis, descending=False), F.cast(rank, dtype=INT64), axis=axis)


def _np_median(x: np.ndarray, axis: int, ignore_nan: bool) -> np.ndarray:
    if not (is_inexact(x.dtype) and np.isnan(x).any()):
        found = orders.place_of_rank(x, axis, (x.shape[axis] - 1) // 2)
        if found is not None:
            return found
    return _median(arrays, x, axis, ignore_nan)


def _mode(F: Any, x: Any, axis: int) -> Any:
    """The smallest of the most frequent ones is where the first of the longest runs in order ends."""
    order = F.argsort(x, axis=axis, descending=False)
    ordered = F.gather(x, order, axis=axis)
    shape = tuple(x.shape)
    count = shape[axis]
    places = F.reshape(F.arange(shape=(count,), start=0, step=1, dtype=INT64),
                       shape=tuple(count if d == axis else 1 for d in range(len(shape))))  # fmt: skip
    part = functools.partial(_along, F, ordered, axis)
    first = F.full(shape=kept(shape, (axis,)), value=0, dtype=BOOL)
    starts = F.where(F.cat(first, part(1, count) == part(0, count - 1), axis=axis), 0, places)
    run = places - F.gather(starts, F.argcummax(starts, axis=axis, largest=True), axis=axis)
    return F.gather(order, F.argmax(run, axis=axis, keepdims=True), axis=axis)


def _along(F: Any, x: Any, axis: int, start: int, stop: int) -> Any:
    ends = [(start, stop) if d == axis else (0, n) for d, n in enumerate(x.shape)]
    first, last = zip(*ends, strict=True)
    return F.slice(x, start=first, stop=last, step=(1,) * len(ends))


_ROWS = ((3, 4), 1), ((2, 3, 2), 1), ((5,), 0)
median_place = op(
    "median_place", "input", params={"axis": -1, "ignore_nan": False}, rule=Rule(_one_place),
    traits=Trait.ORDERS, numpy=_np_median, definition=_median,
    impl=lambda xp, x, axis, ignore_nan: _median(arrays, x, axis, ignore_nan),
    ref=lambda x, axis, ignore_nan: rows.reduced(rows.place_of_median, ignore_nan=ignore_nan)(x, axis, True),
    samples=(*(Sample(s, axis=a, ignore_nan=b) for s, a in _ROWS for b in (False, True)),
             Sample(Ints((2, 9), 3), axis=1, ignore_nan=False)),
)  # fmt: skip
mode_place = op(
    "mode_place", "input", params={"axis": -1}, rule=Rule(_one_place), traits=Trait.ORDERS,
    impl=lambda xp, x, axis: _mode(arrays, x, axis), definition=_mode,
    ref=lambda x, axis: rows.reduced(rows.place_of_mode)(x, axis, True),
    samples=(*(Sample(s, axis=a) for s, a in _ROWS), Sample(Ints((2, 9), 3), axis=1)),
)  # fmt: skip
