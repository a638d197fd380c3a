"""Functions of NumPy arrays inside JAX programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax import lax
from jax.experimental.buffer_callback import buffer_callback

from graphc.lowering.bits import converted

_HALF = np.dtype(np.uint32)
Results = Sequence[tuple[tuple[int, ...], np.dtype]]


def on_host(
    function: Callable[..., Sequence[Any]], results: Results, *arrays: Any, vmap_method: str = "broadcast_all",
    elsewhere: Callable[..., Sequence[Any]] | None = None,
) -> list[Any]:  # fmt: skip
    """What `function(*arrays)`, on NumPy arrays, returns: arrays of the shapes and dtypes that `results` has.

    elsewhere  what JAX computes in its place where the arrays are not in the host's memory
    """

    def here(*arrays: Any) -> list[Any]:
        return _in_place(function, results, arrays, vmap_method)

    def there(*arrays: Any) -> list[Any]:
        return _sent(function, results, arrays, vmap_method) if elsewhere is None else [*elsewhere(*arrays)]

    return lax.platform_dependent(*arrays, cpu=here, default=there)


def _in_place(
    function: Callable[..., Sequence[Any]], results: Results, arrays: Sequence[Any], vmap_method: str
) -> list[Any]:
    """On the memory of the program itself.

    `jax.pure_callback` copies its arguments by XLA, and waits for that in a thread of XLA's: for ever, if there is no
    other, as on a machine with one processor.
    """

    def call(context: Any, made: Sequence[Any], *values: Any) -> None:
        for to, value in zip(made, function(*map(np.asarray, values)), strict=True):
            np.asarray(to)[...] = value

    types = [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in results]
    return buffer_callback(call, types, vmap_method=vmap_method)(*arrays)


def _travels_halved(dtype: np.dtype) -> bool:
    return dtype.itemsize == 8 and dtype.kind != "c"


def _sent(
    function: Callable[..., Sequence[Any]], results: Results, arrays: Sequence[Any], vmap_method: str
) -> list[Any]:
    """On copies in the host's memory.

    In the thread that runs a callback, JAX may have 64-bit types off: they travel as halves.
    """
    dtypes = [a.dtype for a in arrays]

    def whole(value: Any, dtype: np.dtype) -> np.ndarray:
        array = np.asarray(value)
        return np.ascontiguousarray(array).view(dtype)[..., 0] if _travels_halved(dtype) else array

    def sent(value: Any, dtype: np.dtype) -> np.ndarray:
        array = np.asarray(value, dtype)
        return np.ascontiguousarray(array[..., None]).view(_HALF) if _travels_halved(dtype) else array

    def call(*values: Any) -> list[np.ndarray]:
        made = function(*map(whole, values, dtypes))
        return [sent(value, dtype) for value, (_, dtype) in zip(made, results, strict=True)]

    types = [
        jax.ShapeDtypeStruct((*shape, 2), _HALF) if _travels_halved(dtype) else jax.ShapeDtypeStruct(shape, dtype)
        for shape, dtype in results
    ]
    halved = [converted(a, _HALF) if _travels_halved(a.dtype) else a for a in arrays]
    made = jax.pure_callback(call, types, *halved, vmap_method=vmap_method)
    return [
        converted(value, dtype) if _travels_halved(dtype) else value
        for value, (_, dtype) in zip(made, results, strict=True)
    ]
