"""Processes that compute together: JAX's runtime across them, with one device of each.

A collective is a program over a mesh of the processes of its group. What each process has of its own is given to JAX as
an array that all devices have alike, which JAX does not compare: so nothing is reshaped, and inside `shard_map` each
device sees its own. One thread runs all of these programs in the order in which they were asked for, so that the main
thread can stop waiting for a process that never comes.
"""

from __future__ import annotations

import functools
import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, final

import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from eager.processes.errors import DistBackendError, DistNetworkError, DistStoreError
from graphc.ir.graph import Graph
from graphc.ir.structure import every_node
from graphc.lowering.collectives import AXIS, OVERRIDES, over
from graphc.lowering.loading import jax
from graphc.lowering.presence import Presence
from graphc.lowering.program_devices import ProgramDevices
from graphc.ops import Trait
from graphc.ops.aval import Aval
from graphc.ops.collectives import carrier, label_of

LATE_START = (
    "init_process_group() must come before the first compiled program of a process: JAX joins other processes only "
    "before it has started its devices"
)
UNREACHABLE = "rank {rank} could not join the {size} processes at {address} within {seconds:.0f} s: {error}"
FAILED = "{label} failed in rank {rank}: {error}"
_POLL = 0.05  # seconds: how long a wait keeps Python from handling signals


@final
class Processes:
    """The processes of a world, as seen from one of them. A `graphc.ops.collectives.Transport`.

    rank, size   which of how many
    timeout      seconds that a collective may wait for the others
    devices      the first one of each
    """

    def __init__(self, address: str, size: int, rank: int, timeout: float, heartbeat: float):
        """Join the others; the process of rank 0 listens at `address`, "host:port".

        heartbeat  seconds after which JAX takes a process that does not answer for dead, and ends the others

        Raises RuntimeError if JAX has started its devices already, DistNetworkError if some do not come in time.
        """
        self.rank, self.size, self.timeout = rank, size, timeout
        self._alone = size == 1
        if not self._alone:
            self._join(address, heartbeat)
        by_process = {device.process_index: device for device in reversed(jax.devices())}
        self.devices = [by_process[k] for k in range(size)] if not self._alone else jax.local_devices()[:1]
        self._meshes: dict[tuple[int, ...], Any] = {}
        self._programs: dict[Any, Callable[..., Any]] = {}
        self._tasks: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._presence = None if self._alone else Presence(self, timeout)
        threading.Thread(target=self._work, name="graphc collectives", daemon=True).start()

    def _join(self, address: str, heartbeat: float) -> None:
        from jax._src import xla_bridge

        if xla_bridge.backends_are_initialized():
            raise RuntimeError(LATE_START)
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
        seconds = max(1, round(self.timeout))
        try:
            jax.distributed.initialize(
                address, self.size, self.rank, initialization_timeout=seconds,
                heartbeat_timeout_seconds=max(1, round(heartbeat)), shutdown_timeout_seconds=min(seconds, 300),
            )  # fmt: skip
        except Exception as error:
            raise DistNetworkError(
                UNREACHABLE.format(rank=self.rank, size=self.size, address=address, seconds=seconds, error=error)
            ) from error

    def shutdown(self) -> None:
        """Leave, once all others do."""
        self._tasks.put(None)
        if self._presence is not None:
            self._presence.stop()
            jax.distributed.shutdown()
            # JAX's devices know the others; a world that comes after this one has devices of its own
            from jax.extend.backend import clear_backends

            clear_backends()

    def mesh(self, ranks: tuple[int, ...]) -> Any:
        """The mesh of one device of each of the processes `ranks`."""
        if ranks not in self._meshes:
            self._meshes[ranks] = Mesh(np.array([self.devices[k] for k in ranks]), (AXIS,))
        return self._meshes[ranks]

    def across(self, function: Callable[..., Any], ranks: tuple[int, ...]) -> Callable[..., Any]:
        """`function` as each of the processes `ranks` computes it, on its own arrays."""
        everywhere = PartitionSpec()

        def traced(*arrays: Any) -> Any:
            with over(ranks):
                return function(*arrays)

        return jax.shard_map(traced, mesh=self.mesh(ranks), in_specs=everywhere, out_specs=everywhere, check_vma=False)

    def sharding(self, ranks: tuple[int, ...]) -> Any:
        """How JAX is told that arrays lie which each process has of its own."""
        return NamedSharding(self.mesh(ranks), PartitionSpec())

    def given(self, array: Any, ranks: tuple[int, ...]) -> Any:
        """This process's `array` as an argument of a program across `ranks`."""
        own = jax.device_put(array, self.devices[self.rank])
        return jax.make_array_from_single_device_arrays(own.shape, self.sharding(ranks), [own])

    def submit(self, label: str, function: Callable[[], Any]) -> Future[Any]:
        """Run `function`, which waits for other processes, after all that was submitted before."""
        future: Future[Any] = Future()
        self._tasks.put((label, function, future))
        return future

    def _work(self) -> None:
        presence = self._presence
        while (task := self._tasks.get()) is not None:
            label, function, future = task
            if presence is not None:
                presence.enter(label)
            try:
                future.set_result(function())
            except BaseException as error:
                reason = DistBackendError(FAILED.format(label=label, rank=self.rank, error=error))
                reason.__cause__ = error
                future.set_exception(reason)
            if presence is not None:
                presence.leave()
            task = label = function = future = None  # whoever waits has them

    def result(self, future: Future[Any], label: str, timeout: float | None = None) -> Any:
        """Wait for what was submitted. DistBackendError after `timeout` seconds, which says where the others are."""
        seconds = self.timeout if timeout is None else timeout
        end = time.monotonic() + seconds
        while True:
            try:
                return future.result(min(_POLL, max(end - time.monotonic(), 0)))
            except TimeoutError:
                if future.done():
                    continue
                if time.monotonic() >= end:
                    raise self.overdue(label, seconds) from None

    def overdue(self, label: str, seconds: float) -> DistBackendError:
        """The error that something did not end in time, which says where the others are."""
        assert self._presence is not None
        return DistBackendError(self._presence.report(label, seconds))

    def start(self, name: str, array: np.ndarray, params: Mapping[str, Any]) -> Future[np.ndarray]:
        """Begin the collective op `name`; the result is a new array."""
        array = np.array(array)  # which may be written to before the thread gets to it
        key = (name, array.shape, array.dtype, *params.items())
        ranks = params["ranks"]

        def collective() -> np.ndarray:
            with jax.enable_x64(True):
                program = self._programs.get(key)
                if program is None:
                    kernel = functools.partial(OVERRIDES[name], **params)
                    program = self._programs[key] = jax.jit(self.across(kernel, ranks))
                return np.array(program(self.given(array, ranks)).addressable_data(0))

        return self.submit(label_of(name, array, params), collective)

    def run(self, name: str, array: np.ndarray, params: Mapping[str, Any]) -> np.ndarray:
        """See `graphc.ops.collectives.Transport`."""
        return self.result(self.start(name, array, params), label_of(name, array, params))

    @property
    def _client(self) -> Any:
        from jax._src.distributed import global_state

        return global_state.client

    def put(self, key: str, value: bytes) -> None:
        """Keep `value` under `key`, whatever was there."""
        self._client.key_value_set_bytes(key, value, allow_overwrite=True)

    def get(self, key: str, timeout: float) -> bytes:
        """The value of `key`, once there is one. DistStoreError after `timeout` seconds."""
        try:
            return self._client.blocking_key_value_get_bytes(key, max(1, round(timeout * 1000)))
        except jax.errors.JaxRuntimeError as error:
            raise DistStoreError(f"wait timeout after {timeout * 1000:.0f}ms, keys: {key}: {error}") from None

    def try_get(self, key: str) -> bytes | None:
        """The value of `key`, None if there is none."""
        try:
            return self._client.key_value_try_get_bytes(key)
        except jax.errors.JaxRuntimeError:  # NOT_FOUND
            return None

    def count(self, key: str) -> int:
        """Add one to the number under `key`, 0 if there is none; returns the sum."""
        return self._client.key_value_increment(key, 1)

    def delete(self, key: str) -> None:
        """Forget `key`."""
        self._client.key_value_delete(key)


