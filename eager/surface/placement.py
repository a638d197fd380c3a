"""Methods of Tensor that ask for a device. There is none but the CPU."""

from __future__ import annotations

from typing import Any

from eager.core.devices import NO_ACCELERATOR, check_device
from eager.core.meta import NO_DATA, is_meta
from eager.core.tensor import Tensor


def cpu(self: Tensor, memory_format: Any = None) -> Tensor:
    """`self`, if it is on the CPU. As `torch.Tensor.cpu`. NotImplementedError for a meta tensor."""
    if is_meta(self):
        raise NotImplementedError(NO_DATA)
    return self


def is_cpu(self: Tensor) -> bool:
    """Whether the values are in the memory of the CPU."""
    return not is_meta(self)


def cuda(self: Tensor, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> Tensor:
    """Raises AssertionError: there is no CUDA."""
    check_device("cuda")
    return self


def xpu(self: Tensor, device: Any = None, non_blocking: bool = False, memory_format: Any = None) -> Tensor:
    """Raises AssertionError: there is no XPU."""
    check_device("xpu")
    return self


def get_device(self: Tensor) -> int:
    """-1: the CPU has no index. As `torch.Tensor.get_device`."""
    return -1


def pin_memory(self: Tensor, device: Any = None) -> Tensor:
    """Raises RuntimeError: memory is pinned for an accelerator, and there is none."""
    raise RuntimeError(NO_ACCELERATOR)


def is_pinned(self: Tensor, device: Any = None) -> bool:
    """False: there is no accelerator to pin memory for."""
    return False
