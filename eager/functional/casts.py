"""Changes of dtype, of class, and of what autograd sees: `to`, `float()`, `as_subclass`, `clone`, `detach`."""

from __future__ import annotations

from typing import Any

import numpy as np

from eager.core import dtypes, operands, tape
from eager.core.devices import check_device
from eager.core.dtypes import type_name
from eager.core.interpreter import on_arrays
from eager.core.overriding import DisableTorchFunctionSubclass
from eager.core.stand_ins import Sealed
from eager.core.tensor import Tensor
from eager.core.views import base_of
from eager.engine.conversion import cast_to, converted
from eager.engine.crossing import transferred
from eager.engine.language import E
from eager.functional.arguments import shape_of
from eager.functional.naming import called
from eager.functional.scalars import common_dtype
from eager.functional.shapes import view_as
from graphc.ops import dtypes as d
from graphc.ops.dtypes import is_floating

VIEW_DETACH = (
    "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for training, "
    "and gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence detach_() cannot be "
    "called on these gradients. To fix this error, please refer to the Optimizer.zero_grad() function in "
    "torch/optim/optimizer.py as the solution."
)


def placed(t: Tensor, device: Any) -> Tensor:
    """`t` on `device`; itself where it already is, or if that is None.

    NotImplementedError for a tensor that is on "meta" and should be elsewhere; else raises as `check_device`.
    """
    if device is None:
        return t
    return transferred(t, check_device(device))


NO_TARGET = "to() received an invalid combination of arguments - got ({}), but expected a dtype, a device or a tensor"


def to(self: Tensor, *args: Any, dtype: Any = None, device: Any = None, non_blocking: bool = False, copy: bool = False,
       memory_format: Any = None, tensor: Tensor | None = None) -> Tensor:  # fmt: skip
    """`self` in another dtype or on another device: `to(dtype)`, `to(device)`, `to(other)`. As `torch.Tensor.to`.

    Returns `self` itself if nothing changes and `copy` is False.
    """
    flags = []
    for position, x in enumerate(args if tensor is None else (tensor, *args)):
        if isinstance(x, (dtypes.dtype, type)):
            dtype = x
        elif isinstance(x, Tensor):
            dtype, device = x.dtype, x.device
        elif isinstance(x, bool):
            flags.append(x)
        elif position < 2 and (x is None or isinstance(x, (str, int)) or hasattr(x, "index")):
            device = x
        else:
            raise TypeError(NO_TARGET.format(", ".join(type(a).__name__ for a in args)))
    copy = flags[1] if len(flags) > 1 else copy
    result = placed(cast_to(self, dtype), device)
    if memory_format is not None:
        result = _in_format(result, memory_format)
    return E.clone(result) if copy and result is self else result


def _in_format(t: Tensor, order: Any) -> Tensor:
    """`t`, or a copy of it that lies in memory in the memory format `order`."""
    from eager.core.layouts import arranged, lies_in, preserve_format

    if order is preserve_format or t._d.__class__ is not np.ndarray or lies_in(t._d, order):
        return t
    copied = E.clone(t)
    copied._d = arranged(copied._d, order)
    return copied


def type_as(self: Tensor, other: Tensor) -> Tensor:
    """`self` in the dtype of `other`. As `torch.Tensor.type_as`."""
    return cast_to(self, other.dtype)


def _caster(name: str, dtype: dtypes.dtype) -> Any:
    @called(name, f"`self` as {dtype}; itself if it is.", "torch.Tensor")
    def method(self: Tensor, *, memory_format: Any = None) -> Tensor:
        result = converted(self, dtype.numpy)
        return result if memory_format is None else _in_format(result, memory_format)

    return method


METHODS = {
    name: _caster(name, getattr(dtypes, name))
    for name in ("float", "double", "half", "bfloat16", "long", "int", "short", "cfloat", "cdouble", "bool")
} | {"char": _caster("char", dtypes.int8), "byte": _caster("byte", dtypes.uint8)}