def current() -> Processes | None:
    """The processes that this one computes with, if it does."""
    transport = carrier.transport
    return transport if isinstance(transport, Processes) else None


def ranks_of(graph: Graph, processes: Processes) -> tuple[int, ...]:
    """The processes whose program `graph` is: () if it waits for no others.

    They are those of its collectives, or, if these are of several groups, all.
    """
    found = {
        node.params["ranks"]
        for node in every_node(graph)
        if node.op.traits & Trait.COMMUNICATES and len(node.params["ranks"]) > 1
    }
    return found.pop() if len(found) == 1 else tuple(range(processes.size)) if found else ()


@final
class AcrossProcesses(ProgramDevices):
    """A device of each of several processes, which run a program together, each on arrays of its own."""

    calls_plainly = False

    def __init__(self, processes: Processes, ranks: tuple[int, ...], name: str, device: str | None):
        super().__init__(device)
        self._processes, self._ranks = processes, ranks
        self._label = f"the program {name} of ranks {', '.join(map(str, ranks))}"

    @property
    def cached(self) -> bool:
        """See `ProgramDevices`."""
        return False

    def function(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        """See `ProgramDevices`."""
        return self._processes.across(plain, self._ranks)

    def program(self, compiled: Callable[..., Any]) -> Callable[..., tuple[Any, ...]]:
        """See `ProgramDevices`: it waits for the others."""
        processes, ranks, label = self._processes, self._ranks, self._label

        def run(*arrays: Any) -> tuple[Any, ...]:
            given = [processes.given(array, ranks) for array in arrays]
            outputs = processes.result(processes.submit(label, lambda: compiled(*given)), label)
            return tuple(output.addressable_data(0) for output in outputs)

        return run

    def structs(self, avals: Sequence[Aval]) -> list[Any]:
        """See `ProgramDevices`."""
        sharding = self._processes.sharding(self._ranks)
        return [jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=sharding) for a in avals]


def devices_for(graph: Graph, device: str | None) -> ProgramDevices:
    """What `graph` runs on: one device, or one of each of the processes that its collectives are across."""
    processes = current()
    ranks = () if processes is None else ranks_of(graph, processes)
    if processes is None or not ranks:
        return ProgramDevices(device)
    return AcrossProcesses(processes, ranks, graph.name, device)
