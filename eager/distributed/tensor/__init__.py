"""Tensors in parts on a mesh of devices. As `torch.distributed.tensor`, where one process has all devices.

Names are loaded on first use: a program on one device pays nothing for them.
"""

from __future__ import annotations

from graphc.lazy import lazy

# module -> the public names that it has
_NAMES = {
    "eager.distributed.device_mesh": "DeviceMesh init_device_mesh",
    "eager.distributed.tensor.placements": "Partial Placement Replicate Shard",
    "eager.distributed.tensor.dtensor": "DTensor distribute_tensor",
    "eager.distributed.tensor.modules": "distribute_module",
    "eager.distributed.tensor.creation": "empty full ones rand randn zeros",
}
_WHERE = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = [name for name in _WHERE if name not in ("DeviceMesh", "init_device_mesh")]  # pyright: ignore[reportUnsupportedDunderAll]
__getattr__, __dir__ = lazy(__name__, _WHERE, ("experimental", "marks", "parallel", "placements"))