def clone(input: Tensor, *, memory_format: Any = None) -> Tensor:
    """A copy through which gradients flow. As `torch.clone`."""
    copied = E.clone(input)
    return copied if memory_format is None else _in_format(copied, memory_format)


def detach(input: Tensor) -> Tensor:
    """The same values, sharing memory, without history. As `torch.Tensor.detach`."""
    if input.__class__ is not Tensor and not isinstance(input, Tensor):
        raise operands.not_a_tensor(input)
    if not on_arrays(input):
        return E.stop_gradient(input)
    data = input._d
    return Tensor._wrap(data if data.__class__ is Sealed else input._array())


def detach_(self: Tensor) -> Tensor:
    """Forget the history of `self`. As `torch.Tensor.detach_`."""
    if base_of(self) is not None:
        raise RuntimeError(VIEW_DETACH)
    if self.is_leaf:
        return self.requires_grad_(False)
    return self._show(detach(self), "detach_")


def is_floating_point(input: Tensor) -> bool:
    """Whether the dtype is a floating one. As `torch.is_floating_point`."""
    shape_of(input, "is_floating_point")
    return is_floating(input._dtype())


def is_complex(input: Tensor) -> bool:
    """Whether the dtype is a complex one. As `torch.is_complex`."""
    shape_of(input, "is_complex")
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


def promote_types(type1: Any, type2: Any) -> dtypes.dtype:
    """The smallest dtype that holds both. As `torch.promote_types`."""
    for position, value in enumerate((type1, type2), 1):
        if not isinstance(value, dtypes.dtype):
            what = f"argument 'type{position}' (position {position})"
            raise TypeError(f"promote_types(): {what} must be torch.dtype, not {dtypes.type_name(value)}")
    return dtypes.BY_NUMPY[d.promote_types(type1.numpy, type2.numpy)]


def result_type(tensor1: Any, tensor2: Any) -> dtypes.dtype:
    """The dtype of an arithmetic result of two tensors or Python scalars. As `torch.result_type`."""
    return dtypes.BY_NUMPY[common_dtype(tensor1, tensor2)]


def can_cast(from_: Any, to: Any) -> bool:
    """Whether the category of `from_` is no higher than that of `to`. As `torch.can_cast`."""
    source, goal = dtypes.to_numpy(from_), dtypes.to_numpy(to)
    return d.category(source) <= d.category(goal)


def set_default_dtype(dtype: Any) -> None:
    """Set the dtype of new floating tensors. As `torch.set_default_dtype`. TypeError unless `dtype` is floating."""
    if not isinstance(dtype, dtypes.dtype):
        raise TypeError("invalid dtype object: only floating-point types are supported as the default type")
    d.set_default_float(dtype.numpy)


def get_default_dtype() -> dtypes.dtype:
    """The dtype of new floating tensors. As `torch.get_default_dtype`."""
    return dtypes.BY_NUMPY[d.default_float()]


NO_TENSOR = (
    "Creating a Tensor subclass from a class that does not inherit from Tensor is not possible. Make sure your class "
    "inherits from Tensor."
)


def as_subclass(self: Tensor, cls: type[Tensor]) -> Tensor:
    """A view of `self` that is a `cls`, a subclass of Tensor; gradients flow. As `torch.Tensor.as_subclass`.

    No method of `cls` is called. TypeError for what is no subclass of Tensor.
    """
    if not isinstance(cls, type):
        raise TypeError(f"cls must be a type (got {type_name(cls)})")
    if not issubclass(cls, Tensor):
        raise TypeError(NO_TENSOR)
    with DisableTorchFunctionSubclass():
        view: Any = view_as(self, self)
        if isinstance(view._n, list):
            tape.rename(view._n, "AliasBackward0")
    return shown_as(view, cls)


def shown_as(tensor: Tensor, cls: type[Tensor]) -> Any:
    """A `cls` in the place of `tensor`, which nobody else holds."""
    made = object.__new__(cls)
    for slot in ("_d", "_n", "_v", "_g"):  # another layout than Tensor's: an assignment to __class__ is refused
        if hasattr(tensor, slot):
            setattr(made, slot, getattr(tensor, slot))
    return made
