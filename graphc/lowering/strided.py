"""JAX kernels of the ops in `graphc.ops.strided`: gathers and scatters at positions known when the graph is lowered."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp

from graphc.ops.strided import positions


def as_strided_add(g: Any, shape: tuple[int, ...], size: Any, stride: Any, offset: int, layout: Any) -> Any:
    at = positions(shape, size, stride, offset, layout)
    # what belongs to no element is dropped: its position is one past the end
    return jnp.zeros(math.prod(shape), g.dtype).at[at].add(g, mode="drop").reshape(shape)


def as_strided_scatter(x: Any, src: Any, size: Any, stride: Any, offset: int, layout: Any) -> Any:
    at = positions(x.shape, size, stride, offset, layout)
    return x.reshape(-1).at[at].set(src, mode="drop").reshape(x.shape)


OVERRIDES = {f.__name__: f for f in (as_strided_add, as_strided_scatter)}
