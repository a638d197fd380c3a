"""Names of `torch._utils` that libraries take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eager.core.devices import accelerator
from eager.core.devices import device as Device
from eager.core.dtypes import dtype
from eager.core.tensor import Tensor
from eager.functional.joining import cat


def _element_size(dtype: dtype) -> int:
    """The bytes of an element."""
    return dtype.itemsize


def _flatten_dense_tensors(tensors: Sequence[Tensor]) -> Tensor:
    """The elements of all in one vector."""
    return cat([tensor.reshape(-1) for tensor in tensors])


def _unflatten_dense_tensors(flat: Tensor, tensors: Sequence[Tensor]) -> tuple[Tensor, ...]:
    """Views of `flat` with the shapes of `tensors`, which `_flatten_dense_tensors` made one."""
    parts = flat.split([tensor.numel() for tensor in tensors])
    return tuple(part.view_as(tensor) for part, tensor in zip(parts, tensors, strict=True))


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """The number of a device: of an int itself, of "cuda:1" 1, of the CPU -1 if it is allowed.

    ValueError for None, or for a device without a number, unless `optional`: then 0.
    """
    if isinstance(device, int):
        return device
    found = None if device is None else Device(device) if isinstance(device, str) else device
    if found is not None and found.type == "cpu":
        if allow_cpu or optional:
            return -1
        raise ValueError(f"Expected a non cpu device, but got: {device}")
    if found is None or found.index is None:
        if not optional:
            raise ValueError(f"Expected a torch.device with a specified index or an integer, but got:{device}")
        return 0
    return found.index


def _get_available_device_type() -> str | None:
    """The kind of the accelerator, if there is one."""
    return accelerator() or None
