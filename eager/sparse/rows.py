"""Sparse gradients: those of tables of which rows are looked up, and what optimizers do with them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from eager.core import tape
from eager.core.interpreter import current_interpreter, on_arrays
from eager.core.state import grad_enabled, note_write
from eager.core.tensor import Tensor
from eager.engine.language import E
from eager.sparse import forms as _forms  # noqa: F401  (so that such gradients can be added up)
from eager.sparse.parts import added, coalesced, coo, elements, made, taken
from graphc.ops.dtypes import INT64

BY_FREQUENCY = "embedding_backward: scale_grad_by_freq not supported with sparse gradients"


def look_up(weight: Tensor, input: Tensor, padding_idx: int | None, by_frequency: bool) -> Tensor:
    """Rows of `weight` (V, D) at `input` (*): (*, D). The gradient is a COO tensor of a row for each index.

    padding_idx: the index that has no part in it. by_frequency: whether `backward` is to raise PyTorch's RuntimeError.
    """
    flat = E.reshape(input, shape=(math.prod(input._d.shape),))
    interpreter = current_interpreter()
    if weight._n is None or not grad_enabled():
        return E.index(weight, input, spec=(0,))
    if not interpreter.immediate:
        rows = E.index(weight, input, spec=(0,))
        interpreter.looked_up(rows, weight, flat)
        if padding_idx is None:
            return rows
        padding = E.reshape(E.eq(input, padding_idx), shape=(*input._d.shape, 1))
        return E.where(padding, E.stop_gradient(rows), rows)  # of those, the gradient is 0
    rows = E.index(E.stop_gradient(weight), input, spec=(0,))
    where = flat._array()
    kept = np.flatnonzero(where != padding_idx) if padding_idx is not None else None
    rows._n = tape.new_node(_ABOUT, (where, kept, weight._d.shape, by_frequency), weight._n)
    return rows


def gradient_of_rows(where: Tensor, g: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The gradient of a table of `shape` from `g`, that of its rows at `where`, a vector."""
    n = where._d.shape[0]
    indices = E.reshape(where if where._dtype() == INT64 else E.cast(where, dtype=INT64), shape=(1, n))
    return coo(indices, E.reshape(g, shape=(n, *shape[1:])), shape)


def _on_tensors(node: tape.Node, g: Tensor) -> list[Tensor]:
    where, kept, shape, by_frequency = node[tape.SAVED]
    if by_frequency:
        raise RuntimeError(BY_FREQUENCY)
    g = E.reshape(g, shape=(len(where), *shape[1:]))
    where, g = (where.copy(), g) if kept is None else (where[kept], taken(g, made(kept)))
    return [gradient_of_rows(Tensor._wrap(where), g, shape)]


def _on_arrays(node: tape.Node, g: Any, heap: list[tape.Node]) -> None:
    tape.give(node[tape.PARENTS], _on_tensors(node, Tensor._wrap(g))[0]._d, heap)


_ABOUT = tape.Backward(_on_arrays, "EmbeddingBackward0", on_tensors=_on_tensors)


def totals(grad: Tensor) -> tuple[tuple[Tensor, ...], Tensor]:
    """Where a sparse gradient has elements, and its values there.

    In a program, which has as many as there were indices, an element occurs as often as its index, each time with the
    sum of all.
    """
    if on_arrays():
        places, values = elements(coalesced(grad))
        return tuple(places), values
    places, values = elements(grad)
    if grad._d.coalesced or not values._d.shape[0]:
        return tuple(places), values
    keys: Any = linear_key(places, grad._d.shape)
    order = E.argsort(keys, axis=0, descending=False)
    line = taken(keys, order)
    n = line._d.shape[0]
    ends = [E.slice(line, start=(k,), stop=(n - 1 + k,), step=(1,)) for k in (0, 1)]
    first = E.full(shape=(1,), value=0, dtype=INT64)
    group = E.cumsum(E.cat(first, E.cast(E.ne(*ends), dtype=INT64), axis=0), axis=0)
    sums = added(tuple(values._d.shape), taken(values, order), group)
    return tuple(taken(p, order) for p in places), taken(sums, group)


def linear_key(places: list[Tensor], shape: tuple[int, ...]) -> Tensor:
    """`linear`, of traced places."""
    key = places[0]
    for place, n in zip(places[1:], shape[1:], strict=False):
        key = E.add(E.mul(key, n), place)
    return key


def at(table: Tensor, places: tuple[Tensor, ...]) -> Tensor:
    """The elements of `table` there."""
    return E.index(table, *places, spec=tuple(range(len(places))))


def put(table: Tensor, places: tuple[Tensor, ...], values: Tensor) -> None:
    """Write `values` there, in place: work for those alone where operations run at once."""
    if on_arrays(table) and not (grad_enabled() and (table._n is not None or values._n is not None)):
        array = table._writable()
        array[tuple(p._array() for p in places)] = values._array()
        note_write(array)
    else:
        table.index_put_(places, values)  # type: ignore[attr-defined]
