"""Names of `torch.distributed.tensor._utils` that libraries import."""

from __future__ import annotations

from collections.abc import Sequence

from eager.distributed.device_mesh import DeviceMesh
from eager.distributed.tensor.placements import Placement, Shard

__all__ = ["compute_local_shape_and_global_offset"]


def compute_local_shape_and_global_offset(
    global_shape: Sequence[int], mesh: DeviceMesh, placements: Sequence[Placement], skip_offset: bool = False
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shape of this process's part of a tensor, and the indices of its first element.

    Mesh dims divide a tensor dim in their order, each as `Tensor.chunk` does. Of an empty part the offset is the end.
    """
    shape, offset = list(global_shape), [0] * len(global_shape)
    for mesh_dim, placement in enumerate(placements):
        if isinstance(placement, Shard):
            dim = placement.dim % len(shape)
            size = -(-shape[dim] // mesh.size(mesh_dim))
            start = min(size * mesh.get_local_rank(mesh_dim), shape[dim])
            shape[dim] = min(size, shape[dim] - start)
            offset[dim] += start
    return tuple(shape), () if skip_offset else tuple(offset)
