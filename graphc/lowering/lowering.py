"""`graphc.lower`: a graph becomes a program of JAX or NumPy, on the devices that are asked for."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, TypedDict, Unpack, overload

from graphc.errors import GraphError
from graphc.ir.graph import Graph
from graphc.lowering.executable import Executable
from graphc.lowering.host import HostExecutable, unsuitable
from graphc.lowering.offloading import HostMemoryDevice
from graphc.lowering.processes import devices_for
from graphc.lowering.program_devices import Offload
from graphc.lowering.sharding import MeshDevices
from graphc.sharding.layout import layout_of

BACKENDS = ("jax", "numpy")


class Keywords(TypedDict, total=False):
    """What `lower` takes by name, but for the backend."""

    donate: Sequence[int]
    restore: Mapping[int, int] | None
    strict: bool
    without: Collection[str]
    settled: Collection[int]
    mesh: Any
    shardings: Any
    out_shardings: Any
    offload: Offload | None


@overload
def lower(
    graph: Graph, device: str | None = None, *, backend: Literal["jax"] = "jax", **how: Unpack[Keywords]
) -> Executable: ...
@overload
def lower(
    graph: Graph, device: str | None = None, *, backend: str, **how: Unpack[Keywords]
) -> Executable | HostExecutable: ...
def lower(
    graph: Graph,
    device: str | None = None,
    *,
    donate: Sequence[int] = (),
    restore: Mapping[int, int] | None = None,
    strict: bool = False,
    without: Collection[str] = (),
    settled: Collection[int] = (),
    backend: str = "jax",
    mesh: Any = None,
    shardings: Any = None,
    out_shardings: Any = None,
    offload: Offload | None = None,
) -> Executable | HostExecutable:
    """Lower `graph` to one `jax.jit` program, or to NumPy.

    device   "cpu", "gpu" or None for JAX's default
    donate   positions of inputs whose memory the program may reuse
    restore  output number -> input number: what a donated state falls back to when a run-time check fails
    strict   keep XLA from changing values (its algebraic simplifier and contraction are off); slower
    without  names of choices of the lowering that are not made: see `graphc.mechanisms`
    settled  ids of nodes whose run-time checks the caller makes before each call
    backend  "jax", or "numpy": straight-line NumPy, which takes and returns ndarrays, and takes over no memory
    mesh     the devices to run on together (see `graphc.sharding.mesh_of`), or None for one device
    shardings, out_shardings  how inputs and outputs lie on the mesh: placements or specs, by name of input and by
             number of output, or in order; what is not said is replicated, of outputs left to XLA
    offload  the inputs and outputs that lie in the memory of the host, on one device

    Raises ValueError for another backend, and for NumPy on another device than the CPU; GraphError for a graph that
    cannot be lowered to NumPy (control flow with run-time checks inside it).

    >>> import eager as torch, graphc
    >>> ex = graphc.lower(graphc.trace(lambda x: x.tanh().sum(), torch.zeros(3)))
    >>> print(ex.source)
    def lambda_(x):
        ...
    >>> float(ex(torch.zeros(3)))
    0.0
    """
    if backend not in BACKENDS:
        raise ValueError(f"backend must be one of {', '.join(BACKENDS)}, got {backend!r}")
    if backend == "numpy":
        if device not in (None, "cpu"):
            raise ValueError(f"backend 'numpy' computes on the CPU, not on device {device!r}")
        if why := unsuitable(graph):
            raise GraphError(why)
        if mesh is not None:
            raise ValueError("backend 'numpy' computes on one device, not on a mesh")
        return HostExecutable(graph, settled)
    if mesh is None:
        devices = devices_for(graph, device) if offload is None else HostMemoryDevice(offload, device)
    else:
        devices = MeshDevices(layout_of(graph, mesh, shardings, out_shardings), device)
    return Executable(graph, devices, donate, restore or {}, strict, without, settled)
