"""Products of sparse matrices for JAX: SciPy's on the CPU, where XLA adds one row after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from graphc.lowering.callbacks import on_host
from graphc.lowering.scattering import even
from graphc.ops.sparse import added_rows, sparse_mm

FEW = 1 << 14  # products of elements, which take XLA no longer than a call of SciPy


def _sparse_mm(rows: Any, columns: Any, values: Any, dense: Any, size: int) -> Any:
    def by_xla(rows: Any, columns: Any, values: Any, dense: Any) -> Any:
        return added_rows(jnp, even(rows), columns, even(values), dense, size)

    def kernel(rows: np.ndarray, columns: np.ndarray, values: np.ndarray, dense: np.ndarray) -> list[np.ndarray]:
        inside = bool(((rows >= 0) & (rows < size) & (columns >= 0) & (columns < len(dense))).all())
        if not inside:  # the check of the program says so; SciPy would read other memory
            return [np.zeros((size, dense.shape[1]), values.dtype)]
        return [sparse_mm.kernel(rows, columns, values, dense, size=size)]

    if values.size * dense.shape[1] <= FEW:
        return by_xla(rows, columns, values, dense)
    result = (size, dense.shape[1]), values.dtype
    given = rows, columns, values, dense
    return on_host(kernel, [result], *given, elsewhere=lambda *arrays: [by_xla(*arrays)])[0]


OVERRIDES: dict[str, Callable[..., Any]] = {sparse_mm.name: _sparse_mm}
