"""What each process computes for itself, in a program across them that XLA divides: `shard_map` over some axes.

What a process has of its own goes from one such part to another as an array that all have alike, which JAX does not
compare.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec

from graphc.errors import GraphError
from graphc.lowering.collectives import over
from graphc.ops.local import terms

NO_MESH = "a program with to_local and from_local runs on a mesh of processes: compile it where they are"


def local_map(
    *operands: Any, body: Callable[..., tuple[Any, ...]], axes: tuple[str, ...], ranks: tuple[int, ...],
    given: Sequence[Any], returned: Sequence[Any], results: Sequence[Any], checked: bool = False,
) -> tuple[Any, ...]:  # fmt: skip
    mesh = jax.sharding.get_abstract_mesh()
    if mesh.empty:
        raise GraphError(NO_MESH)

    def of_each(*parts: Any) -> tuple[Any, ...]:
        with over(ranks, axes):
            found = tuple(body(*parts))
        # all go on, or none: a check that fails in one process fails in all
        return (*found[:-1], lax.pmax(found[-1], axes)) if checked else found

    specs = [*map(_spec, returned), *([PartitionSpec()] if checked else [])]
    return jax.shard_map(
        of_each, in_specs=tuple(map(_spec, given)), out_specs=tuple(specs), axis_names={*axes}, check_vma=False
    )(*operands)


def _spec(dims: Sequence[tuple[str, ...]]) -> PartitionSpec:
    return PartitionSpec(*[axes or None for axes in dims])


def from_local(x: Any, mesh: Any, dims: Sequence[Any]) -> Any:
    """Inside of a `local_map`, which makes the whole: the terms are summed here."""
    for k, how, dim in terms(dims):
        axis = mesh[0][k]
        x = lax.psum(x, axis) if dim < 0 else lax.psum_scatter(x, axis, scatter_dimension=dim, tiled=True)
        x = x / np.array(mesh[1][k], x.dtype) if how == "avg" else x
    return x


OVERRIDES: dict[str, Callable[..., Any]] = {"local_map": local_map, "from_local": from_local}
