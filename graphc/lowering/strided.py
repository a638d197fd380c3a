"""JAX kernels of the ops in `graphc.ops.strided`: gathers and scatters at positions known when the graph is lowered."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np

from graphc.lowering.scattering import even
from graphc.ops.strided import overlaps, positions


def _at(shape: tuple[int, ...], size: Any, stride: Any, offset: int, layout: Any) -> np.ndarray:
    # unsigned: known not to count from the end; narrow: a program without 64-bit types has no int64
    return positions(shape, size, stride, offset, layout).astype(np.uint32)


def as_strided(x: Any, size: Any, stride: Any, offset: int, layout: Any) -> Any:
    flat = jnp.append(x.reshape(-1), jnp.zeros(1, x.dtype))  # one past the end there is 0
    return flat[_at(x.shape, size, stride, offset, layout)]


def as_strided_add(g: Any, shape: tuple[int, ...], size: Any, stride: Any, offset: int, layout: Any) -> Any:
    at = _at(shape, size, stride, offset, layout)
    g, memory = even(g), jnp.zeros(math.prod(shape), g.dtype).at[at]
    # what belongs to no element is dropped: its position is one past the end
    alone = layout is None and not overlaps(size, stride)  # added to 0, a -0 would be lost
    return (memory.set(g, mode="drop") if alone else memory.add(g, mode="drop")).reshape(shape)


def as_strided_scatter(x: Any, src: Any, size: Any, stride: Any, offset: int, layout: Any) -> Any:
    at = _at(x.shape, size, stride, offset, layout)
    return x.reshape(-1).at[at].set(even(src), mode="drop").reshape(x.shape)


OVERRIDES = {f.__name__: f for f in (as_strided, as_strided_add, as_strided_scatter)}
