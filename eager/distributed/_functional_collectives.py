"""As `torch.distributed._functional_collectives`: collectives that return their result, once it is there.

`group` is a process group, a mesh of one dim, or a mesh and one of its dims. Gradients flow through all of them.
"""

from __future__ import annotations

from typing import Any

from eager.core.tensor import Tensor
from eager.distributed.device_mesh import DeviceMesh
from eager.functional.joining import cat
from eager.processes import recorded
from eager.processes.world import ReduceOp

__all__ = [
    "all_gather_single", "all_gather_single_autograd", "all_gather_tensor", "all_gather_tensor_autograd", "all_reduce",
    "all_to_all_single", "all_to_all_single_autograd", "broadcast", "reduce_scatter_single",
    "reduce_scatter_single_autograd", "reduce_scatter_tensor", "reduce_scatter_tensor_autograd", "wait_tensor",
]  # fmt: skip


def _group_of(group: Any) -> Any:
    if isinstance(group, DeviceMesh):
        return group.get_group()
    return group[0].get_group(group[1]) if isinstance(group, tuple) else group


def wait_tensor(tensor: Tensor) -> Tensor:
    """`tensor`: results are there when collectives return."""
    return tensor


def broadcast(self: Tensor, src: int, group: Any, tag: str = "") -> Tensor:
    """What process `src` has, in all."""
    return recorded.broadcast(self, src, _group_of(group))


def all_reduce(self: Tensor, reduceOp: str, group: Any, tag: str = "") -> Tensor:
    """The reduction ("sum", "avg", "product", "min", "max", ...) of what all processes have."""
    return recorded.all_reduce(self, ReduceOp(reduceOp.lower()), _group_of(group))


def all_gather_single(self: Tensor, gather_dim: int, group: Any, tag: str = "") -> Tensor:
    """What all processes have, one after the other along `gather_dim`."""
    return cat(recorded.all_gather(self, _group_of(group)), gather_dim)


def reduce_scatter_single(self: Tensor, reduceOp: str, scatter_dim: int, group: Any, tag: str = "") -> Tensor:
    """Of the reduction over all processes, this one's part of `scatter_dim`. AssertionError if it does not divide."""
    found = _group_of(group)
    count, length = found.size(), self.size(scatter_dim)
    if length % count:
        raise AssertionError(f"input dimension 0 ({self.size(0)} must be a multiple of group_size {count})")
    parts = self.chunk(count, scatter_dim)
    return recorded.reduce_scatter(parts[0], parts, ReduceOp(reduceOp.lower()), found)


def all_to_all_single(
    self: Tensor, output_split_sizes: list[int] | None, input_split_sizes: list[int] | None, group: Any, tag: str = ""
) -> Tensor:
    """Send a piece of dim 0 to each process; the pieces that come, in the order of the processes.

    The sizes of the pieces are given for both directions, or all are equal.
    """
    rows = self.shape[0] if output_split_sizes is None else sum(output_split_sizes)
    output = self.new_empty((rows, *self.shape[1:]))
    return recorded.all_to_all_single(output, self, output_split_sizes, input_split_sizes, _group_of(group))


all_gather_tensor = all_gather_tensor_autograd = all_gather_single_autograd = all_gather_single
reduce_scatter_tensor = reduce_scatter_tensor_autograd = reduce_scatter_single_autograd = reduce_scatter_single
all_to_all_single_autograd = all_to_all_single
