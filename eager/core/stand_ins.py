"""What lies behind a Tensor besides arrays: results still on their way, and what was made in inference mode."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from graphc import forking
from graphc.ops.stand_in import StandIn

if TYPE_CHECKING:
    from eager.core.tensor import Tensor

SEALED_WRITE = (
    "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a normal "
    "tensor before doing inplace update.See https://github.com/pytorch/rfcs/pull/17 for more details."
)
SEALED_LEAF = "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed."
SEALED_SAVE = (
    "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in "
    "computation tracked by autograd. To work around this, you can make a clone to get a normal tensor and use it in "
    "autograd, or use `torch.no_grad()` instead of `torch.inference_mode()`."
)


class Deferred(StandIn):
    """The result of a compiled program, in the memory of its backend, until someone looks at it.

    `array` is the backend's array; `shape` and `dtype` are known; `force()` gives the ndarray.
    """

    __slots__ = ("array", "numpy_dtype", "shape")

    def __init__(self, array: Any, shape: tuple[int, ...], dtype: np.dtype):
        self.array = array
        self.shape = shape
        self.numpy_dtype = dtype

    def force(self, tensor: Tensor) -> np.ndarray:
        # a copy: the tensor may be written, and shared with views, from now on; the backend's memory is read-only
        if forking.process.lost and not self.array.is_ready():
            forking.refuse("a result that was still being computed,")
        tensor._d = np.array(self.array)
        return tensor._d


class Sealed(StandIn):
    """The array of a tensor made in inference mode, after its end."""

    __slots__ = ("array",)

    def __init__(self, array: np.ndarray):
        self.array = array

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    @property
    def numpy_dtype(self) -> np.dtype:
        return self.array.dtype

    def force(self, tensor: Tensor) -> np.ndarray:
        return self.array
