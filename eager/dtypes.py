"""`torch.dtype` objects, and `Size`."""

from __future__ import annotations

import builtins
from typing import Any, final

import numpy as np

from graphc.ops import dtypes as d


@final
class dtype:
    """A tensor's element type. One object each: compare with `is` or `==`."""

    __slots__ = ("name", "numpy")

    def __init__(self, name: str, numpy: np.dtype):
        self.name = name
        self.numpy = numpy

    @property
    def is_floating_point(self) -> builtins.bool:
        return self.numpy.kind == "f"

    @property
    def is_complex(self) -> builtins.bool:
        return self.numpy.kind == "c"

    @property
    def itemsize(self) -> builtins.int:
        return self.numpy.itemsize

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self):
        return self.name


float16, half = (dtype("float16", d.FLOAT16),) * 2
float32 = float = dtype("float32", d.FLOAT32)
float64 = double = dtype("float64", d.FLOAT64)
complex64 = cfloat = dtype("complex64", d.COMPLEX64)
complex128 = cdouble = dtype("complex128", d.COMPLEX128)
uint8 = dtype("uint8", np.dtype(np.uint8))
int8 = dtype("int8", np.dtype(np.int8))
int16 = short = dtype("int16", np.dtype(np.int16))
int32 = int = dtype("int32", d.INT32)
int64 = long = dtype("int64", d.INT64)
bool = dtype("bool", d.BOOL)

BY_NUMPY: dict[np.dtype, dtype] = {
    t.numpy: t for t in (float16, float32, float64, complex64, complex128, uint8, int8, int16, int32, int64, bool)
}


def to_numpy(value: Any) -> np.dtype:
    """The NumPy dtype of a torch dtype (or of a Python type: float, int, bool)."""
    if isinstance(value, dtype):
        return value.numpy
    try:
        return _PYTHON_TYPES[value]()
    except (KeyError, TypeError):
        raise TypeError(f"dtype must be torch.dtype, not {type(value).__name__}") from None


_PYTHON_TYPES = {builtins.float: d.default_float, builtins.int: lambda: d.INT64, builtins.bool: lambda: d.BOOL}


def of_numpy(value: np.dtype) -> dtype:
    """The torch dtype of a NumPy dtype. Raises PyTorch's TypeError for one that it does not have."""
    try:
        return BY_NUMPY[value]
    except KeyError:
        raise TypeError(
            f"can't convert np.ndarray of type {value}. The only supported types are: float64, float32, float16, "
            "complex64, complex128, int64, int32, int16, int8, uint8, and bool."
        ) from None


@final
class Size(tuple):
    """A tensor's shape, printed as `torch.Size([2, 3])`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"torch.Size({list(self)})"

    def numel(self) -> builtins.int:
        total = 1
        for n in self:
            total *= n
        return total

    def __getitem__(self, index: Any) -> Any:
        picked = tuple.__getitem__(self, index)
        return Size(picked) if isinstance(index, slice) else picked

    def __add__(self, other: Any) -> Size:
        return Size(tuple(self) + tuple(other))
