"""Arrays over the devices of several processes. Each process has a part of an array, and all run the same programs.

A program waits for the other processes where it exchanges something. So all of them go through the thread that runs
collectives (`graphc.lowering.processes`): in one order everywhere, and with its errors for a process that never comes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import cache
from hashlib import sha256
from typing import Any

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from graphc.lowering.processes import current

NOT_THE_SAME = (
    "a compiled program on a mesh of processes was given a plain {dtype}{shape} that is not the same in all of them: "
    "it counts as the whole value. Remedy: DTensor.from_local for a part; for random numbers, one seed in all processes"
)


def spans(array: Any) -> bool:
    """Whether an array, or a sharding, is of devices that this process does not have."""
    sharding = getattr(array, "sharding", array)
    return isinstance(sharding, jax.sharding.Sharding) and not sharding.is_fully_addressable


def together(label: str, mesh: Mesh | None, run: Callable[[], Any], wide: bool = True) -> Any:
    """What `run` returns, with `mesh` set. If that spans processes, in their common order, awaited, and, if `wide`,
    with 64-bit types.

    Raises DistBackendError where others do not come in time; other errors as they are.
    """

    def within() -> Any:
        with nullcontext() if mesh is None else jax.set_mesh(mesh):  # in which the op `shard` knows it
            return run()

    processes = current()
    if mesh is None or processes is None or not mesh.is_multi_process:
        return within()

    def awaited() -> Any:
        with jax.enable_x64(wide):
            return jax.block_until_ready(within())

    label = f"{label} of ranks {', '.join(map(str, _ranks(mesh)))}"
    return processes.result(processes.submit(label, awaited), label)


def _ranks(mesh: Mesh) -> tuple[int, ...]:
    return tuple(device.process_index for device in mesh.devices.flat)


def put(array: Any, sharding: NamedSharding) -> jax.Array:
    """An array that all processes have alike, lying so: each takes its part of its own. Nothing is exchanged."""
    host = np.asarray(array)
    return jax.make_array_from_callback(host.shape, sharding, lambda index: host[index])


def same_everywhere(mesh: Mesh, arrays: Sequence[Any]) -> None:
    """RuntimeError unless all processes of a mesh have the same `arrays`: what a program takes counts as the whole."""
    processes = current()
    if not arrays or processes is None:
        return
    digests = [sha256(np.asarray(a).tobytes()).digest() for a in arrays]
    own = np.frombuffer(b"".join(digests), np.uint8).reshape(len(arrays), -1)
    of_each = processes.run("all_gather", own, {"ranks": _ranks(mesh)})
    for k, a in enumerate(arrays):
        if (of_each[:, k] != own[k]).any():
            raise RuntimeError(NOT_THE_SAME.format(dtype=a.dtype, shape=list(a.shape)))


def relaid(array: jax.Array, sharding: NamedSharding) -> jax.Array:
    """The same values, lying so."""
    if array.sharding == sharding:
        return array
    mesh: Any = sharding.mesh
    return together("an exchange of parts", mesh, lambda: _to(sharding)(array))


@cache
def _to(sharding: NamedSharding) -> Callable[[Any], Any]:
    return jax.jit(lambda x: x, out_shardings=sharding)


def fetch(array: jax.Array) -> np.ndarray:
    """The whole, in memory of this process. If the processes have parts of it, all have to ask."""
    if not array.sharding.is_fully_replicated:
        assert isinstance(array.sharding, NamedSharding)
        array = relaid(array, NamedSharding(array.sharding.mesh, PartitionSpec()))
    return local(array)


def local(array: jax.Array) -> np.ndarray:
    """The part of this process's first device, in memory of its own."""
    return np.array(array.addressable_data(0))


def joined(part: Any, shape: Sequence[int], sharding: NamedSharding) -> jax.Array:
    """The array of `shape` of which each process has a `part`."""
    (own,) = sharding.addressable_devices
    return jax.make_array_from_single_device_arrays(tuple(shape), sharding, [jax.device_put(np.asarray(part), own)])


def mine(array: Any, sharding: NamedSharding) -> jax.Array:
    """What this process has of its own, as an array over all of a mesh: JAX does not compare the parts."""
    part = array.addressable_data(0) if spans(array) else array
    (own,) = sharding.addressable_devices
    sizes = dict(sharding.mesh.shape)
    counts = [math.prod(sizes[axis] for axis in _axes(entry)) for entry in (*sharding.spec, *(None,) * part.ndim)]
    shape = tuple(n * count for n, count in zip(part.shape, counts, strict=False))
    return jax.make_array_from_single_device_arrays(shape, sharding, [jax.device_put(part, own)])


def apart(array: Any, axes: Sequence[str]) -> jax.Array:
    """The opposite: an array over the part of the mesh that is left without these axes, or over this process alone."""
    mesh, part = array.sharding.mesh, array.addressable_data(0)
    names = tuple(name for name in mesh.axis_names if name not in axes)
    if not names:
        return part
    (own,) = array.sharding.addressable_devices
    at = np.argwhere(mesh.devices == own)[0]
    along = tuple(slice(None) if name in names else k for name, k in zip(mesh.axis_names, at, strict=True))
    left = Mesh(mesh.devices[along], names, axis_types=(AxisType.Auto,) * len(names))
    return jax.make_array_from_single_device_arrays(array.shape, NamedSharding(left, array.sharding.spec), [part])


def _axes(entry: Any) -> tuple[str, ...]:
    return () if entry is None else (entry,) if isinstance(entry, str) else tuple(entry)
