"""Collectives of several tensors in one call. As PyTorch's `all_reduce_coalesced` and `all_gather_coalesced`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, final

from eager.core.tensor import Tensor
from eager.processes.collectives import all_gather, all_reduce, list_argument, one_dtype, shown
from eager.processes.futures import Future
from eager.processes.world import ReduceOp, get_world_size

__all__ = ["all_gather_coalesced", "all_reduce_coalesced"]

REFUSED = "ProcessGroupGloo::allgather_coalesced: {}"


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
    """`all_reduce` of each of `tensors`, which have one dtype; ValueError if not."""
    given = [tensors] if isinstance(tensors, Tensor) else tensors
    list_argument(given, "tensors")
    one_dtype(*given)
    works = [all_reduce(tensor, op, group, async_op) for tensor in given]
    return _Works(works, given) if async_op else None


def all_gather_coalesced(
    output_tensor_lists: list[list[Tensor]], input_tensor_list: list[Tensor], group: Any = None, async_op: bool = False
) -> Any:
    """The tensors of process k in list k. RuntimeError for other numbers or shapes, ValueError for several dtypes."""
    list_argument(input_tensor_list, "input_tensor_list")
    one_dtype(*input_tensor_list)
    if not isinstance(output_tensor_lists, list):
        raise TypeError("Invalid function argument: output_tensor_lists should be a list")
    for outputs in output_tensor_lists:
        list_argument(outputs, "output_tensor_lists")
        one_dtype(*outputs)
    if len(output_tensor_lists) != get_world_size(group):
        raise RuntimeError(REFUSED.format("output lists should be equal to world size"))
    for outputs in output_tensor_lists:
        if len(outputs) != len(input_tensor_list):
            expected = f"(expected length {len(input_tensor_list)}, got {len(outputs)})"
            raise RuntimeError(REFUSED.format(f"invalid output size: {expected}"))
        for k, (made, given) in enumerate(zip(outputs, input_tensor_list, strict=True)):
            if made.shape != given.shape:
                expected = f"(expected length {shown(given.shape)}, got {shown(made.shape)})"
                raise RuntimeError(REFUSED.format(f"invalid size of output tensor at index {k} {expected}"))
    columns = zip(*output_tensor_lists, strict=True)
    works = [
        all_gather([*column], tensor, group, async_op)
        for column, tensor in zip(columns, input_tensor_list, strict=True)
    ]
    return _Works(works, output_tensor_lists) if async_op else None
