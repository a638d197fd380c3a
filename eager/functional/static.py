"""What functions that read values do under a trace, which has none: the same in operations of known shapes.

What the values have to satisfy becomes a check of the program (`required`).
"""

from __future__ import annotations

import math

import numpy as np

from eager.core.interpreter import current_interpreter, on_arrays
from eager.core.tensor import Tensor
from eager.engine.language import E
from graphc.ops.dtypes import INT64

FEW_ELEMENTS = "Number of elements of source < number of ones in mask"


def valueless(tensor: Tensor) -> bool:
    """Whether the values of `tensor` are those of a graph under capture."""
    data = tensor._d
    return data.__class__ is not np.ndarray and not on_arrays(tensor) and not batched(tensor)


def at_hand(tensor: Tensor) -> np.ndarray | None:
    """The values of `tensor` if they are the same each time the code runs, or it runs only now; None otherwise."""
    data = tensor._d
    return data if data.__class__ is np.ndarray and current_interpreter().is_constant(tensor) else None


def batched(tensor: Tensor) -> bool:
    """Whether `tensor` stands for the slices of a batch of `vmap`."""
    return tensor._d.__class__ is not np.ndarray and tensor._d.batched


def required(x: Tensor, condition: Tensor, message: str) -> Tensor:
    """`x`; a RuntimeError with `message` when the program runs unless all of `condition` holds."""
    return E.required(x, condition, message=message)


def filled_in_order(target: Tensor, mask: Tensor, rows: Tensor, exactly: str = "") -> Tensor:
    """`target` with its parts where `mask` is true replaced by those of `rows` in order.

    `mask` has the leading dims of `target`, `rows` one dim in their place. RuntimeError if `rows` are too few, or if
    their number is another, with the text `exactly` if that is given.
    """
    count, part = rows._d.shape[0], tuple(rows._d.shape[1:])
    chosen = tuple(mask._d.shape)
    flat = E.reshape(mask, shape=(math.prod(chosen),))
    order = E.cumsum(E.cast(flat, dtype=INT64), axis=0)
    total = E.sum(E.cast(flat, dtype=INT64), axis=(0,), keepdims=False)
    fits = E.eq(total, count) if exactly else E.le(total, count)
    target = required(target, fits, exactly or FEW_ELEMENTS)
    if not count:
        return target
    at = E.where(E.ge(order, count), count - 1, E.where(E.gt(order, 0), E.sub(order, 1), 0))
    wide = E.reshape(E.index(rows, at, spec=(0, *(None,) * len(part))), shape=(*chosen, *part))
    return E.where(E.reshape(mask, shape=(*chosen, *(1,) * len(part))), wide, target)


def spread(counts: Tensor, size: int) -> Tensor:
    """Each place of a vector as often as its count says, `size` in all. RuntimeError if they are more or fewer."""
    wide = E.cast(counts, dtype=INT64)
    counted = required(wide, E.ge(counts, 0), "repeats can not be negative")
    total = E.sum(counted, axis=(0,), keepdims=False)
    counted = required(counted, E.eq(total, size), "allocated size does not match required size")
    ends = E.cumsum(counted, axis=0)
    return E.searchsorted(ends, Tensor._wrap(np.arange(size)), right=True)
