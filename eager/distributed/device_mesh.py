"""Devices in an array with named dims. As `torch.distributed.device_mesh`; a description, which starts nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, final

import numpy as np

from eager.distributed.tensor.placements import Placement, placements_of

if TYPE_CHECKING:
    from eager.core.tensor import Tensor

__all__ = ["DeviceMesh", "init_device_mesh"]

WITH_INDEX = (
    "Device type with index is not supported but got {}. ",
    "If you maintained a 'torch.device' object, it's recommended to pass in 'device.type'.",
)


@final
class DeviceMesh:
    """Ranks in an array, with a name for each dim if `mesh_dim_names` gives them.

    `mesh["data"]` is the part along that dim that this process, rank 0, is in; several names keep several dims.
    Equal meshes have the same ranks, device type and names.
    """

    def __init__(
        self, device_type: str, mesh: Any = None, *, mesh_dim_names: Sequence[str] | None = None,
        _root: DeviceMesh | None = None,
    ):  # fmt: skip
        if not device_type.isalpha():
            raise RuntimeError(WITH_INDEX[0].format(device_type), WITH_INDEX[1])
        ranks = np.asarray(mesh.tolist() if hasattr(mesh, "tolist") else mesh, np.int32)
        names = None if mesh_dim_names is None else tuple(mesh_dim_names)
        if names is not None and len(names) != ranks.ndim:
            raise RuntimeError(
                "mesh_shape and mesh_dim_names should have same length! "
                f"Found len(mesh_dim_names): {len(names)} and len(mesh_shape):{ranks.ndim}."
            )
        if names is not None and len(set(names)) != len(names):
            raise RuntimeError(
                f"Each mesh_dim_name must be unique. Found repeated mesh_dim_name in mesh_dim_names {names}"
            )
        if len(np.unique(ranks)) != ranks.size:
            raise RuntimeError(f"mesh has repeated ranks: {ranks.tolist()}")
        self.device_type = device_type
        self.mesh_dim_names = names
        self._ranks = ranks
        self._root = _root

    @property
    def mesh(self) -> Tensor:
        """The ranks, as an int32 tensor."""
        from eager.core.tensor import Tensor

        return Tensor._wrap(self._ranks.copy())

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of devices along each dim."""
        return self._ranks.shape

    @property
    def ndim(self) -> int:
        """The number of dims."""
        return self._ranks.ndim

    def size(self, mesh_dim: int | None = None) -> int:
        """The number of devices, of one dim if that is given. Raises IndexError."""
        return self._ranks.size if mesh_dim is None else self.shape[mesh_dim]

    def get_rank(self) -> int:
        """The rank of this process: 0, which runs the program of all devices."""
        return 0

    def get_coordinate(self) -> tuple[int, ...] | None:
        """The place of this process along each dim; None if it is not in the mesh."""
        found = np.argwhere(self._ranks == self.get_rank())
        return tuple(found[0].tolist()) if len(found) else None

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """The place of this process along a dim, which may be left out where there is one."""
        if mesh_dim is None and self.ndim > 1:
            raise RuntimeError(
                f"Found the DeviceMesh have {self.ndim} dimensions",
                "Optional kwarg `mesh_dim` needs to be specified when device_mesh.ndim > 1.",
            )
        dim = self._dims((mesh_dim,))[0] if isinstance(mesh_dim, str) else mesh_dim or 0
        coordinate = self.get_coordinate()
        assert coordinate is not None
        return coordinate[dim]

    def __getitem__(self, names: str | tuple[str, ...]) -> DeviceMesh:
        wanted = (names,) if isinstance(names, str) else tuple(names)
        dims = self._dims(wanted)
        if wanted == self.mesh_dim_names:
            return self
        here = self.get_coordinate() or (0,) * self.ndim
        part = self._ranks[tuple(slice(None) if d in dims else i for d, i in enumerate(here))]
        return DeviceMesh(self.device_type, part, mesh_dim_names=wanted, _root=self._root or self)

    def _dims(self, names: tuple[str, ...]) -> list[int]:
        if self.mesh_dim_names is None:
            raise RuntimeError("Cannot slice a DeviceMesh without mesh_dim_names!")
        if not names or any(name not in self.mesh_dim_names for name in names):
            raise KeyError(
                f"Invalid mesh_dim_names {names} specified. Valid mesh_dim_names are {[*self.mesh_dim_names]}."
            )
        if len(set(names)) != len(names):
            raise RuntimeError(f"Slicing overlapping dim_names {names} is not allowed.")
        dims = [self.mesh_dim_names.index(name) for name in names]
        if dims != sorted(dims):
            raise KeyError(f"Invalid mesh_dim_names {names} specified. Mesh dim indices should be in ascending order.")
        return dims

    @property
    def _axes(self) -> tuple[str, ...]:
        """The names of all axes of the mesh that this one is a part of."""
        root = self._get_root_mesh()
        return root.mesh_dim_names or tuple(f"dim{k}" for k in range(root.ndim))

    @property
    def _lengths(self) -> tuple[int, ...]:
        """The lengths of these."""
        return self._get_root_mesh().shape

    @property
    def _own_axes(self) -> tuple[str, ...]:
        """The names of the axes that are this one's."""
        return self._axes if self._root is None else self.mesh_dim_names or ()

    def _placements(self, dims: Any) -> tuple[Placement, ...]:
        """The placements of a tensor whose dims are split over these axes."""
        return placements_of(dims, self._own_axes)

    def _joined(self, other: DeviceMesh, op: str) -> DeviceMesh:
        """The part of a mesh that has the axes of both. RuntimeError if they are parts of different ones."""
        root = self._get_root_mesh()
        if other._get_root_mesh() != root:
            raise RuntimeError(f"{op}: found DTensors on different meshes, {self} and {other}")
        axes = tuple(axis for axis in root._axes if axis in {*self._own_axes, *other._own_axes})
        return self if axes == self._own_axes else root if axes == root._axes else root[axes]

    def _get_root_mesh(self) -> DeviceMesh:
        """The mesh that this one is a part of; itself, if of none."""
        return self._root or self

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeviceMesh) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[Any, ...]:
        return self.device_type, self.shape, self._ranks.tobytes(), self.mesh_dim_names, self._lengths

    def __repr__(self) -> str:
        if self.mesh_dim_names is None:
            shape = str(self.shape)
        else:
            shape = f"({', '.join(f'{name}={n}' for name, n in zip(self.mesh_dim_names, self.shape, strict=True))})"
        item = self._ranks.itemsize
        # of a part: how far apart its ranks are, as in the mesh that it is from
        strides = tuple(
            int(np.diff(self._ranks, axis=d).flat[0]) if n > 1 else s // item
            for d, (n, s) in enumerate(zip(self.shape, self._ranks.strides, strict=True))
        )
        return f"DeviceMesh({shape}, '{self.device_type}', stride={strides})"


def init_device_mesh(
    device_type: str, mesh_shape: Sequence[int], *, mesh_dim_names: Sequence[str] | None = None
) -> DeviceMesh:
    """The mesh of ranks 0, 1, ... in this shape. Raises RuntimeError for names that do not fit it, and for a device
    type with an index."""
    ranks = np.arange(math.prod(mesh_shape)).reshape(tuple(mesh_shape))
    return DeviceMesh(device_type, ranks, mesh_dim_names=mesh_dim_names)
