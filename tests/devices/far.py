"""A runtime of device tensors that is NumPy: what tests of everything but XLA put in the place of JAX.

Its arrays are no ndarrays, so that nothing can compute on them unseen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, final

import numpy as np

from eager.core import runtime as module
from graphc.ops.aval import results_of
from graphc.ops.interpret import F, run_kernel
from graphc.ops.steps import looked, may_repeat, numbers_seen, whole_after

COUNT = 4  # devices


@final
class Array:
    """An array on a device: immutable, and not NumPy's."""

    def __init__(self, values: np.ndarray, device: int):
        self.values, self.device = np.array(values), device
        self.shape, self.dtype = self.values.shape, self.values.dtype


@final
class FarRuntime:
    """See `eager.core.runtime.Runtime`. `fetched` counts the times that values have gone to the host."""

    def __init__(self) -> None:
        self.fetched = 0

    def devices(self, kind: str) -> Sequence[int]:
        return range(COUNT) if kind in ("xla", "cuda") else ()

    def put(self, array: Any, device: int) -> Array:
        return Array(array.values if isinstance(array, Array) else array, device)

    def fetch(self, array: Array) -> np.ndarray:
        self.fetched += 1
        return array.values.copy()

    def about(self, device: int) -> dict[str, Any]:
        return {"name": f"far {device}", "capability": (0, 0), "memory": {"bytes_in_use": 8}}

    def wait(self, array: Any) -> None:
        pass

    def run(self, op: Any, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        (device,) = {x.device for x in operands if isinstance(x, Array)}
        arrays = [x.values if isinstance(x, Array) else x for x in operands]
        if op.check is not None and not op.check.ok(np, *arrays, **params):
            raise op.check.failure(params, None, arrays)
        found = [Array(r, device) for r in results_of(run_kernel(op, arrays, params))]
        return tuple(found) if op.several else found[0]

    def read(self, whole: Array, steps: Any) -> Array:
        return Array([*looked(run_kernel, whole.values, steps)][-1], whole.device)

    def write(self, whole: Array, steps: Any, value: Array) -> Array:
        if not may_repeat(steps):
            return Array(whole_after(F, run_kernel, whole.values, steps, value.values), whole.device)
        flat = whole.values.reshape(-1).copy()
        flat[numbers_seen(whole.shape, steps)] = value.values
        return Array(flat.reshape(whole.shape), whole.device)


@contextmanager
def far() -> Iterator[FarRuntime]:
    """A context in which the devices are such."""
    found, before = FarRuntime(), module.loaded
    module.loaded = found
    try:
        yield found
    finally:
        module.loaded = before
