"""Devices in an array with named dims. As `torch.distributed.device_mesh`.

In a process that is alone a mesh is a description, which starts nothing: all of its devices are this process's. Under a
launcher, or after `init_process_group`, each device is one of another process, as in PyTorch.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, final

import numpy as np

from eager.distributed.tensor.placements import Placement, placements_of
from eager.processes.world import init_process_group, new_group, world

if TYPE_CHECKING:
    from eager.core.tensor import Tensor

__all__ = ["DeviceMesh", "init_device_mesh"]

WITH_INDEX = (
    "Device type with index is not supported but got {}. ",
    "If you maintained a 'torch.device' object, it's recommended to pass in 'device.type'.",
)


TOO_LARGE = "Mesh should not be bigger than default world size {}, but found {} ranks!"
NOT_SLICED = "Cannot get a process group of a mesh whose devices are all of this process."
SEVERAL_DIMS = "Optional kwarg `mesh_dim` needs to be specified when device_mesh.ndim > 1."


def meet() -> int:
    """How many processes there are: those that a launcher has started meet first, as in PyTorch."""
    if world.default is None and int(os.environ.get("WORLD_SIZE", "1")) > 1 and "RANK" in os.environ:
        init_process_group()
    return 1 if world.default is None else world.default.size()


_described: dict[Any, DeviceMesh] = {}


def described(description: tuple[Any, ...]) -> DeviceMesh | None:
    """The mesh that has said so of itself; None if none has."""
    return _described.get(description)


@final
class DeviceMesh:
    """Ranks in an array, with a name for each dim if `mesh_dim_names` gives them.

    `mesh["data"]` is the part along that dim that this process is in; several names keep several dims. Equal meshes
    have the same ranks, device type and names. RuntimeError for more ranks than there are processes, if these are
    several.
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
        if 1 < (size := meet()) < ranks.size:
            raise RuntimeError(TOO_LARGE.format(size, ranks.size))
        self.device_type = device_type
        self.mesh_dim_names = names
        self._ranks = ranks
        self._root = _root
        self._numbers = tuple(ranks.ravel().tolist()) if size > 1 else None  # of the processes; None if they are one
        self._groups: dict[int, Any] = {}

    @property
    def _description(self) -> tuple[Any, ...]:
        """The names, lengths and ranks of its axes, as operations of a graph have them; see `described`."""
        found = self._own_axes, self.shape, self._numbers
        _described[found] = self
        return found

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
        """The rank of this process: 0 if it is alone, and runs the program of all devices."""
        return 0 if self._numbers is None or world.default is None else world.default.rank()

    def get_group(self, mesh_dim: int | str | None = None) -> Any:
        """The processes along a dim that this one is of, which may be left out where there is one. RuntimeError where
        all devices are of this process."""
        if self._numbers is None:
            raise RuntimeError(NOT_SLICED)
        dim = self._dim(mesh_dim)
        if dim not in self._groups:
            at = self.get_coordinate() or (0,) * self.ndim
            along = self._ranks[tuple(slice(None) if d == dim else i for d, i in enumerate(at))]
            self._groups[dim] = new_group(along.tolist(), sort_ranks=False)
        return self._groups[dim]

    def get_all_groups(self) -> list[Any]:
        """`get_group` of each dim."""
        return [self.get_group(dim) for dim in range(self.ndim)]

    def _chunk(self, length: int, axes: Sequence[str]) -> slice:
        """What this process has of a dim that is split over these axes: by each as `Tensor.chunk` does."""
        start, stop = 0, length
        at = self.get_coordinate() or (0,) * self.ndim
        where = dict(zip(self._own_axes, at, strict=True)) if self._numbers is not None else {}
        sizes = dict(zip(self._axes, self._lengths, strict=True))
        for axis in axes:
            size = -(-(stop - start) // sizes[axis])
            start = min(start + size * where.get(axis, 0), stop)
            stop = min(start + size, stop)
        return slice(start, stop)

    def get_coordinate(self) -> tuple[int, ...] | None:
        """The place of this process along each dim; None if it is not in the mesh."""
        found = np.argwhere(self._ranks == self.get_rank())
        return tuple(found[0].tolist()) if len(found) else None

    def get_local_rank(self, mesh_dim: int | str | None = None) -> int:
        """The place of this process along a dim, which may be left out where there is one."""
        dim, coordinate = self._dim(mesh_dim), self.get_coordinate()
        assert coordinate is not None
        return coordinate[dim]

    def _dim(self, mesh_dim: int | str | None) -> int:
        if mesh_dim is None and self.ndim > 1:
            raise RuntimeError(f"Found the DeviceMesh have {self.ndim} dimensions", SEVERAL_DIMS)
        return self._dims((mesh_dim,))[0] if isinstance(mesh_dim, str) else mesh_dim or 0

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
    def _base(self) -> DeviceMesh:
        """The mesh on whose devices tensors of this one lie: of one process all of them, with copies along other dims.

        Of several processes those of this mesh: what others compute along other dims may be something else.
        """
        return self if self._numbers is not None else self._get_root_mesh()

    @property
    def _axes(self) -> tuple[str, ...]:
        """The names of all axes of the mesh on which its tensors lie."""
        base = self._base
        return base.mesh_dim_names or tuple(f"dim{k}" for k in range(base.ndim))

    @property
    def _lengths(self) -> tuple[int, ...]:
        """The lengths of these."""
        return self._base.shape

    @property
    def _own_axes(self) -> tuple[str, ...]:
        """The names of the axes that are this one's."""
        return self._axes if self._base is self else self.mesh_dim_names or ()

    def _placements(self, dims: Any) -> tuple[Placement, ...]:
        """The placements of a tensor whose dims are split over these axes."""
        return placements_of(dims, self._own_axes)

    def _joined(self, other: DeviceMesh, op: str) -> DeviceMesh:
        """The part of a mesh that has the axes of both. RuntimeError if they are parts of different ones."""
        root = self._base
        if other._base != root:
            raise RuntimeError(f"{op}: found DTensors on different meshes, {self} and {other}")
        axes = tuple(axis for axis in root._axes if axis in {*self._own_axes, *other._own_axes})
        return self if axes == self._own_axes else root if axes == root._axes else root[axes]

    def _with(self, other: DeviceMesh) -> DeviceMesh:
        """The part of the mesh that both are parts of which has the dims of both. RuntimeError if there is none."""
        root = self._get_root_mesh()
        names = {*(self.mesh_dim_names or ()), *(other.mesh_dim_names or ())}
        if self == other:
            return self
        if other._get_root_mesh() != root or not names:
            raise RuntimeError(f"a parameter is on {other}, and cannot be split over {self}: slice both of one mesh")
        return root[tuple(name for name in root.mesh_dim_names or () if name in names)]

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
