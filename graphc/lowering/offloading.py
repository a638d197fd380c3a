"""Arguments and results that lie in the memory of the host, and visit the device while a program runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, final

import jax
from jax.sharding import SingleDeviceSharding

from graphc.lowering.devices import device_named
from graphc.lowering.stages import default_device

HOST = "pinned_host"
NO_HOST_MEMORY = (
    "offload= needs memory of the host that {device} reads by itself ('pinned_host'); it has {kinds}. "
    "Remedy: a backend that has it (CUDA, TPU, CPU), or a budget (memory=)"
)


@final
class Offload(NamedTuple):
    """The numbers of the inputs, and of the outputs of a graph, that lie on the host."""

    inputs: frozenset[int]
    outputs: frozenset[int]


NOTHING = Offload(frozenset(), frozenset())


@final
class Visiting:
    """An `Offload` on a device: what jax.jit is told. RuntimeError where the device has no such memory."""

    layout = None

    def __init__(self, offload: Offload, device: str | None):
        self._device = default_device() if device is None else device_named(device)
        kinds = [memory.kind for memory in self._device.addressable_memories()]
        if HOST not in kinds:
            raise RuntimeError(NO_HOST_MEMORY.format(device=self._device, kinds=", ".join(kinds)))
        self.offload = offload
        self._there = SingleDeviceSharding(self._device, memory_kind=HOST)
        self._here = SingleDeviceSharding(self._device, memory_kind=self._device.default_memory().kind)

    def _each(self, count: int, on_host: frozenset[int]) -> list[SingleDeviceSharding]:
        return [self._there if k in on_host else self._here for k in range(count)]

    def options(self, places: int, outputs: Sequence[int], fails: bool) -> dict[str, Any]:
        """Arguments of jax.jit: as those of `Placing.options`. Where inputs lie is theirs to say."""
        kept = [self._there if k in self.offload.outputs else self._here for k in outputs]
        return {"out_shardings": (*kept, *([self._here] if fails else []))}

    def function(self, run: Callable[..., Any]) -> Callable[..., Any]:
        """`run`, which is given on the device what lies on the host."""

        def visiting(*arrays: Any) -> Any:
            inside = (jax.device_put(a, self._here) if k in self.offload.inputs else a for k, a in enumerate(arrays))
            return run(*inside)

        return visiting

    def context(self) -> AbstractContextManager[Any]:
        """What the program is traced, compiled and called in."""
        return jax.default_device(self._device) if self._device != default_device() else nullcontext()

    def put(self, arrays: Sequence[Any]) -> list[Any]:
        """`arrays` where the program wants them: those that lie there already are not touched."""
        wanted = self._each(len(arrays), self.offload.inputs)
        return [a if getattr(a, "sharding", None) == s else jax.device_put(a, s)
                for a, s in zip(arrays, wanted, strict=True)]  # fmt: skip

    def structs(self, avals: Sequence[Any]) -> list[Any]:
        """What stands for the inputs when the program is compiled without them."""
        given = self._each(len(avals), self.offload.inputs)
        return [jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=s) for a, s in zip(avals, given, strict=True)]
