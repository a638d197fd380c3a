"""The devices that a program runs on. Here: one of this process; a mesh is in `sharding`, several processes in
`processes`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, final

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import SingleDeviceSharding

from graphc.ir.graph import Graph
from graphc.lowering.devices import device_named
from graphc.lowering.stages import default_device, setting
from graphc.ops.aval import Aval
from graphc.sharding.layout import Layout


@final
class Offload(NamedTuple):
    """The numbers of the inputs, and of the outputs of a graph, that lie in the memory of the host."""

    inputs: frozenset[int]
    outputs: frozenset[int]


def lying(arrays: Sequence[Any], wanted: Sequence[Any]) -> list[Any]:
    """`arrays` as they are to lie, by JAX's shardings; None: anywhere. Those that lie so already are not touched."""
    pairs = zip(arrays, wanted, strict=False)
    return [a if s is None or getattr(a, "sharding", None) == s else jax.device_put(a, s) for a, s in pairs]


NOTHING = Offload(frozenset(), frozenset())


def platform_of(name: str | None) -> str:
    """JAX's platform of the device that was named for a program: "cpu", "gpu", ...; None: the default one."""
    return (default_device() if name is None else device_named(name)).platform


class ProgramDevices:
    """One device of this process.

    named     that which was named for the program, "cpu" or "cuda:0"; None for the default one
    whole     whether each array lies on one device as a whole
    compiled  whether programs are compiled before they are called; otherwise `jax.jit` does it for the arrays it gets
    calls_plainly  whether such a program may be called without `context`, with arrays that need no `put`
    """

    whole = compiled = calls_plainly = True
    layout: Layout | None = None  # of inputs and outputs, on a mesh
    offload: Offload = NOTHING

    def __init__(self, device: str | None = None):
        self.named = None if device is None else device_named(device)

    @property
    def first(self) -> Any:
        """The device, or one of them."""
        return self.named or default_device()

    @property
    def cached(self) -> bool:
        """Whether compiled programs are kept in files, for later processes: they name devices."""
        return self.first == jax.local_devices(backend=self.first.platform)[0]

    def context(self, wide: bool) -> Callable[[], AbstractContextManager[Any]]:
        """What makes the contexts to trace, compile and call a program in, which has 64-bit types if `wide`."""
        return functools.partial(setting, wide, self.named)

    def options(self, places: int, outputs: Sequence[int], fails: bool) -> dict[str, Any]:
        """Arguments of jax.jit for a program with so many `places` after its inputs, which returns these `outputs`."""
        return {}

    def arranged(self, graph: Graph) -> Graph:
        """`graph` as its program computes it there."""
        return graph

    def function(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        """`plain` as a function for jax.jit."""
        return plain

    def program(self, compiled: Callable[..., Any]) -> Callable[..., tuple[Any, ...]]:
        """`compiled` as a function of this process's arrays."""
        return compiled

    def put(self, arrays: Sequence[Any]) -> Sequence[Any]:
        """`arrays` where the program wants them."""
        return arrays

    def structs(self, avals: Sequence[Aval]) -> list[Any]:
        """What stands for the inputs, and the places after them, when the program is compiled without them."""
        # of a device that was named, results stay there: JAX computes elsewhere with what is not committed to a place
        there = None if self.named is None else SingleDeviceSharding(self.named)
        return [jax.ShapeDtypeStruct(a.shape, a.dtype, sharding=there) for a in avals]

    def own(self, array: Any) -> Any:
        """A copy of `array` that a program may take over."""
        if isinstance(array, np.ndarray):  # jnp.array would compile a program for each shape
            return jax.device_put(np.array(array), self.named)
        if self.named is None and not array.committed and default_device().platform == "cpu":
            return jax.device_put(np.array(array))
        return jnp.array(array, copy=True, device=self.named)
