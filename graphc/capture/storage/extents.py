"""Where tensors of a program under capture lie in memory, for writes that read what they write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from eager.core.placed import Placed
from eager.core.sparse import is_sparse
from eager.core.tensor import Tensor
from eager.engine.overlap import Extent, extent_from
from eager.functional.counted import selection_of
from graphc.capture.sources import Argument

if TYPE_CHECKING:
    from graphc.capture.tracer import Tracer


def extents(tracer: Tracer, a: Tensor, b: Tensor) -> tuple[Extent, Extent] | None:
    """Where two tensors lie in the memory that they share; None if they share none, or that is not known.

    Where they are of inputs, the program is made for how these lie; and for sizes that answer what is asked of them.
    """
    if any(is_sparse(t) or selection_of(t) is not None for t in (a, b)):  # memory of its own; to look would be to count
        return None
    x, y = _beneath(tracer, a), _beneath(tracer, b)
    arrays = x.__class__ is np.ndarray and y.__class__ is np.ndarray
    if not (np.may_share_memory(x, y) if arrays else _memory(x) is _memory(y)):
        return None
    first, second = _extent(tracer, a, x), _extent(tracer, b, y)
    return None if first is None or second is None else (first, second)


def _beneath(tracer: Tracer, tensor: Tensor) -> Any:
    """What stands for the memory of a tensor: of an input the data that it had before the program."""
    symbol = tracer.read(tensor)
    place = tracer.state.memories.find(symbol.id)
    origin = tracer.owner_of(tensor) if place is None else None if place.memory.replaces else place.memory.origin
    placeholder = isinstance(origin, Argument) and origin.position >= len(tracer.state.arguments)
    if origin is None or placeholder or tracer.state.outer is not None:
        return symbol if place is None else place.memory
    return tracer.given(origin)._d


def _memory(data: Any) -> Any:
    return data.memory if data.__class__ is Placed else data


def _extent(tracer: Tracer, tensor: Tensor, beneath: Any) -> Extent | None:
    place = tracer.place_of(tensor, tracer.read(tensor))
    if place.offset is None:
        return None
    item = tensor._dtype().itemsize
    start = 0
    if beneath.__class__ is np.ndarray:
        start = beneath.__array_interface__["data"][0]
    elif beneath.__class__ is Placed:
        start = beneath.offset * item
    return extent_from(start, place.offset, tuple(tensor._d.shape), place.strides, item)
