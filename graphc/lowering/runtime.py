"""Ops run one by one on JAX's devices: what `eager.core.runtime.Runtime` is.

Each op is a small graph, lowered as any other, so that nothing is declared twice; `jax.jit` compiles it for the devices
that its operands lie on, be it one or many.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax.sharding import NamedSharding, PartitionSpec

from eager.core.runtime import Dims
from graphc import forking
from graphc.ir import Builder, Ref
from graphc.lowering import spanning
from graphc.lowering.devices import devices_of as devices
from graphc.lowering.executable import Executable
from graphc.lowering.lowering import lower
from graphc.lowering.sharding import mesh_of_devices
from graphc.ops import Literal, Op
from graphc.ops.aval import Aval, aval_of, results_of
from graphc.ops.dtypes import INT64
from graphc.ops.steps import Step, looked, may_repeat, numbers_seen, whole_after
from graphc.sharding.mesh import Mesh

__all__ = [
    "about", "alike", "apart", "devices", "dims", "fetch", "joined", "local", "over", "put", "read", "run", "wait",
    "write",
]  # fmt: skip


def put(array: Any, device: Any) -> jax.Array:
    """A copy of an ndarray, or of an array elsewhere, on a device of `devices`; an array that lies so, itself."""
    if isinstance(array, jax.Array) and array.sharding == device:  # as JAX does, but it thinks for 30 us
        return array
    forking.refuse("a tensor on a device")
    with jax.enable_x64(True):
        if spanning.spans(device):
            return spanning.relaid(array, device) if spanning.spans(array) else spanning.put(array, device)
        return jax.device_put(np.array(array) if isinstance(array, np.ndarray) else array, device)


def fetch(array: jax.Array) -> np.ndarray:
    """The values, awaited, in memory of their own. Of an array that processes have parts of, all have to ask."""
    return spanning.fetch(array) if spanning.spans(array) else np.array(array)


def local(array: jax.Array) -> np.ndarray:
    """The part of the first device of this process, in memory of its own."""
    return spanning.local(array)


def joined(part: np.ndarray, shape: tuple[int, ...], place: Any) -> jax.Array:
    """The array of `shape` on the devices of several processes, of which each gives its own part."""
    forking.refuse("a tensor on a device")
    with jax.enable_x64(True):
        return spanning.joined(part, shape, place)


def about(device: Any) -> dict[str, Any]:
    """The `name` of a device, its `capability` (major, minor), and what its `memory` holds, by JAX's names."""
    major, _, minor = str(getattr(device, "compute_capability", "0.0")).partition(".")
    return {"name": device.device_kind, "capability": (int(major), int(minor or 0)),
            "memory": dict(device.memory_stats() or {})}  # fmt: skip


def wait(array: Any) -> None:
    """Return when `array`, or all of a nest of them, has been computed."""
    jax.block_until_ready(array)


def run(op: Op, operands: Sequence[Any], params: dict[str, Any]) -> Any:
    """The result of `op`, or a tuple of its results, on arrays already promoted. Raises what its check does."""
    params = {name: _plain(value) for name, value in params.items()}
    program = _of_op(op, _key(params), tuple(map(aval_of, operands)), _platform(operands), _Held(params))
    try:
        found = _results(program, operands)
    except _Failed as failed:
        if op.check is None:
            raise failed.error from None
        raise op.check.failure(params, None, [a if isinstance(a, np.ndarray) else fetch(a) for a in operands]) from None
    return tuple(found) if op.several else found[0]


def read(whole: Any, steps: tuple[Step, ...]) -> Any:
    """What can be seen of `whole` through `steps`."""
    return _results(_of_view(_steps_key(steps), aval_of(whole), _platform((whole,)), _Held(steps)), (whole,))[0]


def write(whole: Any, steps: tuple[Step, ...], value: Any) -> Any:
    """`whole` with `value` where `steps` lead to. Of elements that share a place, the last one stays."""
    avals = aval_of(whole), aval_of(value)
    program = _of_write(_steps_key(steps), *avals, _platform((whole, value)), _Held(steps))
    return _results(program, (whole, value))[0]


@functools.cache
def over(
    kind: str, shape: tuple[int, ...], names: tuple[str, ...], dims: Dims, ranks: tuple[int, ...] | None
) -> NamedSharding:
    """The sharding of arrays on the first devices that PyTorch calls `kind`, or on those of the processes `ranks`.
    RuntimeError if there are too few."""
    mesh = mesh_of_devices(Mesh(shape, names, ranks), None if kind == "xla" else kind)
    return NamedSharding(mesh, PartitionSpec(*[axes or None for axes in dims]))


def alike(array: Any, model: jax.Array) -> jax.Array:
    """`array`, lying on the devices as `model` does."""
    return put(array, model.sharding)


