"""Mesh: devices in an array whose dims have names. A description, without devices and without jax."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, final

from eager.distributed.device_mesh import DeviceMesh


@final
class Mesh(NamedTuple):
    """Devices 0, 1, ... in an array of this `shape`, in row-major order, with a name for each of its axes.

    ranks  between processes: the processes whose devices they are; None: all

    >>> mesh = Mesh((4, 2), ("data", "model"))
    >>> mesh.size, mesh.sizes["model"]
    (8, 2)
    """

    shape: tuple[int, ...]
    names: tuple[str, ...]
    ranks: tuple[int, ...] | None = None

    @property
    def size(self) -> int:
        """The number of devices."""
        return math.prod(self.shape)

    @property
    def sizes(self) -> dict[str, int]:
        """The number of devices along each axis."""
        return dict(zip(self.names, self.shape, strict=True))

    def count(self, axes: Sequence[str]) -> int:
        """The number of devices along `axes` together."""
        return math.prod(self.sizes[axis] for axis in axes)

    def __str__(self) -> str:
        return f"Mesh({', '.join(f'{name}={n}' for name, n in self.sizes.items())})"


def mesh_of(given: Any) -> Mesh:
    """The mesh that a user means: a Mesh, a DeviceMesh, a jax.sharding.Mesh, or {"data": 4, "model": 2}.

    Raises TypeError for anything else, ValueError for one that cannot be.
    """
    if isinstance(given, Mesh):
        found = given
    elif isinstance(given, DeviceMesh):
        found = Mesh(given._lengths, given._axes, given._numbers)
    elif isinstance(given, dict):
        found = Mesh(tuple(given.values()), tuple(given))
    elif hasattr(given, "axis_names") and hasattr(given, "devices"):
        found = Mesh(tuple(given.devices.shape), tuple(given.axis_names))
    else:
        raise TypeError(f"mesh must be a Mesh, a DeviceMesh or a dict of sizes by name, got {type(given).__name__}")
    if len(found.names) != len(found.shape) or len({*found.names}) != len(found.names):
        raise ValueError(f"a mesh needs one name for each axis, each once, got {found.names} for {found.shape}")
    if not all(type(n) is int and n > 0 for n in found.shape):
        raise ValueError(f"the sizes of a mesh must be positive integers, got {found.shape}")
    return found
