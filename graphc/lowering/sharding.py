"""Meshes and shardings as JAX has them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Any, final

import jax
import numpy as np
from jax import lax
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from graphc.ir.graph import Graph
from graphc.lowering import spanning
from graphc.lowering.processes import current
from graphc.lowering.program_devices import ProgramDevices, lying
from graphc.lowering.stages import setting
from graphc.ops.aval import Aval
from graphc.sharding.layout import Layout
from graphc.sharding.mesh import Mesh
from graphc.sharding.propagation import propagated
from graphc.sharding.regions import with_regions
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
    """The first devices of JAX in the shape of `mesh`; where there are other processes, one of each that is in it.
    RuntimeError if there are too few."""
    processes = current()
    if processes is None or processes.size == 1:
        devices = jax.devices(device)
    else:
        devices = [processes.devices[rank] for rank in mesh.ranks or range(processes.size)]
    if len(devices) < mesh.size:
        raise RuntimeError(TOO_FEW.format(wanted=mesh.size, found=len(devices)))
    array = np.array(devices[: mesh.size]).reshape(mesh.shape)
    return jax.sharding.Mesh(array, mesh.names, axis_types=(AxisType.Auto,) * len(mesh.names))


def _spread(array: Any, wanted: NamedSharding) -> Any:
    return spanning.relaid(array, wanted) if spanning.spans(array) else spanning.put(array, wanted)


@final
class MeshDevices(ProgramDevices):
    """The devices of a mesh, on which the arrays of a program lie as a `Layout` says."""

    whole = compiled = calls_plainly = False

    def __init__(self, layout: Layout, device: str | None):
        super().__init__()
        self.layout = self._lies = layout
        self.mesh = mesh_of_devices(layout.mesh, device)
        self.inputs = [self._named(s) for s in layout.inputs]
        self._outputs = layout.outputs
        self._made: list[tuple[str, ...]] = []
        self._seen: list[Any] = []
        self._graph: Graph | None = None

    @property
    def first(self) -> Any:
        """One of the devices."""
        return self.mesh.devices.flat[0]

    def _named(self, sharding: Sharding | None) -> NamedSharding | None:
        return None if sharding is None else NamedSharding(self.mesh, PartitionSpec(*sharding.spec))

    def context(self, wide: bool) -> Callable[[], AbstractContextManager[Any]]:
        """See `ProgramDevices`: in these, `shard` knows the mesh."""

        def entered() -> AbstractContextManager[Any]:
            stack = ExitStack()
            stack.enter_context(setting(wide))
            stack.enter_context(jax.set_mesh(self.mesh))
            return stack

        return entered

    def options(self, places: int, outputs: Sequence[int], fails: bool) -> dict[str, Any]:
        """See `ProgramDevices`."""
        kept = [self._named(self._outputs[k]) for k in outputs]
        made = dict(enumerate(self._lies.made))
        self._made = [made.get(k, ()) for k in outputs]
        return {"in_shardings": (*self.inputs, *(None,) * places), "out_shardings": (*kept, *([None] if fails else []))}

    def program(self, compiled: Callable[..., Any]) -> Callable[..., tuple[Any, ...]]:
        """See `ProgramDevices`: between processes it waits for the others."""
        if not self.mesh.is_multi_process:
            return compiled

        def run(*arrays: Any) -> tuple[Any, ...]:
            wide = jax.config.jax_enable_x64  # type: ignore[attr-defined]  # in this thread
            outputs = spanning.together("the program", self.mesh, lambda: compiled(*arrays), wide)
            if not any(self._made):
                return outputs
            made = (*self._made, *((),) * (len(outputs) - len(self._made)))
            return tuple(spanning.apart(o, axes) if axes else o for o, axes in zip(outputs, made, strict=True))

        return run

    def arranged(self, graph: Graph) -> Graph:
        """See `ProgramDevices`: with what each process computes for itself put together."""
        self._graph = with_regions(graph, self._lies.mesh, dict(zip(graph.inputs, self._lies.own, strict=False)))
        return self._graph

    def put(self, arrays: Sequence[Any]) -> Sequence[Any]:
        """See `ProgramDevices`: those that lie there already are not touched."""
        if self.mesh.is_multi_process:
            own = self._lies.own or ((),) * len(self.inputs)
            alike = [a for a, axes in zip(arrays, own, strict=False) if not axes and not spanning.spans(a)]
            spanning.same_everywhere(self.mesh, alike)
            given = zip(arrays, self.inputs, own, strict=False)
            arrays = [a if w is None else spanning.mine(a, w) if axes else _spread(a, w) for a, w, axes in given]
        placed = lying(arrays, self.inputs)
        if not self._seen:
            self._seen = [getattr(a, "sharding", None) for a in placed]
        return placed

    def _expected(self) -> list[NamedSharding | None]:
        """How the inputs will lie: where XLA may choose, as what is computed of them."""
        if None not in self.inputs or self._graph is None:
            return self.inputs
        found = propagated(self._graph, self._lies).shardings
        return [self._named(found[i]) for i in self._graph.inputs]

    def structs(self, avals: Sequence[Aval]) -> list[Any]:
        """See `ProgramDevices`."""
        whole = NamedSharding(self.mesh, PartitionSpec())
        seen = zip(self.inputs, self._seen or self._expected(), strict=True)
        given = [s or (k if isinstance(k, NamedSharding) else whole) for s, k in seen]
        anywhere = [None] * (len(avals) - len(given))
        return [
            jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=s) for a, s in zip(avals, [*given, *anywhere], strict=True)
        ]

    def own(self, array: Any) -> Any:
        """See `ProgramDevices`: `put` gives an ndarray its place."""
        return np.array(array) if isinstance(array, np.ndarray) else super().own(array)
