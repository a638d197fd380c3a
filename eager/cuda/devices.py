"""What `torch.cuda` and `torch.xpu` know of their devices, whichever of the two asks.

JAX runs the operations of a device in the order in which they are asked for, and has no streams to choose from: a
`Stream` is that one queue. `Event.record` waits for what has been asked for so far, so that times are right.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from eager.core import state
from eager.core.devices import MISSING, check_device, current_index, device, named, set_current
from eager.core.placed import backing
from eager.core.runtime import devices, runtime
from eager.core.tensor import Tensor
from eager.rng.sampling import generator_of


def wait() -> None:
    """Wait for all that devices are computing."""
    for waiter in state.waiters:
        waiter()


class Stream:
    """The queue of a device. As `torch.cuda.Stream`, of which JAX has one for each device."""

    def __init__(self, device: Any = None, priority: int = 0, *, kind: str = "cuda", **ignored: Any):
        self.device = named(kind, device)

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Stream) and other.device is self.device

    def __hash__(self) -> int:
        return hash(self.device)

    def query(self) -> bool:
        """Whether all is computed: True, after waiting for it."""
        wait()
        return True

    synchronize = query

    def wait_stream(self, stream: Stream) -> None:
        """Does nothing: operations are run in the order in which they are asked for."""

    def wait_event(self, event: Event) -> None:
        """Does nothing, as `wait_stream`."""

    def record_event(self, event: Event | None = None) -> Event:
        """`event`, or a new one, recorded."""
        found = event if event is not None else Event(enable_timing=True)
        found.record()
        return found


class Event:
    """A moment at which a device had done what it was asked for. As `torch.cuda.Event`."""

    def __init__(self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False,
                 *, kind: str = "cuda"):  # fmt: skip
        check_device(kind)
        self._timed = enable_timing
        self._at: float | None = None

    def record(self, stream: Stream | None = None) -> None:
        """Wait for what has been asked for so far, and note the time."""
        wait()
        self._at = time.perf_counter()

    def wait(self, stream: Stream | None = None) -> None:
        """Does nothing: what was recorded has been done."""

    def query(self) -> bool:
        """True: `record` has waited."""
        return True

    def synchronize(self) -> None:
        """Does nothing: `record` has waited."""

    def elapsed_time(self, end_event: Event) -> float:
        """Milliseconds between two events. ValueError unless both are timed and recorded."""
        if not (self._timed and end_event._timed):
            raise ValueError("Both events must be created with argument 'enable_timing=True'.")
        if self._at is None or end_event._at is None:
            raise ValueError("Both events must be recorded before calculating elapsed time.")
        return 1000 * (end_event._at - self._at)


class DeviceContext:
    """A context in which a kind of device without an index means this one. As `torch.cuda.device`."""

    def __init__(self, device: Any, *, kind: str = "cuda"):
        self._kind, self._where = kind, None if device is None else named(kind, device)

    def __enter__(self) -> None:
        self._before = named(self._kind, current_index(self._kind))
        if self._where is not None:
            set_current(self._where)

    def __exit__(self, *error: object) -> None:
        set_current(self._before)


class _Functions:
    """The functions of the module `torch.<kind>`. Those that need a device raise as `check_device`."""

    def __init__(self, kind: str):
        assert kind in MISSING
        self._kind = kind

    def _there(self, where: Any = None) -> device:
        return named(self._kind, where)

    def _about(self, where: Any, what: str) -> Any:
        return runtime().about(backing(self._there(where)))[what]

    def _every(self) -> Sequence[device]:
        return [self._there(k) for k in range(self.device_count())]

    def is_available(self) -> bool:
        """Whether there is such a device."""
        return bool(devices(self._kind))

    def device_count(self) -> int:
        """The number of such devices."""
        return len(devices(self._kind))

    def current_device(self) -> int:
        """The number of the device that is meant where none is named."""
        return self._there().index or 0

    def set_device(self, device: Any) -> None:
        """Let `device` be the one that is meant where none is named, in this thread."""
        set_current(self._there(device))

    def synchronize(self, device: Any = None) -> None:
        """Wait for all that devices are computing."""
        self._there(device)
        wait()

    def get_device_name(self, device: Any = None) -> str:
        """The name of a device."""
        return self._about(device, "name")

    def get_device_capability(self, device: Any = None) -> tuple[int, int]:
        """The compute capability (major, minor) of a device; (0, 0) where it has none."""
        return self._about(device, "capability")

    def memory_stats(self, device: Any = None) -> dict[str, int]:
        """What the allocator of a device tells, by JAX's names; nothing where there is no device, or none that tells.
        """  # fmt: skip
        return self._about(device, "memory") if self.is_available() else {}

    def memory_allocated(self, device: Any = None) -> int:
        """The bytes that arrays take; 0 where the device does not tell."""
        return self.memory_stats(device).get("bytes_in_use", 0)

    def max_memory_allocated(self, device: Any = None) -> int:
        """The most bytes that arrays have taken; 0 where the device does not tell."""
        return self.memory_stats(device).get("peak_bytes_in_use", 0)

    def mem_get_info(self, device: Any = None) -> tuple[int, int]:
        """The bytes that are free, and all that JAX may take."""
        self._there(device)
        stats = self.memory_stats(device)
        most = stats.get("bytes_limit", 0)
        return most - stats.get("bytes_in_use", 0), most

    def empty_cache(self) -> None:
        """Does nothing: JAX keeps the memory that it has."""

    def manual_seed(self, seed: int) -> None:
        """Seed the generator of the current device, if there is one."""
        if self.is_available():
            generator_of(self._there()).manual_seed(int(seed))

    def manual_seed_all(self, seed: int) -> None:
        """Seed the generators of all such devices."""
        for where in self._every():
            generator_of(where).manual_seed(int(seed))

    def get_rng_state(self, device: Any = None) -> Tensor:
        """The state of the generator of a device, as a uint8 tensor on the CPU."""
        return generator_of(self._there(device)).get_state()

    def set_rng_state(self, new_state: Tensor, device: Any = None) -> None:
        """Continue the generator of a device from a state."""
        generator_of(self._there(device)).set_state(new_state)

    def get_rng_state_all(self) -> list[Tensor]:
        """The states of the generators of all such devices."""
        return list(map(self.get_rng_state, self._every()))

    def set_rng_state_all(self, new_states: Sequence[Tensor]) -> None:
        """Continue the generators of all such devices from these states."""
        for where, new_state in zip(self._every(), new_states, strict=False):
            self.set_rng_state(new_state, where)

    def current_stream(self, device: Any = None) -> Stream:
        """The queue of a device."""
        return Stream(device, kind=self._kind)

    def init(self) -> None:
        """Does nothing but to raise where there is no such device."""
        self._there()


def functions(kind: str) -> Mapping[str, Callable[..., Any]]:
    """The functions of the module `torch.<kind>`, by name."""
    made = _Functions(kind)
    return {name: getattr(made, name) for name in vars(_Functions) if name[0] != "_"}
