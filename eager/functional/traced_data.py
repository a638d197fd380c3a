"""Tensors of data of which a trace knows some only when its program runs: traced tensors and numbers, in lists too."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from eager.core.tensor import Tensor
from eager.engine.language import E
from eager.functional.joining import stack
from eager.functional.literals import check_sequence, dtype_of, leaves_of
from eager.functional.numbers import fitted, traced
from eager.functional.static import at_hand, batched
from graphc.ops.dtypes import is_inexact, promote_types

ONE_ELEMENT = "only one element tensors can be converted to Python scalars"


def traced_data(data: Any, wanted: np.dtype | None) -> Tensor | None:
    """A new tensor of `data`, in its own dtype if `wanted` is None. None if all of it is known."""
    if isinstance(data, Tensor):
        return _copied(data, data._dtype() if wanted is None else wanted) if _is_unknown(data) else None
    kinds, leaves = leaves_of(data)
    numbers = [x if isinstance(x, Tensor) and _is_unknown(x) else traced(x) for x in leaves]
    if all(x is None for x in numbers) or any(issubclass(kind, np.ndarray) for kind in kinds):
        return None
    check_sequence(data)
    dtype = functools.reduce(promote_types, map(dtype_of, leaves)) if wanted is None else wanted
    if dtype.kind != "c" and any(dtype_of(x).kind == "c" for x in leaves):
        return None  # an error of Python's
    parts = [_element(x, number, dtype) for x, number in zip(leaves, numbers, strict=True)]
    return E.reshape(stack(parts), shape=_shape(data))


def _is_unknown(tensor: Tensor) -> bool:
    return at_hand(tensor) is None and not batched(tensor)


def _copied(tensor: Tensor, wanted: np.dtype) -> Tensor:
    """A copy without history, in row-major order."""
    from eager.functional.strides import contiguous

    plain = E.stop_gradient(tensor)
    if plain._dtype().kind == "c" and wanted.kind not in "cb":
        plain = E.real(plain)
    copied = E.clone(plain) if plain._dtype() == wanted else E.cast(plain, dtype=wanted)
    return contiguous(copied)


def _element(leaf: Any, number: Tensor | None, wanted: np.dtype) -> Tensor:
    if number is None:
        return Tensor._wrap(np.array(leaf.item() if isinstance(leaf, Tensor) else leaf, wanted))
    if math.prod(number._d.shape) != 1:
        raise ValueError(ONE_ELEMENT)
    found: Tensor = E.reshape(E.stop_gradient(number), shape=())
    return E.cast(found, dtype=wanted) if is_inexact(wanted) else fitted(found, wanted, limited=False)


def _shape(data: Any) -> tuple[int, ...]:
    return (len(data), *_shape(data[0])) if isinstance(data, (list, tuple)) else ()
