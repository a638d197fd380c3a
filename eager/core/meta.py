"""Tensors on the device "meta": a shape and a dtype, without values. As PyTorch's meta tensors.

An op on such tensors gives what its shape rule infers; gradients flow through them. Their memory is taken to be
row-major.
"""

from __future__ import annotations

import inspect
import math
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, final

import numpy as np

from eager.core.pytree import flatten
from eager.core.state import storage_of
from graphc import ops
from graphc.ops.stand_in import StandIn

NO_DATA = "Cannot copy out of meta tensor; no data!"
NO_ITEM = "Tensor.item() cannot be called on meta tensors"
NO_NUMPY = "can't convert {} to numpy. Use Tensor.cpu() to copy the tensor to host memory first."
NO_SHAPE = "The result of torch.{}() has a shape that depends on values, which meta tensors do not have."
MIXED = "Tensor on device {} is not on the expected device {}!"
LIBRARY = tuple(os.path.dirname(os.path.dirname(os.path.abspath(file))) + os.sep for file in (__file__, ops.__file__))


class NoDataError(NotImplementedError):
    """The values of a meta tensor were asked for."""


@final
class Meta(StandIn):
    """In place of the array of a tensor without values.

    mesh, dims  of a DTensor: the mesh that it is to lie on, and the axes that each dim is to be split over
    """

    __slots__ = ("dims", "mesh", "numpy_dtype", "shape")

    def __init__(self, shape: Sequence[int], dtype: np.dtype, mesh: Any = None, dims: Any = None):
        self.shape = tuple(shape)
        self.numpy_dtype = dtype
        self.mesh, self.dims = mesh, dims

    def __reduce__(self) -> tuple[Any, ...]:
        return Meta, (self.shape, self.numpy_dtype, self.mesh, self.dims)

    def local(self) -> Meta:
        """On a mesh: what this process has of it."""
        kept = [self.mesh._chunk(n, axes) for n, axes in zip(self.shape, self.dims, strict=True)]
        return Meta([part.stop - part.start for part in kept], self.numpy_dtype)

    @property
    def array(self) -> NoReturn:
        """Raises NoDataError: a program that has such a tensor for an input cannot run."""
        raise NoDataError(NO_DATA)

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


def is_of_caller() -> Callable[[Any], bool]:
    """Tells whether a tensor is an argument of the user's call that led here, or shares memory with one.

    Others are constants that a function of this library has made on its way.
    """
    frame: Any = sys._getframe(1)
    while frame.f_back is not None and frame.f_back.f_code.co_filename.startswith((*LIBRARY, "<generated")):
        frame = frame.f_back
    code, given = frame.f_code, frame.f_locals
    varied = bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + varied]
    given = flatten([given[name] for name in names if name in given])[0]
    modules = [x for x in given if hasattr(x, "parameters") and hasattr(x, "buffers")]
    given += [t for module in modules for t in (*module.parameters(), *module.buffers())]
    owners = {id(storage_of(t._d)) for t in given if isinstance(getattr(t, "_d", None), np.ndarray)}
    return lambda tensor: id(storage_of(tensor._array())) in owners
