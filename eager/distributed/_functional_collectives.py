"""Names of `torch.distributed._functional_collectives` that libraries import: collectives that return their result."""

from __future__ import annotations

from typing import Any

from eager.core.tensor import Tensor
from eager.distributed.nn.functional import all_to_all_single

__all__ = ["all_to_all_single_autograd", "wait_tensor"]


def wait_tensor(tensor: Tensor) -> Tensor:
    """`tensor`: results are there when collectives return."""
    return tensor


def all_to_all_single_autograd(
    self: Tensor, output_split_sizes: list[int] | None, input_split_sizes: list[int] | None, group: Any
) -> Tensor:
    """Send a piece of dim 0 to each process; the pieces that come, in the order of the processes. With a gradient.

    The sizes of the pieces are given for both directions, or all are equal.
    """
    rows = self.shape[0] if output_split_sizes is None else sum(output_split_sizes)
    output = self.new_empty((rows, *self.shape[1:]))
    return all_to_all_single(output, self, output_split_sizes, input_split_sizes, group)
