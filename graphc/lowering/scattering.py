"""Scatters on a mesh: what is scattered lies evenly.

XLA pads parts of updates that are not alike with index 0, and scatters what the padding holds (seen in jaxlib 0.10).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec

from graphc.lowering.sharding import divided
from graphc.ops import OPS


def even(x: Any) -> Any:
    """`x`, whose dims that do not divide by the number of devices are whole on each."""
    mesh = divided()
    if mesh is None:
        return x
    free = [None if n % mesh.size else PartitionSpec.UNCONSTRAINED for n in x.shape]
    return lax.with_sharding_constraint(x, PartitionSpec(*free))


def _evenly(name: str) -> Callable[..., Any]:
    """The kernel of an op whose first operand is scattered into, with the others even."""
    impl: Any = OPS[name].impl

    def kernel(x: Any, *updates: Any, **params: Any) -> Any:
        return impl(jnp, x, *map(even, updates), **params)

    return kernel


def _along(name: str) -> Callable[..., Any]:
    """The same where updates may be larger than the places that they are for."""
    kernel = _evenly(name)

    def of_places(x: Any, index: Any, src: Any, **params: Any) -> Any:
        return kernel(x, index, src[tuple(map(slice, index.shape))], **params)

    return of_places


OVERRIDES: dict[str, Callable[..., Any]] = {
    **{name: _along(name) for name in ("scatter", "scatter_add")},
    **{name: _evenly(name) for name in ("index_put", "put_slice")},
}
