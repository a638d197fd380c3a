"""Changing the dtype and the device of a module's parameters and buffers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NoReturn, Self

import numpy as np

from eager.core import dtypes
from eager.core.devices import check_device
from eager.core.grad_mode import no_grad
from eager.core.tensor import Tensor
from eager.engine.language import E
from eager.nn.parameter import is_lazy
from graphc.ops.dtypes import is_inexact


def _converted(t: Any, goal: np.dtype) -> Any:
    """`t` in the dtype `goal`, if it is inexact."""
    if not is_inexact(t._dtype()) or t._dtype() == goal:
        return t
    return t.of_dtype(goal) if is_lazy(t) else E.cast(t, dtype=goal)


class Converted:
    """The part of Module that converts. Every method changes the module in place and returns it."""

    modules: Callable[[], Iterator[Any]]

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Any:
        with no_grad():
            for module in self.modules() if recurse else (self,):
                for parameter in module._parameters.values():
                    if parameter is not None:
                        parameter.data = fn(parameter)
                        if parameter.grad is not None:
                            parameter.grad.data = fn(parameter.grad)
                for name, buffer in module._buffers.items():
                    if buffer is not None:
                        module._buffers[name] = fn(buffer)
        return self

    def to(self, *args: Any, device: Any = None, dtype: Any = None, non_blocking: bool = False,
           memory_format: Any = None) -> Self:  # fmt: skip
        """Convert floating-point parameters and buffers: `to(dtype)`, `to(device)`, `to(tensor)`."""
        for value in args:
            if isinstance(value, dtypes.dtype):
                dtype = value
            elif isinstance(value, Tensor):
                device, dtype = value.device, value.dtype
            elif not isinstance(value, bool):
                device = value
        check_device(device)
        if dtype is None:
            return self
        goal = dtypes.to_numpy(dtype)
        if not is_inexact(goal):
            raise TypeError(
                f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}"
            )
        return self._apply(lambda t: _converted(t, goal))

    def float(self) -> Self:
        """Convert floating-point parameters and buffers to float32."""
        return self.to(dtypes.float32)

    def double(self) -> Self:
        """Convert floating-point parameters and buffers to float64."""
        return self.to(dtypes.float64)

    def half(self) -> Self:
        """Convert floating-point parameters and buffers to float16."""
        return self.to(dtypes.float16)

    def bfloat16(self) -> Self:
        """Convert floating-point parameters and buffers to bfloat16."""
        return self.to(dtypes.bfloat16)

    def type(self, dst_type: Any) -> Self:
        """Convert all parameters and buffers to a dtype or a type such as "torch.FloatTensor"."""
        return self._apply(lambda t: t.type(dst_type))  # type: ignore[attr-defined]

    def cpu(self) -> Self:
        """The module itself: it lives on the CPU."""
        return self

    def cuda(self, device: Any = None) -> NoReturn:
        """Raises AssertionError: there is no CUDA."""
        check_device("cuda")
        raise AssertionError

    def share_memory(self) -> Any:
        """The module itself: its memory is this process's. RuntimeError for parameters that have none yet."""
        return self._apply(lambda t: t.share_memory_() if is_lazy(t) else t)  # type: ignore[attr-defined]

    def to_empty(self, *, device: Any, recurse: bool = True) -> Self:
        """Give parameters and buffers new memory, with values yet to be set."""
        check_device(device)
        return self._apply(lambda t: E.full(shape=tuple(t._d.shape), value=0, dtype=t._dtype()), recurse)
