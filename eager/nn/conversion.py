"""Changing the dtype and the device of a module's parameters and buffers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Self

import numpy as np

from eager.core import dtypes
from eager.core.devices import CPU, check_device, named
from eager.core.grad_mode import no_grad
from eager.core.placed import given_memory
from eager.core.tensor import Tensor
from eager.engine.language import E
from eager.functional.casts import placed
from eager.functional.creation import empty_like
from eager.nn.parameter import is_lazy
from graphc.ops.dtypes import is_inexact

USE_TO_EMPTY = (
    "Please use torch.nn.Module.to_empty() instead of torch.nn.Module.to() when moving module from meta to a different "
    "device."
)


def _converted(t: Any, goal: np.dtype) -> Any:
    """`t` in the dtype `goal`, if it is inexact."""
    if not is_inexact(t._dtype()) or t._dtype() == goal:
        return t
    return t.of_dtype(goal) if is_lazy(t) else E.cast(t, dtype=goal)


def parse_to(
    *args: Any, device: Any = None, dtype: Any = None, non_blocking: bool = False, memory_format: Any = None
) -> tuple[Any, Any, bool, Any]:
    """The device, dtype, `non_blocking` and memory format that arguments of `to` ask for; None for what they leave."""
    for value in args:
        if isinstance(value, dtypes.dtype):
            dtype = value
        elif isinstance(value, Tensor):
            device, dtype = value.device, value.dtype
        elif isinstance(value, bool):
            non_blocking = value
        else:
            device = value
    return None if device is None else check_device(device), dtype, non_blocking, memory_format


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
        device, dtype, *_ = parse_to(*args, device=device, dtype=dtype)
        if device is not None:
            self._place(device)
        if dtype is None:
            return self
        goal = dtypes.to_numpy(dtype)
        if not is_inexact(goal):
            raise TypeError(
                f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}"
            )
        return self._apply(lambda t: _converted(t, goal))

    def _place(self, where: Any) -> None:
        try:
            self._apply(lambda t: t.of_dtype(t._dtype(), where) if is_lazy(t) else placed(t, where))
        except NotImplementedError as error:
            raise NotImplementedError(f"{error} {USE_TO_EMPTY}") from None

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
        """Move parameters and buffers to the CPU. NotImplementedError for a module without values."""
        self._place(CPU)
        return self

    def cuda(self, device: Any = None) -> Self:
        """Move parameters and buffers to a GPU. AssertionError where there is none."""
        self._place(named("cuda", device))
        return self

    def xpu(self, device: Any = None) -> Self:
        """Move parameters and buffers to an XPU. AssertionError where there is none."""
        self._place(named("xpu", device))
        return self

    def share_memory(self) -> Any:
        """The module itself: its memory is this process's. RuntimeError for parameters that have none yet."""
        return self._apply(lambda t: t.share_memory_() if is_lazy(t) else t)  # type: ignore[attr-defined]

    def to_empty(self, *, device: Any, recurse: bool = True) -> Self:
        """Give parameters and buffers new memory, with values yet to be set; DTensors get it on their mesh."""
        where = check_device(device)
        return self._apply(lambda t: given_memory(empty_like(t, device=where), t), recurse)
