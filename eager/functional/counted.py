"""Results whose shape the values decide: how many elements there are is asked first, the rest is of known shape.

So a function is written once. Eager knows the values; a program that is being traced holds for the count that it was
traced with (`Symbol.counted`), and what depends on the other values stays in the graph, with its gradients.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from eager.core.interpreter import current_interpreter
from eager.core.placed import is_placed
from eager.core.tensor import Tensor
from eager.engine.crossing import beside
from eager.engine.language import E
from eager.functional.static import batched
from graphc.ops.dtypes import BOOL, INT64, is_half, is_inexact


def unknown(tensor: Tensor) -> bool:
    """Whether the values of `tensor` lie on a device, or a program that is traced finds others there when it runs."""
    interpreter = current_interpreter()
    if is_placed(tensor):
        return True  # they stay where they are, and only counts are asked for
    if batched(tensor) or (interpreter.immediate and tensor._d.__class__ is np.ndarray):
        return False
    return not interpreter.is_constant(tensor)


def selection_of(x: Tensor) -> Any:
    """The places that `x` is made of, if it is what `x[mask]` is in a trace that has not counted them; or None."""
    return x._d.selection if isinstance(x, Tensor) and x._d.__class__ is not np.ndarray else None


def sum_of_selected(x: Tensor, mean: bool = False) -> Tensor | None:
    """The sum, or the mean, of all elements of what `x[mask]` is in a trace that has not counted them; else None."""
    selection = selection_of(x)
    if selection is None or is_half(x._dtype()) or (mean and not is_inexact(x._dtype())):
        return None
    full = x._d.full()
    shape = tuple(full._d.shape)
    axes, wide = tuple(range(len(shape))), selection.wide()
    total = E.sum(E.where(wide, full, 0), axis=axes, keepdims=False)
    if not mean:
        return total
    count = E.sum(E.broadcast_to(wide, shape=shape), axis=axes, keepdims=False)
    return E.div(total, E.cast(count, dtype=x._dtype()))


def number(value: Tensor, purpose: str) -> Any:
    """The value of a 0-d tensor, which decides on a shape, as a Python number; a trace holds for it alone."""
    data = value._d
    return value._known().item() if data.__class__ is np.ndarray else data.counted(value, purpose)


def largest(x: Tensor) -> Tensor:
    """The largest element, 0-d."""
    return E.amax(x, axis=tuple(range(len(x._d.shape))), keepdims=False)


def true_places(mask: Tensor, purpose: str) -> Tensor:
    """The places where a bool vector is true, as an int64 vector."""
    size = mask._d.shape[0]
    order = E.cumsum(E.cast(mask, dtype=INT64), axis=0)
    count = number(E.sum(mask, axis=(0,), keepdims=False), purpose)
    if not count:
        return beside(Tensor._wrap(np.zeros(0, np.int64)), mask)
    found = E.searchsorted(order, Tensor._wrap(np.arange(1, count + 1)), right=False)
    return E.where(E.lt(found, size), found, 0)  # where there are fewer, what comes of it is not used


def nonzero_places(input: Tensor, purpose: str) -> list[Tensor]:
    """The places of the elements that are not zero: a vector for each dim."""
    shape = tuple(input._d.shape)
    at = true_places(flat(input if input._dtype() == BOOL else E.ne(input, 0)), purpose)
    found = list[Tensor]()
    for size in reversed(shape):
        found.append(E.remainder(at, size) if len(found) + 1 < len(shape) else at)
        at = E.floor_divide(at, size) if len(found) < len(shape) else at
    return found[::-1]


def columns(vectors: list[Tensor]) -> Tensor:
    """The matrix with these columns."""
    return E.cat(*(E.reshape(v, shape=(v._d.shape[0], 1)) for v in vectors), axis=1)


def chosen(x: Tensor, mask: Tensor, lead: int, purpose: str = "mask") -> Tensor:
    """The parts of `x` where a bool tensor, over its dims from number `lead` on, is true, along one dim in their place.

    A trace counts them only if something asks for more than operations on each element.
    """
    found = current_interpreter().select(x, mask, lead, purpose) if mask._d.shape else None
    return picked(x, mask, lead, purpose) if found is None else found


def picked(x: Tensor, mask: Tensor, lead: int, purpose: str) -> Tensor:
    """`chosen`, counted."""
    shape, behind = tuple(x._d.shape), lead + len(mask._d.shape)
    rows = E.reshape(x, shape=(*shape[:lead], math.prod(shape[lead:behind]), *shape[behind:]))
    return E.index(rows, true_places(flat(mask), purpose), spec=(*(None,) * lead, 0))


def flat(x: Tensor) -> Tensor:
    """`x` as a vector."""
    return E.reshape(x, shape=(math.prod(x._d.shape),))


def ranks(x: Tensor) -> Tensor:
    """For each row of a matrix how many different rows come before it, in lexicographic order; nan equals nothing."""
    while True:
        order = E.argsort(x, axis=0, descending=False)
        steps = E.cast(_changes(E.gather(x, order, axis=0)), dtype=INT64)
        x = E.gather(E.cumsum(steps, axis=0), E.argsort(order, axis=0, descending=False), axis=0)
        rows, columns = x._d.shape
        if columns == 1:
            return E.reshape(x, shape=(rows,))
        if columns % 2:
            x = E.cat(x, E.full(shape=(rows, 1), value=0, dtype=INT64), axis=1)
        left, right = (
            E.slice(x, start=(0, k), stop=(rows, columns + columns % 2), step=(1, 2)) for k in (0, 1)
        )  # fmt: skip
        x = E.add(E.mul(left, rows), right)  # orders pairs of columns


def _changes(x: Tensor) -> Tensor:
    """Where an element differs from that in the row before; the first row differs from nothing."""
    rows, columns = x._d.shape
    before, after = (E.slice(x, start=(k, 0), stop=(rows - 1 + k, columns), step=(1, 1)) for k in (0, 1))
    return E.cat(E.full(shape=(1, columns), value=False, dtype=BOOL), E.ne(after, before), axis=0)


def starts(x: Tensor) -> Tensor:
    """Which rows of a matrix with at least one row are first in a run of equal ones."""
    rows, columns = x._d.shape
    before, after = (E.slice(x, start=(k, 0), stop=(rows - 1 + k, columns), step=(1, 1)) for k in (0, 1))
    differ = E.any(E.ne(after, before), axis=(1,), keepdims=False)
    return E.cat(E.full(shape=(1,), value=True, dtype=BOOL), differ, axis=0)


def runs(first: Tensor, purpose: str) -> tuple[Tensor, Tensor, Tensor]:
    """Of runs that begin where a vector is true, as it does at 0: where they begin, and how long they are.

    Also the number of the run that each place is in.
    """
    size = first._d.shape[0]
    at = true_places(first, purpose)
    count = at._d.shape[0]
    ends = E.cat(
        E.slice(at, start=(1,), stop=(count,), step=(1,)), Tensor._wrap(np.array([size], np.int64)), axis=0
    )  # fmt: skip
    return at, E.sub(ends, at), E.sub(E.cumsum(E.cast(first, dtype=INT64), axis=0), 1)
