"""Collectives of several tensors in one call. As PyTorch's `all_reduce_coalesced` and `all_gather_coalesced`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

from eager.core.tensor import Tensor
from eager.processes.collectives import all_gather, all_reduce, list_argument
from eager.processes.futures import Future
from eager.processes.world import ReduceOp, get_world_size

__all__ = ["all_gather_coalesced", "all_reduce_coalesced"]

LENGTHS = "all_gather_coalesced: expected {expected}, for each process one tensor for each input, got {got}"


@final
class _Works:
    """The work of several collectives, as one. As PyTorch's."""

    def __init__(self, works: Sequence[Any], results: Any):
        self._works, self._results = [work for work in works if work is not None], results

    def wait(self, timeout: Any = None) -> bool:
        """Wait until all are done."""
        return all(work.wait(timeout) for work in self._works)

    def is_completed(self) -> bool:
        """Whether all are done."""
        return all(work.is_completed() for work in self._works)

    def get_future(self) -> Future:
        """A future of the tensors that the results are in."""
        return Future(source=self.result)

    def result(self) -> Any:
        """The tensors that the results are in."""
        self.wait()
        return self._results


def all_reduce_coalesced(
    tensors: Tensor | list[Tensor], op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False
) -> Any:
    """`all_reduce` of each of `tensors`."""
    given = [tensors] if isinstance(tensors, Tensor) else tensors
    list_argument(given, "tensors")
    works = [all_reduce(tensor, op, group, async_op) for tensor in given]
    return _Works(works, given) if async_op else None


def all_gather_coalesced(
    output_tensor_lists: list[list[Tensor]], input_tensor_list: list[Tensor], group: Any = None, async_op: bool = False
) -> Any:
    """All tensors of process k in list k. RuntimeError for other numbers of lists and tensors."""
    list_argument(input_tensor_list, "tensor_list")
    lengths = [len(input_tensor_list)] * get_world_size(group)
    if [*map(len, output_tensor_lists)] != lengths:
        raise RuntimeError(LENGTHS.format(expected=lengths, got=[*map(len, output_tensor_lists)]))
    pairs = zip(zip(*output_tensor_lists, strict=True), input_tensor_list, strict=True)
    works = [all_gather([*outputs], tensor, group, async_op) for outputs, tensor in pairs]
    return _Works(works, output_tensor_lists) if async_op else None
