"""The constructors of old: `torch.Tensor(2, 3)`, `torch.FloatTensor([1, 2])`, and `set_default_tensor_type`."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from eager.core import dtypes
from eager.core.sparse import is_sparse
from eager.core.tensor import Tensor
from eager.engine.conversion import cast_to
from eager.engine.language import E
from eager.functional.buffers import finished
from eager.functional.data import of_data
from eager.functional.static import valueless
from graphc.ops.dtypes import default_float, set_default_float
from graphc.ops.rules import torch_name

_OPTIONS = (
    "TensorOptions(dtype={}, device=cpu, layout=Strided, requires_grad=false (default), pinned_memory=false (default), "
    "memory_format=(nullopt))"
)
_C_NAMES = {
    "float32": "float", "float64": "double", "float16": "c10::Half", "bfloat16": "c10::BFloat16", "int64": "long int",
    "int32": "int", "int16": "short int", "int8": "signed char", "uint8": "unsigned char", "bool": "bool",
    "complex64": "c10::complex<float>", "complex128": "c10::complex<double>",
}  # fmt: skip


def legacy(data: tuple[Any, ...], dtype: dtypes.dtype | None = None) -> Tensor:
    """What a constructor makes of its arguments: sizes, one sequence of data, or one tensor, whose memory it shares.

    `dtype` is the default one if None; a tensor then keeps its own.
    """
    wanted = default_float() if dtype is None else dtype.numpy
    if len(data) == 1 and not isinstance(data[0], (int, np.integer, Tensor)):
        (only,) = data
        if isinstance(only, dtypes.Size):
            return Tensor._wrap(np.empty(only, wanted))
        if not hasattr(only, "__len__"):
            raise TypeError(f"new(): data must be a sequence (got {type(only).__name__})")
        return finished(of_data(only, dtypes.BY_NUMPY[wanted]), None, False)
    if len(data) == 1 and isinstance(data[0], Tensor):
        (given,) = data
        if dtype is not None and given._dtype() != wanted:
            names = (_OPTIONS.format(_C_NAMES.get(d.name, d.name)) for d in (dtype, given.dtype))
            raise TypeError("expected {} (got {})".format(*names))
        return E.stop_gradient(given) if valueless(given) else Tensor._wrap(given._array())
    return Tensor._wrap(np.empty(tuple(map(operator.index, data)) if data else 0, wanted))


def construct(self: Tensor, *data: Any, device: Any = None, **own: Any) -> None:
    """`torch.Tensor(...)`: what `legacy` makes of the arguments. Nothing if `__new__` has made it."""
    if not hasattr(self, "_d"):
        if own:
            raise TypeError(f"new() got an unexpected keyword argument '{next(iter(own))}'")
        self._d = legacy(data)._d
        self._n = None


def new(self: Tensor, *data: Any, device: Any = None) -> Tensor:
    """A tensor of the dtype of `self`, of given sizes or data. As `torch.Tensor.new`."""
    return legacy(data, self.dtype)


class _TensorType(type):
    """The class of the typed constructors: they print as PyTorch's, and know tensors of their dtype."""

    dtype: dtypes.dtype

    def __repr__(cls) -> str:
        return f"<class 'torch.{cls.__name__}'>"

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor) and instance.dtype is cls.dtype

    def __call__(cls, *data: Any, device: Any = None) -> Tensor:
        return legacy(data, cls.dtype)


def _typed(name: str, dtype: dtypes.dtype) -> Any:
    return _TensorType(name, (), {"dtype": dtype, "__doc__": f"Tensors of {dtype}. As `torch.{name}`."})


FloatTensor = _typed("FloatTensor", dtypes.float32)
DoubleTensor = _typed("DoubleTensor", dtypes.float64)
HalfTensor = _typed("HalfTensor", dtypes.float16)
BFloat16Tensor = _typed("BFloat16Tensor", dtypes.bfloat16)
LongTensor = _typed("LongTensor", dtypes.int64)
IntTensor = _typed("IntTensor", dtypes.int32)
ShortTensor = _typed("ShortTensor", dtypes.int16)
CharTensor = _typed("CharTensor", dtypes.int8)
ByteTensor = _typed("ByteTensor", dtypes.uint8)
BoolTensor = _typed("BoolTensor", dtypes.bool)

BY_NAME = {f"torch.{t.__name__}": t for t in (
    FloatTensor, DoubleTensor, HalfTensor, BFloat16Tensor, LongTensor, IntTensor, ShortTensor, CharTensor, ByteTensor,
    BoolTensor,
)}  # fmt: skip


def dtype_of_type(kind: Any) -> Any:
    """The dtype that `Tensor.type` is asked for: one itself, a typed constructor, or the name of one."""
    if isinstance(kind, str):
        if kind not in BY_NAME:
            raise ValueError(f"invalid type: '{kind}'")
        return BY_NAME[kind].dtype
    return kind.dtype if isinstance(kind, _TensorType) else kind


def type_(self: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """The name of the tensor's type, "torch.FloatTensor"; with `dtype`, the tensor in it. As `torch.Tensor.type`."""
    if dtype is None:
        return f"torch.{'sparse.' if is_sparse(self) else ''}{torch_name(self._dtype())}Tensor"
    if not isinstance(dtype, dtypes.dtype):
        dtype = dtype_of_type(dtype)
    return cast_to(self, dtype)


def set_default_tensor_type(t: Any) -> None:
    """Make the dtype of `t`, a typed constructor or its name, the default. As `torch.set_default_tensor_type`."""
    dtype = dtype_of_type(t)
    if not isinstance(dtype, dtypes.dtype):
        raise TypeError("invalid type object")
    if not dtype.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type")
    set_default_float(dtype.numpy)
