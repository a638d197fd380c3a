"""The order in memory of the weights of convolutions. As `torch.nn.utils.convert_conv2d_weight_memory_format`."""

from __future__ import annotations

from typing import Any

from eager.nn.modules.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d


def _convert(module: Any, order: Any, kinds: tuple[type, ...]) -> Any:
    for each in module.modules():
        if isinstance(each, kinds):
            weight: Any = each.weight
            weight.data = weight.detach().clone().contiguous(memory_format=order)
    return module


def convert_conv2d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """Store the weights of Conv2d and ConvTranspose2d, here and below, in `memory_format`. Returns the module."""
    return _convert(module, memory_format, (Conv2d, ConvTranspose2d))


def convert_conv3d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """Store the weights of Conv3d and ConvTranspose3d, here and below, in `memory_format`. Returns the module."""
    return _convert(module, memory_format, (Conv3d, ConvTranspose3d))
