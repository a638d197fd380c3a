"""Functions of NumPy arrays inside JAX programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from graphc.lowering.bits import converted

_HALF = np.dtype(np.uint32)


def on_host(
    function: Callable[..., Sequence[Any]], results: Sequence[tuple[tuple[int, ...], np.dtype]], *arrays: Any,
    vmap_method: str = "broadcast_all",
) -> list[Any]:  # fmt: skip
    """What `function(*arrays)`, on NumPy arrays, returns: arrays of the shapes and dtypes that `results` has.

    In the thread that runs a callback, JAX may have 64-bit types off: they travel as halves.
    """
    dtypes = [a.dtype for a in arrays]

    def whole(value: Any, dtype: np.dtype) -> np.ndarray:
        array = np.asarray(value)
        return np.ascontiguousarray(array).view(dtype)[..., 0] if dtype.itemsize == 8 else array

    def sent(value: Any, dtype: np.dtype) -> np.ndarray:
        array = np.asarray(value, dtype)
        return np.ascontiguousarray(array[..., None]).view(_HALF) if dtype.itemsize == 8 else array

    def call(*values: Any) -> list[np.ndarray]:
        made = function(*map(whole, values, dtypes))
        return [sent(value, dtype) for value, (_, dtype) in zip(made, results, strict=True)]

    types = [
        jax.ShapeDtypeStruct((*shape, 2), _HALF) if dtype.itemsize == 8 else jax.ShapeDtypeStruct(shape, dtype)
        for shape, dtype in results
    ]
    halved = [converted(a, _HALF) if a.dtype.itemsize == 8 else a for a in arrays]
    made = jax.pure_callback(call, types, *halved, vmap_method=vmap_method)
    return [
        converted(value, dtype) if dtype.itemsize == 8 else value
        for value, (_, dtype) in zip(made, results, strict=True)
    ]
