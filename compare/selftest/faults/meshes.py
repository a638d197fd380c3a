"""Faults of what puts tensors on a mesh of devices, runs ops on their parts, and makes programs for it.

They need four devices, and are planted where JAX has them: `XLA_FLAGS=--xla_force_host_platform_device_count=8`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np

import eager as torch
from compare.checking.equivalence import check
from compare.locating import on_meshes as at
from compare.selftest.fault import Expected, Fault, Trial, Trials
from compare.selftest.planting import Plant, entry, wrapped
from eager.core import placed
from eager.distributed.device_mesh import init_device_mesh
from eager.distributed.tensor import Replicate, Shard, distribute_module, distribute_tensor
from eager.engine import immediate
from graphc.lowering import runtime
from graphc.lowering.overrides import OVERRIDES
from graphc.lowering.sharding import MeshDevices
from graphc.ops import Trait

LAYER = "meshes"
EAGER, COMPILED = ["eager", "on the mesh"], ["eager", "compiled on the mesh"]


@cache
def _mesh() -> Any:
    return init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "model"))


def _on(values: Any, *placements: Any) -> Any:
    return distribute_tensor(torch.tensor(values), _mesh(), placements)


def _numbers(*shape: int) -> Any:
    return np.random.default_rng(5).uniform(0.5, 1.5, shape).astype(np.float32)


def _trials(made: Callable[[], tuple[Any, ...]], modes: Sequence[str]) -> Trials:
    """`check` of a call that `made` gives, with tensors on a mesh."""

    def trials() -> Iterator[Trial]:
        yield Trial("program on a mesh", check(*made(), modes=modes))

    return trials


def _normalized() -> tuple[Any, ...]:
    model = torch.nn.Sequential(torch.nn.BatchNorm1d(4), torch.nn.Dropout())
    return distribute_module(model, _mesh()), _on(_numbers(8, 4), Shard(0), Replicate())


def _stepped() -> tuple[Any, ...]:
    w = _on(_numbers(4, 4), Shard(0), Shard(1))
    return lambda x: w.mul_(2) @ x, _on(_numbers(4, 2), Shard(0), Replicate())


def _product() -> tuple[Any, ...]:
    x, w = _on(_numbers(4, 6), Replicate(), Shard(1)), _on(_numbers(6, 8), Replicate(), Shard(0))
    return lambda x, w: torch.tanh(x @ w), x, w


def _loss() -> tuple[Any, ...]:
    return lambda x: x.square().sum(), _on(_numbers(4, 6), Shard(0), Shard(1))


def _moved() -> tuple[Any, ...]:
    return lambda x: (x * 2).redistribute(_mesh(), [Replicate(), Shard(1)]) + 1, _on(
        _numbers(4, 6), Shard(0), Replicate()
    )


def _viewed() -> tuple[Any, ...]:
    x = _on(_numbers(4, 6), Shard(0), Replicate())

    def written(x: Any) -> Any:
        rows = x[1:3]
        x.add_(1)
        return rows * 2

    return written, x


def _fetched() -> tuple[Any, ...]:
    return lambda x: (x * 2).full_tensor() + 1, _on(_numbers(4, 6), Shard(0), Shard(1))


def _forgotten(is_copy: bool) -> Any:
    """What `alike` is if the last device keeps what it had: of parts, or of copies of the same."""

    def wrap(sound: Any) -> Any:
        def alike(array: Any, model: Any) -> Any:
            found = sound(array, model)
            if found.sharding.is_fully_replicated is not is_copy or not model.ndim:
                return found
            return runtime.with_last(found, model.addressable_shards[-1].data)

        return alike

    return wrap


def _drawn_by_each(sound: Any) -> Any:
    """What puts random numbers on a mesh if each device draws with the same seed."""
    return lambda array, model: sound(np.resize(sound(array, model).local(), array.shape), model)


def _result(which: Callable[[Any], bool], change: Callable[[Any], Any]) -> Any:
    """What `run` is if results of some ops on parts are changed."""

    def wrap(sound: Any) -> Any:
        def run(op: Any, operands: Any, params: Any) -> Any:
            found = sound(op, operands, params)
            split = any(any(runtime.dims(a) or ()) for a in operands if hasattr(a, "sharding"))
            return change(found) if split and which(op) else found

        return run

    return wrap


def _contracts(op: Any) -> bool:
    return bool(op.traits & Trait.CONTRACTS)


def _sums(op: Any) -> bool:
    return op.lifting is not None and "axis" in op.params and not _contracts(op)


def _last_rows_lost(sound: Any) -> Any:
    """Padding that is taken for values, where a dim does not divide."""

    def split(array: Any, where: Any, dims: Any) -> Any:
        found, said = sound(array, where, dims)
        return (found, said) if said is None else (found.at[-1:].set(0), said)

    return split


def _put_once(sound: Any) -> Any:
    """The last device keeps its part of the first call."""

    def put(self: Any, arrays: Any) -> Any:
        return [_with_last(a) for a in sound(self, arrays)]

    return put


def _with_last(array: Any) -> Any:
    if runtime.dims(array) is None or not array.ndim:
        return array
    return runtime.with_last(array, np.zeros_like(array.addressable_shards[-1].data))


def _first_part(sound: Any) -> Any:
    """Of an array in parts, the first one, over and over."""

    def fetch(array: Any) -> Any:
        whole = sound(array)
        return np.resize(np.array(array.addressable_shards[0].data), whole.shape) if runtime.dims(array) else whole

    return fetch


def _local_rows(sound: Any) -> Any:
    """Rows are counted within a part."""
    return lambda whole, steps: sound(whole[::-1] if any(runtime.dims(whole) or ()) else whole, steps)


def _shard(x: Any, spec: Any) -> Any:
    """An all-reduce of what is whole: a sum of copies."""
    return x + x


def _fault(name: str, plant: Plant, part: str, made: Any, modes: Sequence[str] = EAGER, op: str = "") -> Fault:
    return Fault(f"mesh: {name}", LAYER, plant, Expected(op, part), _trials(made, modes))


FAULTS: tuple[Fault, ...] = (
    _fault("a seed for each part", wrapped(immediate, "data_beside", _drawn_by_each), at.DRAWS, _normalized),
    _fault("an unsynchronized buffer", wrapped(runtime, "alike", _forgotten(True)), at.WRITE, _normalized),
    _fault("a stale part", wrapped(runtime, "alike", _forgotten(False)), at.WRITE, _stepped),
    _fault("a lost term of a product", wrapped(runtime, "run", _result(_contracts, lambda r: r * 0.5)), at.OP,
           _product, op="matmul"),
    _fault("a sum that is added twice", wrapped(runtime, "run", _result(_sums, lambda r: r * 2)), at.OP, _loss,
           op="sum"),
    _fault("padding of uneven parts", wrapped(placed, "_split", _last_rows_lost), at.PLACING,
           lambda: (torch.tanh, _on(_numbers(5, 4), Shard(0), Replicate()))),
    _fault("rows of a part in the place of those of all", wrapped(runtime, "read", _local_rows), at.VIEW, _viewed),
    _fault("a first part for the whole", wrapped(runtime, "fetch", _first_part), at.FETCH, _fetched),
    _fault("a stale part of what a program is given", wrapped(MeshDevices, "put", _put_once), at.PLACING, _loss,
           COMPILED),
    _fault("a sum of copies", lambda: entry(OVERRIDES, "shard", _shard), at.PROGRAM, _moved, COMPILED,
           op="shard"),
)  # fmt: skip
