"""Parameters and buffers, and those whose shape is still unknown. As `torch.nn.parameter`."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np

from eager.core.devices import check_device, device
from eager.core.dtypes import to_numpy
from eager.core.overriding import disabled
from eager.core.parameter import Parameter
from eager.core.placed import zeros_on
from eager.core.tensor import Tensor
from graphc.ops.dtypes import default_float
from graphc.ops.stand_in import StandIn

__all__ = [
    "Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter", "UninitializedTensorMixin", "is_lazy",
]  # fmt: skip

NO_SHAPE = (
    "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in `load_state_dict` "
    "when trying to load an uninitialized parameter into an initialized one. Call `forward` to initialize the "
    "parameters before accessing their attributes."
)
NOT_SHARED = (
    "Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize the parameters before "
    "calling `module.share_memory()`."
)
NOT_USABLE = (
    "Attempted to use an uninitialized parameter. This error happens when you are using a `LazyModule` or explicitly "
    "manipulating `torch.nn.parameter.UninitializedParameter` objects. When using LazyModules Call `forward` with a "
    "dummy batch to initialize the parameters before calling torch functions"
)


class Buffer(Tensor):
    """A buffer to be: `module.name = Buffer(tensor)` registers it. As `torch.nn.Buffer`."""

    __slots__ = ("persistent",)
    __torch_function__: Any = staticmethod(disabled)

    def __new__(cls, data: Any = None, *, persistent: bool = True) -> Buffer:
        made = object.__new__(cls)
        return made

    def __init__(self, data: Tensor | None = None, *, persistent: bool = True):
        import numpy as np

        self._d = Tensor._wrap(np.empty(0, np.float32))._d if data is None else data.detach()._d
        self._n = None
        self.persistent = persistent


class Unshaped(StandIn):
    """In place of the array of a tensor without a shape: knows its dtype and its device, and refuses all else."""

    __slots__ = ("device", "numpy_dtype")

    def __init__(self, dtype: np.dtype, where: device):
        self.numpy_dtype, self.device = dtype, where

    @property
    def shape(self) -> NoReturn:
        raise ValueError(NOT_USABLE)

    def force(self, tensor: Tensor) -> NoReturn:
        """Raises ValueError: there are no values."""
        raise ValueError(NOT_USABLE)


class UninitializedTensorMixin:
    """What parameters and buffers without a shape share: they can change their dtype, and `materialize`."""

    __slots__ = ()
    cls_to_become: type[Tensor]
    _d: Any

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Become a plain Parameter or Buffer of that `shape`, whose values are still to be set."""
        where = self._d.device if device is None else check_device(device)
        kind = self._d.numpy_dtype if dtype is None else to_numpy(dtype)
        self._d = zeros_on(where, tuple(shape), kind)
        self.__class__ = self.cls_to_become  # type: ignore[assignment]

    @property
    def shape(self) -> NoReturn:
        """Raises RuntimeError: there is none yet."""
        raise RuntimeError(NO_SHAPE)

    @property
    def data(self) -> Any:
        """A tensor without elements: what initializes all parameters of a model passes over those without a shape."""
        return Tensor._wrap(zeros_on(self._d.device, (0,), self._d.numpy_dtype))

    @data.setter
    def data(self, value: Any) -> None:
        self._d = value._d

    def share_memory_(self) -> NoReturn:
        """Raises RuntimeError."""
        raise RuntimeError(NOT_SHARED)

    def of_dtype(self, dtype: np.dtype, where: device | None = None) -> Any:
        """The same with another dtype, or on another device."""
        made: Any = type(self)(self.requires_grad)  # type: ignore[call-arg, attr-defined]
        made._d = Unshaped(dtype, self._d.device if where is None else where)
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        return memo.setdefault(id(self), self.of_dtype(self._d.numpy_dtype))

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.requires_grad,)  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def _begin(self, requires_grad: bool, device: Any, dtype: Any) -> None:
        self._d = Unshaped(default_float() if dtype is None else to_numpy(dtype), check_device(device))
        self._n = None
        self.requires_grad_(requires_grad)  # type: ignore[attr-defined]


def is_lazy(param: Any) -> bool:
    """Whether `param` has no shape yet. As `torch.nn.parameter.is_lazy`."""
    return isinstance(param, UninitializedTensorMixin)


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A Parameter whose shape is still unknown. As `torch.nn.UninitializedParameter`."""

    __slots__ = ()
    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> UninitializedParameter:
        made = object.__new__(cls)
        made._begin(requires_grad, device, dtype)
        return made

    def __init__(self, requires_grad: bool = True, device: Any = None, dtype: Any = None):
        pass


class UninitializedBuffer(UninitializedTensorMixin, Buffer):
    """A Buffer whose shape is still unknown. As `torch.nn.UninitializedBuffer`."""

    __slots__ = ()
    cls_to_become = Buffer

    def __new__(cls, requires_grad: bool = False, device: Any = None, dtype: Any = None,
                persistent: bool = True) -> UninitializedBuffer:  # fmt: skip
        made = object.__new__(cls)
        made._begin(requires_grad, device, dtype)
        made.persistent = persistent
        return made

    def __init__(self, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True):
        pass
