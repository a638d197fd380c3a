"""Methods of Tensor that ask for a device."""

from __future__ import annotations

from typing import Any

from eager.core.devices import CPU, NO_ACCELERATOR, accelerator, named
from eager.core.runtime import devices
from eager.core.tensor import Tensor
from eager.functional.buffers import pinned
from eager.functional.casts import to


def cpu(self: Tensor, *, memory_format: Any = None) -> Tensor:
    """`self` on the CPU; itself, if it is there. As `torch.Tensor.cpu`. NotImplementedError for a meta tensor."""
    return to(self, CPU, memory_format=memory_format)


def is_cpu(self: Tensor) -> bool:
    """Whether the values are in the memory of the CPU."""
    return self.device.type == "cpu"


def is_cuda(self: Tensor) -> bool:
    """Whether the tensor is on a GPU. As `torch.Tensor.is_cuda`."""
    return self.device.type == "cuda"


def is_xla(self: Tensor) -> bool:
    """Whether the tensor is on a device that is named as XLA's. As `torch.Tensor.is_xla`."""
    return self.device.type == "xla"


def is_xpu(self: Tensor) -> bool:
    """Whether the tensor is on an XPU. As `torch.Tensor.is_xpu`."""
    return self.device.type == "xpu"


def cuda(self: Tensor, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> Tensor:
    """`self` on a GPU, the current one if none is named. As `torch.Tensor.cuda`. AssertionError where there is none."""
    return to(self, named("cuda", device), memory_format=memory_format)


def xpu(self: Tensor, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> Tensor:
    """`self` on an XPU. As `torch.Tensor.xpu`. AssertionError where there is none."""
    return to(self, named("xpu", device), memory_format=memory_format)


def get_device(self: Tensor) -> int:
    """The index of the device; -1 on the CPU, which has none. As `torch.Tensor.get_device`."""
    index = self.device.index
    return -1 if index is None else index


def pin_memory(self: Tensor, device: Any = None) -> Tensor:
    """`self`, in memory from which an accelerator copies faster: JAX pins it itself. As `torch.Tensor.pin_memory`.

    RuntimeError where there is no accelerator, and for a tensor that is not on the CPU.
    """
    if not devices(accelerator()):
        raise RuntimeError(NO_ACCELERATOR)
    if self.device is not CPU:
        raise RuntimeError(f"cannot pin 'torch.{self.device.type}.FloatTensor' only dense CPU tensors can be pinned")
    pinned[id(self)] = self
    return self


def is_pinned(self: Tensor, device: Any = None) -> bool:
    """Whether `pin_memory` has returned this tensor."""
    return pinned.get(id(self)) is self
