"""`torch.cuda` of a build without CUDA: queries answer, everything that needs a device raises AssertionError."""

from __future__ import annotations

from typing import Any, NoReturn

from eager.core.devices import NO_CUDA
from eager.core.missing import explain
from eager.surface.errors import OutOfMemoryError
from graphc.lazy import lazy

__all__ = [
    "CUDAGraph",
    "Event",
    "OutOfMemoryError",
    "Stream",
    "StreamContext",
    "current_device",
    "current_stream",
    "default_stream",
    "device_count",
    "empty_cache",
    "get_arch_list",
    "get_device_capability",
    "get_device_name",
    "get_device_properties",
    "get_rng_state",
    "get_rng_state_all",
    "graph",
    "init",
    "ipc_collect",
    "is_available",
    "is_bf16_supported",
    "is_initialized",
    "manual_seed",
    "manual_seed_all",
    "max_memory_allocated",
    "max_memory_reserved",
    "mem_get_info",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "memory_summary",
    "reset_peak_memory_stats",
    "set_device",
    "set_rng_state",
    "set_rng_state_all",
    "stream",
    "synchronize",
]


def is_available() -> bool:
    """False: there is no CUDA."""
    return False


def is_initialized() -> bool:
    """False: there is no CUDA."""
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """False: there is no CUDA."""
    return False


def device_count() -> int:
    """0: there is no CUDA."""
    return 0


def get_arch_list() -> list[str]:
    """No architectures: there is no CUDA."""
    return []


def memory_allocated(device: Any = None) -> int:
    """0: there is no device memory."""
    return 0


max_memory_allocated = memory_reserved = max_memory_reserved = memory_allocated


def manual_seed(seed: int) -> None:
    """Does nothing: there is no device generator to seed."""


manual_seed_all = manual_seed


def empty_cache() -> None:
    """Does nothing: there is no device memory."""


def _needs_cuda(*args: Any, **kwargs: Any) -> NoReturn:
    """Raises AssertionError: there is no CUDA."""
    raise AssertionError(NO_CUDA)


current_device = current_stream = default_stream = get_device_capability = get_device_name = _needs_cuda
get_device_properties = get_rng_state = init = mem_get_info = set_device = set_rng_state = synchronize = _needs_cuda
reset_peak_memory_stats = memory_summary = _needs_cuda


class _NeedsCuda:
    """A class for annotations and `isinstance`. RuntimeError for one who makes an object of it."""

    _message = "Tried to instantiate dummy base class {}"

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise RuntimeError(cls._message.format(cls.__name__))


class CUDAGraph(_NeedsCuda):
    """`torch.cuda.CUDAGraph`: there is no CUDA."""


class graph(_NeedsCuda):
    """`torch.cuda.graph`: there is no CUDA."""


class Event(_NeedsCuda):
    """`torch.cuda.Event`: there is no CUDA."""


class Stream(_NeedsCuda):
    """`torch.cuda.Stream`: there is no CUDA."""

    _message = "torch.cuda.{} requires CUDA support"


class StreamContext:
    """`torch.cuda.StreamContext`: there is no stream to change to."""

    def __init__(self, stream: Stream | None):
        self.stream = stream

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass


def stream(stream: Stream | None) -> StreamContext:
    """A context that does nothing: there is no stream to change to."""
    return StreamContext(stream)


def get_rng_state_all() -> list[Any]:
    """No states: there is no CUDA."""
    return []


def set_rng_state_all(new_states: Any) -> None:
    """Sets the states of no devices."""


def ipc_collect() -> None:
    """Does nothing: there is no device memory."""


def memory_stats(device: Any = None) -> dict[str, Any]:
    """No statistics: there is no device memory."""
    return {}


__getattr__, __dir__ = lazy(__name__, {}, ("amp",))
explain(__name__)
