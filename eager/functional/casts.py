"""Changes of dtype and of what autograd sees: `to`, `float()`, `clone`, `detach`."""

from __future__ import annotations

from typing import Any

import numpy as np

from eager import dtypes
from eager.functional.arguments import cast_to, shape_of
from eager.language import E
from eager.tensor import Tensor
from graphc.ops import dtypes as d
from graphc.ops.dtypes import BOOL, FLOAT16, FLOAT32, FLOAT64, INT32, INT64
from graphc.ops.rules import torch_name


def placed(t: Tensor, device: Any) -> Tensor:
    """`t` on `device`, where it already is unless that is an error: there is one device. Raises as `check_device`."""
    if device is None:
        return t
    from eager.device import check_device

    check_device(device)
    return t


def to(self: Tensor, *args: Any, dtype: Any = None, device: Any = None, non_blocking: bool = False, copy: bool = False,
       memory_format: Any = None) -> Tensor:  # fmt: skip
    """`self` in another dtype or on another device: `to(dtype)`, `to(device)`, `to(other)`. As `torch.Tensor.to`.

    Returns `self` itself if nothing changes and `copy` is False.
    """
    for position, x in enumerate(args):
        if isinstance(x, dtypes.dtype):
            dtype = x
        elif isinstance(x, Tensor):
            dtype, device = x.dtype, x.device
        elif position < 2 and not isinstance(x, bool):
            device = x
        elif position == len(args) - 1 and isinstance(args[position - 1], bool):
            copy = x
    result = placed(cast_to(self, dtype), device)
    return E.clone(result) if copy and result is self else result


def type_(self: Tensor, dtype: Any = None, non_blocking: bool = False) -> Any:
    """The name of the tensor's type, "torch.FloatTensor"; with `dtype`, the tensor in it. As `torch.Tensor.type`."""
    if dtype is None:
        return f"torch.{torch_name(self._dtype())}Tensor"
    return cast_to(self, dtype)


def type_as(self: Tensor, other: Tensor) -> Tensor:
    """`self` in the dtype of `other`. As `torch.Tensor.type_as`."""
    return cast_to(self, other.dtype)


def _caster(name: str, wanted: np.dtype) -> Any:
    def method(self: Tensor, memory_format: Any = None) -> Tensor:
        return self if self._dtype() == wanted else E.cast(self, dtype=wanted)

    method.__name__ = name
    method.__doc__ = f"`self` as {dtypes.BY_NUMPY[wanted]}; itself if it is."
    return method


CASTS = {
    name: _caster(name, wanted)
    for name, wanted in {
        "float": FLOAT32, "double": FLOAT64, "half": FLOAT16, "long": INT64, "int": INT32, "bool": BOOL,
        "short": np.dtype(np.int16), "char": np.dtype(np.int8), "byte": np.dtype(np.uint8),
        "cfloat": d.COMPLEX64, "cdouble": d.COMPLEX128,
    }.items()
}  # fmt: skip


def clone(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """A copy through which gradients flow. As `torch.clone`."""
    return E.clone(input)


def detach(input: Tensor) -> Tensor:
    """The same values, sharing memory, without history. As `torch.Tensor.detach`."""
    return E.stop_gradient(input)


def detach_(self: Tensor) -> Tensor:
    """Forget the history of `self`. As `torch.Tensor.detach_`."""
    without = E.stop_gradient(self)
    self._d, self._n = without._d, None
    return self


def is_floating_point(input: Tensor) -> bool:
    """Whether the dtype is a floating one. As `torch.is_floating_point`."""
    return input._dtype().kind == "f"


def is_complex(input: Tensor) -> bool:
    """Whether the dtype is a complex one. As `torch.is_complex`."""
    return input._dtype().kind == "c"


def is_tensor(obj: Any) -> bool:
    """Whether `obj` is a Tensor. As `torch.is_tensor`."""
    return isinstance(obj, Tensor)


def numel(input: Tensor) -> int:
    """The number of elements. As `torch.numel`."""
    total = 1
    for n in shape_of(input, "numel"):
        total *= n
    return total


# --- type promotion


def promote_types(type1: Any, type2: Any) -> dtypes.dtype:
    """The smallest dtype that holds both. As `torch.promote_types`."""
    return dtypes.BY_NUMPY[d.promote_types(dtypes.to_numpy(type1), dtypes.to_numpy(type2))]


def result_type(tensor1: Any, tensor2: Any) -> dtypes.dtype:
    """The dtype of an arithmetic result of two tensors or Python scalars. As `torch.result_type`."""
    kinds = [
        (x._dtype(), 2 if x._d.shape else 1) if isinstance(x, Tensor) else (d.of_scalar(x), 0)
        for x in (tensor1, tensor2)
    ]
    return dtypes.BY_NUMPY[d.result_type(kinds)]


def can_cast(from_: Any, to: Any) -> bool:
    """Whether the category of `from_` is no higher than that of `to`. As `torch.can_cast`."""
    source, goal = dtypes.to_numpy(from_), dtypes.to_numpy(to)
    return d.category(source) <= d.category(goal)


def set_default_dtype(dtype: Any) -> None:
    """Set the dtype of new floating tensors. As `torch.set_default_dtype`. TypeError unless `dtype` is floating."""
    d.set_default_float(dtypes.to_numpy(dtype))


def get_default_dtype() -> dtypes.dtype:
    """The dtype of new floating tensors. As `torch.get_default_dtype`."""
    return dtypes.BY_NUMPY[d.default_float()]
