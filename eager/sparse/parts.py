"""Sparse tensors taken apart: the place and the value of each element, whatever the layout."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from eager.core.interpreter import IMMEDIATE, current_interpreter, on_arrays, under
from eager.core.placed import is_elsewhere
from eager.core.sparse import ON_CPU, Sparse, tensor
from eager.core.tensor import Tensor
from eager.engine.language import E
from graphc.errors import PATTERN_WRITTEN, CaptureError
from graphc.ops.dtypes import INT64

BY_ROWS = ("sparse_csr", "sparse_bsr")
BLOCKS = ("sparse_bsr", "sparse_bsc")


def known(x: Tensor) -> np.ndarray:
    """Indices as an array, on which Python decides: under a trace, a program is right for them. CaptureError: input."""
    if is_elsewhere(x):
        raise NotImplementedError(ON_CPU)
    if x._d.__class__ is not np.ndarray:
        return x._values_for("the places of the elements of a sparse tensor")
    return x._known() if current_interpreter().capturing else x._d


def made(array: np.ndarray) -> Tensor:
    """A tensor of indices."""
    return Tensor._wrap(np.ascontiguousarray(array))


def coo(indices: Tensor, values: Tensor, shape: Any, coalesced: bool = False) -> Tensor:
    """A COO tensor."""
    return tensor(Sparse("sparse_coo", (indices, values), shape, coalesced))


def give_elements(x: Tensor, data: Sparse, name: str) -> None:
    """The in-place op `name` gives `x` other elements. CaptureError under a trace, which writes values alone."""
    if current_interpreter().capturing:
        raise CaptureError(PATTERN_WRITTEN.format(name=name))
    x._d = data


def block_of(data: Sparse) -> tuple[int, ...]:
    """The shape of a block; () of a layout without blocks."""
    if data.layout not in BLOCKS:
        return ()
    batch = len(data.parts[0]._d.shape) - 1
    return data.values._d.shape[batch + 1 : batch + 3]


def flat(x: Tensor) -> Tensor:
    """`x` as a vector."""
    return x if len(x._d.shape) == 1 else E.reshape(x, shape=(math.prod(x._d.shape),))


def row(indices: Tensor, k: int) -> Tensor:
    """Row `k` of a matrix of indices."""
    n = indices._d.shape[1]
    return E.basic_index(indices, start=(k, 0), stop=(k + 1, n), step=(1, 1), shape=(n,))


def taken(values: Tensor, places: Tensor) -> Tensor:
    """The rows of `values` at these places."""
    return E.index(values, places, spec=(0,))


def added(shape: tuple[int, ...], values: Tensor, *places: Tensor) -> Tensor:
    """Zeros of `shape`, to which `values` (n, ...) have been added at n places, given by their first dims."""
    if not places:  # no dim has indices
        return total(values)
    zeros = E.full(shape=tuple(shape), value=0, dtype=values._dtype())
    return E.index_put(zeros, values, *places, spec=tuple(range(len(places))), accumulate=True)


def on_indices(function: Callable[..., Tensor], *indices: Tensor) -> Tensor:
    """`function(*indices)`, of tensors of indices: at once where these are known, also under a trace."""
    if on_arrays() or any(i._d.__class__ is not np.ndarray for i in indices):
        return function(*indices)
    given = [Tensor._wrap(known(i)) for i in indices]
    with under(IMMEDIATE):
        result = function(*given)
    return made(result._array())


def total(values: Tensor) -> Tensor:
    """The sum of all values for one place, in their dtype (`sum` turns integers into int64)."""
    where = made(np.zeros(values._d.shape[0], np.int64))
    return E.reshape(added((1, *values._d.shape[1:]), values, where), shape=tuple(values._d.shape[1:]))


def elements(x: Tensor) -> tuple[list[Tensor], Tensor]:
    """The index vector of each sparse dim, and the values (n, *dense dims), of a sparse tensor."""
    data: Sparse = x._d
    if data.layout == "sparse_coo":
        indices, values = data.parts
        return [row(indices, k) for k in range(indices._d.shape[0])], values
    compressed, plain, values = data.parts
    batch, count = plain._d.shape[:-1], plain._d.shape[-1]
    wide = [E.cast(i, dtype=INT64) if i._dtype() != INT64 else i for i in (compressed, plain)]
    total = math.prod(batch) * count
    where = [flat(_lines(wide[0], batch, count)), flat(wide[1])]
    if data.layout not in BY_ROWS:
        where.reverse()
    rest = values._d.shape[len(batch) + 1 :]
    values = E.reshape(values, shape=(total, *rest)) if batch else values
    before = np.indices((*batch, count))[:-1].reshape(len(batch), total)
    ahead = [made(b) for b in before]
    if block := block_of(data):
        ahead, where, values = _unblocked(ahead, where, values, block)
    return [*ahead, *where], values


def _lines(starts: Tensor, batch: tuple[int, ...], count: int) -> Tensor:
    """The row of each of `count` elements (for each of `batch`), of rows that begin at `starts`."""
    rows = starts._d.shape[-1] - 1
    if on_arrays() and not batch and rows > 0:
        steps = np.diff(starts._array())
        if (steps >= 0).all() and steps.sum() == count:  # else an invariant does not hold
            return Tensor._wrap(np.repeat(np.arange(rows), steps))
    places = Tensor._wrap(np.broadcast_to(np.arange(count), (*batch, count)))
    if rows < 1:
        return places
    # element k is of the last row that begins at k or before
    return E.sub(E.searchsorted(starts, places, right=True), 1)


def _unblocked(
    ahead: list[Tensor], where: list[Tensor], values: Tensor, block: tuple[int, ...]
) -> tuple[list[Tensor], list[Tensor], Tensor]:
    """The elements of blocks one by one."""
    n, size = values._d.shape[0], math.prod(block)
    inside = np.indices(block).reshape(2, 1, size)
    spread = lambda i, scale, k: E.reshape(
        E.add(E.mul(E.reshape(i, shape=(n, 1)), scale), Tensor._wrap(inside[k])), shape=(n * size,)
    )
    repeated = [Tensor._wrap(np.repeat(known(b), size)) for b in ahead]
    apart = E.reshape(values, shape=(n * size, *values._d.shape[3:]))
    return repeated, [spread(where[0], block[0], 0), spread(where[1], block[1], 1)], apart


def linear(places: list[np.ndarray], shape: tuple[int, ...]) -> np.ndarray:
    """The number of each place in a row-major array of `shape`."""
    if not places:
        return np.zeros(0, np.int64)
    found = np.zeros(places[0].shape, np.int64)
    for place, n in zip(places, shape, strict=False):
        found = found * n + place
    return found


def coalesced(x: Tensor) -> Tensor:
    """A COO tensor with sorted indices, of which none occurs twice: values for one place are added up."""
    data: Sparse = x._d
    if data.coalesced:
        return x
    indices, values = data.parts
    where = known(indices)
    if indices._d.shape[1] < 2:
        return coo(indices, values, data.shape, True)
    keys = linear(list(where), data.shape[: len(where)]) if len(where) else np.zeros(where.shape[1], np.int64)
    if (keys[1:] > keys[:-1]).all():
        return coo(indices, values, data.shape, True)
    unique, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    if len(unique) == len(keys):  # another order is all that there is
        return coo(made(where[:, first]), taken(values, made(first)), data.shape, True)
    summed = added((len(unique), *values._d.shape[1:]), values, made(inverse))
    return coo(made(where[:, first]), summed, data.shape, True)


def stacked(places: list[Tensor]) -> Tensor:
    """A matrix of indices with these rows."""
    return E.cat(*[E.reshape(p, shape=(1, p._d.shape[0])) for p in places], axis=0)


def as_coo(x: Tensor) -> Tensor:
    """A sparse tensor in COO; elements in the order in which they were."""
    data: Sparse = x._d
    if data.layout == "sparse_coo":
        return x
    places, values = elements(x)
    return coo(stacked(places), values, data.shape)
