"""What optimizers of libraries ask about functions of lists of tensors. As `torch.utils._foreach_utils`."""

from __future__ import annotations

from typing import Any

from eager.core.tensor import Tensor

Group = tuple[list[list[Any]], list[int]]


def _get_foreach_kernels_supported_devices() -> list[str]:
    """The kinds of devices on which such functions are kernels of their own: none, each is a loop."""
    return []


def _get_fused_kernels_supported_devices() -> list[str]:
    """The kinds of devices that have fused optimizers: none, `graphc.compile` fuses a step."""
    return []


def _device_has_foreach_support(device: Any) -> bool:
    """False: each function is a loop."""
    return False


def _has_foreach_support(tensors: list[Any], device: Any) -> bool:
    """Whether every one is a tensor, or None."""
    return _device_has_foreach_support(device) and all(t is None or isinstance(t, Tensor) for t in tensors)


def _group_tensors_by_device_and_dtype(
    tensorlistlist: list[list[Any]], with_indices: bool = False
) -> dict[tuple[Any, Any], Group]:
    """Lists of equal length, whose columns belong together, split by the device and the dtype of the first list.

    Returns (device, dtype) -> (the lists, cut to its columns; the places of these, if they are asked for).
    """
    found: dict[tuple[Any, Any], Group] = {}
    for place, first in enumerate(tensorlistlist[0]):
        lists, places = found.setdefault((first.device, first.dtype), ([[] for _ in tensorlistlist], []))
        for own, given in zip(lists, tensorlistlist, strict=True):
            if given:  # a list of which there is nothing
                own.append(given[place])
        if with_indices:
            places.append(place)
    return found
