"""NumPy kernels that read and write at positions along an axis, and that add where positions repeat.

`np.add.at` on several axes takes 5 to 40 times what the memory traffic costs; here positions are flattened first, and
whole rows are added by a sparse matrix product, which is a loop over rows in C.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

FEW = 256  # elements: below, the calls that save time cost more
SOME = 2**12  # elements, up to which a sparse matrix is made in the time of the sums


def positions(shape: tuple[int, ...], index: np.ndarray, axis: int) -> np.ndarray:
    """Where in an array of `shape`, flattened, the elements stand that `index` picks along `axis`."""
    grid = _grid if index.size <= SOME else _grid.__wrapped__  # what is large is not kept
    step, starts = grid(shape, index.shape, axis)
    found = index * step if step != 1 else index
    for start in starts:
        found = found + start
    return found


@functools.lru_cache(maxsize=256)
def _grid(shape: tuple[int, ...], picked: tuple[int, ...], axis: int) -> tuple[int, list[np.ndarray]]:
    """How far apart neighbours along `axis` stand, and where each slice along another axis begins."""
    steps = [math.prod(shape[k + 1 :]) for k in range(len(shape))]
    return steps[axis], [
        (np.arange(n) * steps[k]).reshape([-1 if i == k else 1 for i in range(len(picked))])
        for k, n in enumerate(picked)
        if k != axis and n > 1
    ]


def gathered(x: np.ndarray, index: np.ndarray, axis: int) -> np.ndarray:
    """The elements of `x` that `index` picks along `axis`."""
    return x.reshape(-1).take(positions(x.shape, index, axis))


def scattered(x: np.ndarray, index: np.ndarray, src: np.ndarray, axis: int, distinct: bool) -> np.ndarray:
    """A copy of `x` with elements of `src` where `index` says along `axis`; of several for one place, the last.

    distinct  whether the places are known to differ, and to be there
    """
    result = np.array(x, order="C")
    result.reshape(-1)[positions(x.shape, index, axis)] = src[tuple(map(slice, index.shape))]
    return result


def scatter_added(x: np.ndarray, index: np.ndarray, src: np.ndarray, axis: int) -> np.ndarray:
    """A copy of `x` to which elements of `src` have been added where `index` says along `axis`."""
    result = np.array(x, order="C")
    at = positions(x.shape, index, axis).reshape(-1)
    np.add.at(result.reshape(-1), at, src[tuple(map(slice, index.shape))].reshape(-1))
    return result


def index_added(x: np.ndarray, where: tuple[Any, ...], values: np.ndarray) -> np.ndarray:
    """A copy of `x` to which `values` have been added at the index `where`, once for each time a place occurs in it."""
    if values.size < FEW or x.dtype.kind not in "fciu":
        result = x.copy()
        np.add.at(result, where, values)
        return result
    axes = [k for k, part in enumerate(where) if not isinstance(part, slice)]
    if axes == [0] and x.ndim == 2 and np.ndim(where[0]) == 1:  # rows of a table: all is in place
        rows = where[0] % len(x) if where[0].min() < 0 else where[0]
        return rows_added(x, rows, _spread(values, (len(rows), x.shape[1])))
    picked = [where[axes[0]]] if len(axes) == 1 else np.broadcast_arrays(*(where[k] for k in axes))
    rows = np.zeros(picked[0].shape, np.int64)
    for k, part in zip(axes, picked, strict=True):
        rows = rows * x.shape[k] + np.where(part < 0, part + x.shape[k], part)
    first, places = axes[0], math.prod([x.shape[k] for k in axes])
    # the dims that the indices make stand where the first of them was if they are adjacent, else in front
    adjacent = axes == list(range(first, axes[-1] + 1))
    front = x if adjacent else np.moveaxis(x, axes, range(len(axes)))
    first = first if adjacent else 0
    before, behind = front.shape[:first], front.shape[first + len(axes) :]
    given = _spread(values, (*before, *rows.shape, *behind))
    if before:
        rows = (np.arange(math.prod(before)) * places)[:, None] + rows.reshape(-1)
    width = math.prod(behind)
    added = rows_added(front.reshape(-1, width), rows.reshape(-1), given.reshape(rows.size, width))
    added = added.reshape(front.shape)
    return added if adjacent else np.ascontiguousarray(np.moveaxis(added, range(len(axes)), axes))


def _spread(values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    return values if values.shape == shape else np.broadcast_to(values, shape)


def rows_added(table: np.ndarray, rows: np.ndarray, values: np.ndarray) -> np.ndarray:
    """`table` (n, width), to row `rows[k]` of which row k of `values` (count, width) has been added, for all k."""
    width = table.shape[1]
    if width == 1 or (values.size <= SOME and table.dtype.itemsize > 2):  # sums of 16-bit floats are rounded once
        result = np.array(table, order="C")
        at = rows if width == 1 else ((rows * width)[:, None] + np.arange(width)).reshape(-1)
        np.add.at(result.reshape(-1), at, values.reshape(-1))
        return result
    from scipy.sparse import csc_array  # here: it takes longer to import than all of this package

    ones = np.ones(len(rows), table.dtype)
    added = csc_array((ones, rows, np.arange(len(rows) + 1)), shape=(len(table), len(rows))) @ values
    if added.dtype != table.dtype:  # SciPy has no float16
        return (table + added).astype(table.dtype, order="C")
    added += table
    return added
