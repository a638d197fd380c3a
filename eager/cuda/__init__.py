"""`torch.cuda`: the GPUs that JAX has. Without one, queries answer, and what needs a device raises AssertionError."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NoReturn

from eager.core.runtime import devices as _devices
from eager.cuda.devices import DeviceContext, functions
from eager.cuda.devices import Event as _Event
from eager.cuda.devices import Stream as _Stream
from eager.surface.errors import OutOfMemoryError
from graphc.lazy import lazy

_found = functions("cuda")
__all__ = [  # pyright: ignore[reportUnsupportedDunderAll]
    "CUDAGraph", "Event", "OutOfMemoryError", "Stream", "StreamContext", "default_stream", "device", "get_arch_list",
    "get_device_properties", "graph", "ipc_collect", "is_bf16_supported", "is_initialized", "max_memory_reserved",
    "memory_reserved", "memory_summary", "reset_peak_memory_stats", "stream", *_found,
]  # fmt: skip
(
    current_device, current_stream, device_count, empty_cache, get_device_capability, get_device_name, get_rng_state,
    get_rng_state_all, init, is_available, manual_seed, manual_seed_all, max_memory_allocated, mem_get_info,
    memory_allocated, memory_stats, set_device, set_rng_state, set_rng_state_all, synchronize,
) = (_found[name] for name in sorted(_found))  # fmt: skip
device = DeviceContext
default_stream = current_stream
memory_reserved, max_memory_reserved = memory_allocated, max_memory_allocated
is_initialized = is_available


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """Whether there is a GPU: XLA emulates what one has not."""
    return is_available()


def get_arch_list() -> list[str]:
    """No architectures: programs are compiled for the device that they run on."""
    return []


def get_device_properties(device: Any = None) -> SimpleNamespace:
    """The name, the capability and the memory of a GPU."""
    major, minor = get_device_capability(device)
    return SimpleNamespace(name=get_device_name(device), major=major, minor=minor, total_memory=mem_get_info(device)[1])


def memory_summary(device: Any = None, abbreviated: bool = False) -> str:
    """What the allocator of a GPU tells, a line each."""
    synchronize(device)
    return "\n".join(f"{name}: {value:,}" for name, value in memory_stats(device).items())


def reset_peak_memory_stats(device: Any = None) -> None:
    """Does nothing where there is a GPU: JAX counts from the start of the process on."""
    init()


def ipc_collect() -> None:
    """Does nothing: JAX keeps the memory that it has."""


def reset_max_memory_allocated(device: Any = None) -> None:
    """`reset_peak_memory_stats`, by its older name."""
    reset_peak_memory_stats(device)


def is_current_stream_capturing() -> bool:
    """False: `graphc.compile` makes one program of a function, and nothing is captured for it on the device."""
    return False


def _lazy_call(callable: Any, **unused: Any) -> None:
    """Call at once if there is a GPU."""
    if is_available():
        callable()


_initialized = False  # nothing is prepared: JAX opens a device when it is first used


def _refuse(cls: type, message: str = "Tried to instantiate dummy base class {}") -> NoReturn:
    raise RuntimeError(message.format(cls.__name__))


class CUDAGraph:
    """`torch.cuda.CUDAGraph`: `graphc.compile` makes one program of a function. RuntimeError for an instance."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        _refuse(cls)


class graph:
    """`torch.cuda.graph`: `graphc.compile` makes one program of a function. RuntimeError for an instance."""

    __new__ = CUDAGraph.__new__


class Event(_Event):
    """`torch.cuda.Event`. RuntimeError where there is no GPU."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        return object.__new__(cls) if _devices("cuda") else _refuse(cls)


class Stream(_Stream):
    """`torch.cuda.Stream`. RuntimeError where there is no GPU."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        return object.__new__(cls) if _devices("cuda") else _refuse(cls, "torch.cuda.{} requires CUDA support")


class StreamContext:
    """`torch.cuda.StreamContext`: a device has one stream, and so there is none to change to."""

    def __init__(self, stream: Stream | None):
        self.stream = stream

    def __enter__(self) -> None:
        pass

    def __exit__(self, *error: object) -> None:
        pass


def stream(stream: Stream | None) -> StreamContext:
    """A context that does nothing: there is no stream to change to."""
    return StreamContext(stream)


__getattr__, __dir__ = lazy(__name__, {}, ("amp",))
