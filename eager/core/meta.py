"""Tensors on the device "meta": a shape and a dtype, without values. As PyTorch's meta tensors.

An op on such tensors gives what its shape rule infers; gradients flow through them. Their memory is taken to be
row-major.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NoReturn, final

import numpy as np

from graphc.ops.stand_in import StandIn

NO_DATA = "Cannot copy out of meta tensor; no data!"
NO_ITEM = "Tensor.item() cannot be called on meta tensors"
NO_NUMPY = "can't convert meta device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first."
NO_SHAPE = "The result of torch.{}() has a shape that depends on values, which meta tensors do not have."
MIXED = "Tensor on device {} is not on the expected device {}!"


class NoDataError(NotImplementedError):
    """The values of a meta tensor were asked for."""


@final
class Meta(StandIn):
    """In place of the array of a tensor without values."""

    __slots__ = ("numpy_dtype", "shape")

    def __init__(self, shape: Sequence[int], dtype: np.dtype):
        self.shape = tuple(shape)
        self.numpy_dtype = dtype

    def __reduce__(self) -> tuple[Any, ...]:
        return Meta, (self.shape, self.numpy_dtype)

    def force(self, tensor: Any) -> NoReturn:
        raise NoDataError(NO_DATA)

    def truth(self, tensor: Any) -> NoReturn:
        raise RuntimeError(NO_ITEM)

    def check_values(self, tensor: Any, purpose: str, python: bool) -> None:
        if not python:
            raise NotImplementedError(NO_SHAPE.format(purpose))
        if (n := math.prod(self.shape)) != 1:
            raise RuntimeError(f"a Tensor with {n} elements cannot be converted to Scalar")
        raise RuntimeError(NO_ITEM)

    def number(self, tensor: Any) -> NoReturn:
        raise RuntimeError(NO_ITEM)


def is_meta(tensor: Any) -> bool:
    """Whether `tensor` has no values."""
    return tensor._d.__class__ is Meta


def data_of(tensor: Any) -> Any:
    """The array of `tensor`, or its `Meta`."""
    data = tensor._d
    return data if data.__class__ is Meta else tensor._array()


def check_devices(tensors: Sequence[Any]) -> None:
    """RuntimeError if some of `tensors` have values and others have none; a 0-d tensor counts as a number."""
    kinds = ["meta" if is_meta(t) else "cpu" for t in tensors if is_meta(t) or t._d.shape]
    for kind in kinds:
        if kind != kinds[0]:
            raise RuntimeError(MIXED.format(kind, kinds[0]))
