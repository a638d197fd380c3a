"""Arguments and results that lie in the memory of the host, and visit the device while a program runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, final

import jax
from jax.sharding import SingleDeviceSharding

from graphc.lowering.program_devices import Offload, ProgramDevices, lying
from graphc.ops.aval import Aval

HOST = "pinned_host"
NO_HOST_MEMORY = (
    "offload= needs memory of the host that {device} reads by itself ('pinned_host'); it has {kinds}. "
    "Remedy: a backend that has it (CUDA, TPU, CPU), or a budget (memory=)"
)


@final
class HostMemoryDevice(ProgramDevices):
    """A device which some of the inputs and outputs visit. RuntimeError where it cannot read memory of the host."""

    compiled = calls_plainly = False

    def __init__(self, offload: Offload, device: str | None):
        super().__init__(device)
        kinds = [memory.kind for memory in self.first.addressable_memories()]
        if HOST not in kinds:
            raise RuntimeError(NO_HOST_MEMORY.format(device=self.first, kinds=", ".join(kinds)))
        self.offload = offload
        self._there = SingleDeviceSharding(self.first, memory_kind=HOST)
        self._here = SingleDeviceSharding(self.first, memory_kind=self.first.default_memory().kind)

    def _each(self, count: int, on_host: frozenset[int]) -> list[SingleDeviceSharding]:
        return [self._there if k in on_host else self._here for k in range(count)]

    def options(self, places: int, outputs: Sequence[int], fails: bool) -> dict[str, Any]:
        """See `ProgramDevices`. Where inputs lie is theirs to say."""
        kept = [self._there if k in self.offload.outputs else self._here for k in outputs]
        return {"out_shardings": (*kept, *([self._here] if fails else []))}

    def function(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        """See `ProgramDevices`: it is given on the device what lies on the host."""

        def visiting(*arrays: Any) -> Any:
            inside = (jax.device_put(a, self._here) if k in self.offload.inputs else a for k, a in enumerate(arrays))
            return plain(*inside)

        return visiting

    def put(self, arrays: Sequence[Any]) -> Sequence[Any]:
        """See `ProgramDevices`: those that lie there already are not touched."""
        return lying(arrays, self._each(len(arrays), self.offload.inputs))

    def structs(self, avals: Sequence[Aval]) -> list[Any]:
        """See `ProgramDevices`."""
        given = self._each(len(avals), self.offload.inputs)
        return [jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=s) for a, s in zip(avals, given, strict=True)]
