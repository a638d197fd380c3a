"""The runtime of device tensors: who runs ops on other memory than NumPy's. It is JAX, loaded on demand."""

from __future__ import annotations

import importlib.util
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from graphc.ops.spec import Op
    from graphc.ops.steps import Step


Dims = tuple[tuple[str, ...], ...]  # for each dim, the axes of the devices that it is split over, the major one first


class Runtime(Protocol):
    """What runs ops on devices. Arrays are its own; `devices` of it are told apart by their place in what it gives."""

    def devices(self, kind: str) -> Sequence[Any]:
        """The devices of this process that PyTorch calls "cuda", "xla", ..."""
        ...

    def put(self, array: Any, device: Any) -> Any:
        """A copy of an ndarray, or of an array of its own, on one of these."""
        ...

    def fetch(self, array: Any) -> np.ndarray:
        """The values, in memory of their own. If they lie on the devices of several processes, all have to ask."""
        ...

    def local(self, array: Any) -> np.ndarray:
        """The part that this process has, on its first device, in memory of its own."""
        ...

    def joined(self, part: np.ndarray, shape: tuple[int, ...], place: Any) -> Any:
        """The array of `shape` on the devices of several processes, as `over` says, of which each gives its part."""
        ...

    def about(self, device: Any) -> dict[str, Any]:
        """What is known of a device: its `name`, `capability` (major, minor), and what its `memory` holds, by name."""
        ...

    def wait(self, array: Any) -> None:
        """Return when `array` has been computed."""
        ...

    def run(self, op: Op, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        """The results of `op` on arrays, of which some may be ndarrays. Raises what its run-time check does."""
        ...

    def read(self, whole: Any, steps: tuple[Step, ...]) -> Any:
        """What can be seen of `whole` through `steps`."""
        ...

    def write(self, whole: Any, steps: tuple[Step, ...], value: Any) -> Any:
        """`whole` with `value` where `steps` lead to."""
        ...

    def over(
        self, kind: str, shape: tuple[int, ...], names: tuple[str, ...], dims: Dims, ranks: tuple[int, ...] | None
    ) -> Any:
        """What `put` takes in place of a device, for arrays that lie on the first devices of a kind, or on one of each
        of the processes `ranks`, which are in an array of this `shape` whose axes have `names`."""
        ...

    def alike(self, array: Any, model: Any) -> Any:
        """`array`, lying on the devices as `model` does."""
        ...

    def apart(self, array: Any) -> list[dict[str, int]]:
        """The places on the mesh of devices that have another part of an array than others have of the same."""
        ...

    def dims(self, array: Any) -> Dims | None:
        """How an array lies on several devices; None if it is on one, or lies in a way that has no such name."""
        ...


loaded: Runtime | None = None  # the runtime in use, once there is one


def runtime() -> Runtime:
    """What runs ops on devices: JAX, unless another runtime has been put in its place."""
    global loaded
    if loaded is None:
        from graphc.lowering import runtime as found

        loaded = found
    return loaded


def devices(kind: str) -> Sequence[Any]:
    """The devices of this process that PyTorch calls `kind`.

    JAX is not loaded to learn that there are no accelerators: scripts ask that first of all.
    """
    return runtime().devices(kind) if loaded is not None or kind == "xla" or _may_have_accelerators() else ()


def _may_have_accelerators() -> bool:
    """Whether JAX can know other devices than the CPU: it has plugins for them, and may use them."""
    if os.environ.get("JAX_PLATFORMS", "") == "cpu":
        return False
    return "jax" in sys.modules or importlib.util.find_spec("jax_plugins") is not None
