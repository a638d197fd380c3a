"""What programs ask of the processes, and of what carries their tensors. As `torch.distributed`."""

from __future__ import annotations

import os
from enum import Enum
from typing import Any, final

from eager.processes.world import Backend, ReduceOp, get_backend, world

__all__ = [
    "BackendConfig", "DebugLevel", "get_backend_config", "get_debug_level", "get_default_backend_for_device",
    "get_pg_count", "is_backend_available", "is_ucc_available", "is_xccl_available", "supports_complex",
]  # fmt: skip

DEVICES = ("cpu", "cuda")  # kinds, and what PyTorch's processes would use for their tensors
_DEFAULTS = dict(zip(DEVICES, (Backend.GLOO, Backend.NCCL), strict=True))
NO_DEFAULT = "Default backend not registered for device : {}"
UNKNOWN_LEVEL = "The value of TORCH_DISTRIBUTED_DEBUG must be OFF, INFO, or DETAIL, got {!r}"


class DebugLevel(Enum):
    """TORCH_DISTRIBUTED_DEBUG, which changes nothing here: errors always say where the others are."""

    OFF = 0
    INFO = 1
    DETAIL = 2


@final
class BackendConfig:
    """The backend for each kind of device, of "gloo" or "cpu:gloo,cuda:nccl". As PyTorch's."""

    def __init__(self, backend: str):
        pairs = [part.rpartition(":") for part in str(backend).split(",")]
        self.device_backend_map = {
            device: Backend(name) for kinds, _, name in pairs for device in ([kinds] if kinds else DEVICES)
        }

    def get_device_backend_map(self) -> dict[str, Backend]:
        """Kind of device -> backend."""
        return self.device_backend_map

    def __repr__(self) -> str:
        return ",".join(f"{device}:{name}" for device, name in self.device_backend_map.items())


def get_backend_config(group: Any = None) -> str:
    """The backends of a group, as "cpu:gloo,cuda:gloo". As `torch.distributed.get_backend_config`."""
    return str(BackendConfig(get_backend(group)))


def get_debug_level() -> DebugLevel:
    """What TORCH_DISTRIBUTED_DEBUG says. ValueError for another word."""
    level = os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper()
    if level not in DebugLevel.__members__:
        raise ValueError(UNKNOWN_LEVEL.format(level))
    return DebugLevel[level]


def get_default_backend_for_device(device: Any) -> str:
    """The backend for the tensors of a device. ValueError for other kinds."""
    kind = str(device).partition(":")[0]
    if kind not in _DEFAULTS:
        raise ValueError(NO_DEFAULT.format(device))
    return _DEFAULTS[kind]


def get_pg_count() -> int:
    """How many groups there are."""
    return len(world.groups)


def is_backend_available(backend: str) -> bool:
    """Whether processes can use a backend: any that has a name here, as JAX carries the tensors of all."""
    return backend.lower() == Backend.GLOO


def is_ucc_available() -> bool:
    """False."""
    return False


def is_xccl_available() -> bool:
    """False."""
    return False


def supports_complex(reduceOp: ReduceOp) -> bool:
    """Whether complex numbers can be reduced so: what orders them, or asks for bits, cannot."""
    return reduceOp in (ReduceOp.SUM, ReduceOp.AVG)