def apart(array: jax.Array) -> list[dict[str, int]]:
    """The places on the mesh of devices that have other bits of a part than the first device that has it."""
    parts: dict[str, bytes] = {}
    found: list[dict[str, int]] = []
    for shard in array.addressable_shards:
        own = np.asarray(shard.data).tobytes()
        if parts.setdefault(str(shard.index), own) != own:
            mesh: Any = array.sharding.mesh  # type: ignore[attr-defined]  # of a NamedSharding: it lies on several
            at = np.argwhere(mesh.devices == shard.device)[0]
            found.append(dict(zip(mesh.axis_names, map(int, at), strict=True)))
    return found


def with_last(array: jax.Array, part: Any) -> jax.Array:
    """`array` with another part on its last device, be it a copy or not: what checks of meshes have to find."""
    *others, last = array.addressable_shards
    parts = [*(shard.data for shard in others), jax.device_put(np.asarray(part), last.device)]
    return jax.make_array_from_single_device_arrays(array.shape, array.sharding, parts)


def dims(array: jax.Array) -> Dims | None:
    """The mesh axes that each dim is split over; None if the array is on one device, or lies in no such way."""
    sharding = array.sharding
    if not isinstance(sharding, NamedSharding):
        return None
    axes = [() if e is None else (e,) if isinstance(e, str) else tuple(e) for e in sharding.spec]
    return (*axes, *((),) * (array.ndim - len(axes)))


class _Held:
    """An argument of a cached function that is not part of the key."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Held)

    def __hash__(self) -> int:
        return 0


class _Failed(Exception):
    def __init__(self, error: Exception):
        super().__init__()
        self.error = error


def _results(program: Executable, operands: Sequence[Any]) -> Sequence[Any]:
    forking.refuse("a tensor on a device")
    mesh = next((a.sharding.mesh for a in operands if isinstance(getattr(a, "sharding", None), NamedSharding)), None)
    outputs = spanning.together(program.graph.name, mesh, lambda: program.dispatch_anywhere(*operands))
    if not program.fails:
        return outputs
    try:
        program.verify(outputs)
    except Exception as error:
        raise _Failed(error) from None
    return outputs[:-1]


@functools.lru_cache(maxsize=4096)
def _of_op(op: Op, key: Any, avals: tuple[Aval, ...], platform: str | None, params: _Held) -> Executable:
    return _lowered(op.name, avals, platform, lambda builder, xs: builder.apply(op, xs, params.value))


@functools.lru_cache(maxsize=1024)
def _of_view(key: Any, whole: Aval, platform: str | None, steps: _Held) -> Executable:
    return _lowered("view", (whole,), platform, lambda builder, xs: [*looked(builder.emit, xs[0], steps.value)][-1])


@functools.lru_cache(maxsize=1024)
def _of_write(key: Any, whole: Aval, part: Aval, platform: str | None, steps: _Held) -> Executable:
    def written(builder: Builder, xs: Sequence[Any]) -> Any:
        F, (into, value) = builder.language, xs
        if not may_repeat(steps.value):
            return whole_after(F, builder.emit, into, steps.value, value)
        seen = numbers_seen(whole.shape, steps.value).reshape(-1)
        flat, values = (F.reshape(x, shape=(x.aval.size,)) for x in (into, value))
        at = builder.constant(seen.astype(INT64))
        return F.reshape(F.index_put(flat, values, at, spec=(0,), accumulate=False), shape=whole.shape)

    return _lowered("write", (whole, part), platform, written)


def _lowered(
    name: str, avals: Sequence[Aval], platform: str | None, made: Callable[[Builder, list[Any]], Any]
) -> Executable:
    builder = Builder()
    inputs = [builder.input(f"x{k}", aval) for k, aval in enumerate(avals)]
    found = results_of(made(builder, inputs))
    return lower(builder.graph(name, tuple(Ref(symbol.id) for symbol in found)), platform)


def _platform(operands: Sequence[Any]) -> str | None:
    """The platform of the devices that operands lie on; None for JAX's default one."""
    found = next(iter(next(a for a in operands if isinstance(a, jax.Array)).devices())).platform
    return None if found == jax.default_backend() else found


def _steps_key(steps: Sequence[Step]) -> Any:
    return tuple((step.op, _key(step.params)) for step in steps)


def _plain(value: Any) -> Any:
    """A parameter with tuples in place of sizes of tensors, which source text does not have."""
    return tuple(map(_plain, value)) if isinstance(value, tuple) else value


def _key(value: Any) -> Any:
    """What tells values of parameters apart: types, and the bits of floats."""
    if isinstance(value, dict):
        return tuple((name, _key(part)) for name, part in value.items())
    if isinstance(value, tuple):
        return tuple(map(_key, value))
    if isinstance(value, (float, complex)):
        return type(value), str(value)
    return value if isinstance(value, (Literal, np.dtype)) or callable(value) else (type(value), value)
