"""Meshes and shardings as JAX has them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, final

import jax
import numpy as np
from jax import lax
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from graphc.sharding.layout import Layout
from graphc.sharding.mesh import Mesh
from graphc.sharding.sharding import Sharding

TOO_FEW = (
    "a mesh of {wanted} devices needs as many, JAX has {found}: for a simulation on the CPU set "
    "XLA_FLAGS=--xla_force_host_platform_device_count={wanted} before JAX is imported"
)


def divided() -> Any:
    """The mesh over which the compiler divides what is being traced; None if there is none.

    Of a program across processes (`shard_map`) each process has its own values, which nobody divides.
    """
    mesh = jax.sharding.get_abstract_mesh()
    return None if mesh.empty or AxisType.Auto not in mesh.axis_types else mesh


def shard(x: Any, spec: tuple[tuple[Any, ...], ...]) -> Any:
    mesh = divided()
    if mesh is None or not spec:
        return x
    names = [
        PartitionSpec.UNCONSTRAINED
        if axes is None
        else tuple(mesh.axis_names[axis] if isinstance(axis, int) else axis for axis in axes)
        for axes in spec
    ]
    return lax.with_sharding_constraint(x, PartitionSpec(*names))


OVERRIDES: dict[str, Callable[..., Any]] = {"shard": shard}


def mesh_of_devices(mesh: Mesh, device: str | None = None) -> jax.sharding.Mesh:
    """The first devices of JAX in the shape of `mesh`. RuntimeError if there are too few."""
    devices = jax.devices(device)
    if len(devices) < mesh.size:
        raise RuntimeError(TOO_FEW.format(wanted=mesh.size, found=len(devices)))
    array = np.array(devices[: mesh.size]).reshape(mesh.shape)
    return jax.sharding.Mesh(array, mesh.names, axis_types=(AxisType.Auto,) * len(mesh.names))


@final
class Placing:
    """A `Layout` on devices: what jax.jit is told."""

    def __init__(self, layout: Layout, device: str | None):
        self.layout = layout
        self.mesh = mesh_of_devices(layout.mesh, device)
        self.inputs = [self._named(s) for s in layout.inputs]
        self._seen: list[Any] = []

    def _named(self, sharding: Sharding | None) -> NamedSharding | None:
        return None if sharding is None else NamedSharding(self.mesh, PartitionSpec(*sharding.spec))

    def options(self, places: int, outputs: Sequence[int], fails: bool) -> dict[str, Any]:
        """Arguments of jax.jit for a program with so many `places` after its inputs, which returns these `outputs`."""
        kept = [self._named(self.layout.outputs[k]) for k in outputs]
        return {
            "in_shardings": (*self.inputs, *(None,) * places),
            "out_shardings": (*kept, *([None] if fails else [])),
        }

    def function(self, run: Callable[..., Any]) -> Callable[..., Any]:
        """What `run` is for jax.jit: itself."""
        return run

    def context(self) -> AbstractContextManager[Any]:
        """In which `shard` knows the mesh."""
        return jax.set_mesh(self.mesh)

    def put(self, arrays: Sequence[Any]) -> list[Any]:
        """`arrays` where the program wants them: those that lie there already are not touched."""
        placed = [
            a if wanted is None or getattr(a, "sharding", None) == wanted else jax.device_put(a, wanted)
            for a, wanted in zip(arrays, self.inputs, strict=False)
        ]
        if not self._seen:
            self._seen = [getattr(a, "sharding", None) for a in placed]
        return placed

    def structs(self, avals: Sequence[Any]) -> list[Any]:
        """What stands for the inputs when the program is compiled without them."""
        whole = NamedSharding(self.mesh, PartitionSpec())
        seen = self._seen or [None] * len(self.inputs)
        given = [s or (k if isinstance(k, NamedSharding) else whole) for s, k in zip(self.inputs, seen, strict=True)]
        return [jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=s) for a, s in zip(avals, given, strict=False)]
