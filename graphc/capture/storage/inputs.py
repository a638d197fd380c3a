"""Memory of the tensors that a program is given: how they lie in it, and how two of them overlap."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from eager.core.placed import Placed
from eager.core.state import storage_of
from eager.core.tensor import Tensor
from eager.core.views import geometry
from graphc.ops.strides import Strides, row_major, strides_of


def strides_of_tensor(tensor: Tensor) -> Strides:
    """The strides of a concrete tensor, None if they are row-major."""
    array = tensor._d
    return strides_of(array) if array.__class__ is np.ndarray else None


def dense_order(tensor: Tensor) -> tuple[int, ...] | None:
    """The dims of a concrete tensor that fills its memory, from the outermost one; None if it does not fill it."""
    array = tensor._d
    if array.__class__ is not np.ndarray:
        return None
    order = tuple(sorted(range(array.ndim), key=lambda i: (-array.strides[i], i)))
    plain = strides_in_order(array.shape, order)
    steps = zip(array.shape, array.strides, plain, strict=True)
    return order if all(n == 1 or step == s * array.itemsize for n, step, s in steps) else None


def strides_in_order(shape: tuple[int, ...], order: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of an array that fills its memory, `order` being its dims from the outermost one."""
    strides = dict(zip(order, row_major(tuple(shape[i] for i in order)), strict=True))
    return tuple(strides[i] for i in range(len(shape)))


def is_simple(owner: Any) -> bool:
    """Whether what owns memory is an array that fills it."""
    return isinstance(owner, np.ndarray) and (owner.flags.c_contiguous or owner.flags.f_contiguous)


def whole_memory(tensor: Tensor) -> Tensor:
    """The memory that `tensor` shows a part of, as a vector that shares it."""
    array = tensor._array()
    owner = storage_of(array)
    flat = np.ndarray((owner.nbytes // array.itemsize,), array.dtype, owner if owner.flags.c_contiguous else owner.T)
    whole = object.__new__(Tensor)
    whole._d, whole._n = flat, None
    return whole


def overlapping(tensors: Mapping[Any, Tensor]) -> Iterator[tuple[Any, Any]]:
    """The keys of each two tensors that overlap."""
    groups: dict[int, list[Any]] = {}
    for key, tensor in tensors.items():
        if (memory := memory_of(tensor._d)) is not None:
            groups.setdefault(id(memory), []).append(key)
    for keys in groups.values():
        yield from (p for p in itertools.combinations(keys, 2) if relation(*(tensors[k] for k in p)) is not None)


def memory_of(data: Any) -> Any:
    """What owns the memory beneath a tensor; None of a program's result, whose memory nobody else sees."""
    return storage_of(data) if data.__class__ is np.ndarray else data.memory if data.__class__ is Placed else None


def relation(a: Tensor, b: Tensor) -> Any:
    """How two tensors overlap: where each lies in the memory that they share; None if they share none."""
    x, y = a._d, b._d
    if a is b:
        return "the same tensor"
    if (memory := memory_of(x)) is None or memory is not memory_of(y):
        return None
    if x.__class__ is Placed:
        return x.steps, y.steps
    if not np.shares_memory(x, y):
        return None
    return geometry(storage_of(x), x), geometry(storage_of(x), y)
