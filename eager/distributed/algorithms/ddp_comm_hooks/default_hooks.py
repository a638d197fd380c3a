"""Hooks for `DistributedDataParallel.register_comm_hook`: the average, in full or in 16 bits.

As `torch.distributed.algorithms.ddp_comm_hooks.default_hooks`. The state of each is the process group, or None.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eager.core import dtypes
from eager.nn.parallel.reducer import GradBucket
from eager.processes.collectives import all_reduce
from eager.processes.futures import Future
from eager.processes.world import resolved

__all__ = [
    "allreduce_hook", "bf16_compress_hook", "bf16_compress_wrapper", "fp16_compress_hook", "fp16_compress_wrapper",
]  # fmt: skip

Hook = Callable[[Any, GradBucket], Future]


def _averaged(tensor: Any, process_group: Any) -> Future:
    """A future of the average of every process's `tensor`, which is divided first: 16 bits overflow easily."""
    group = resolved(process_group)
    work = all_reduce(tensor.div_(group.size()), group=group, async_op=True)
    assert work is not None
    return work.get_future().then(lambda done: done.value()[0])


def allreduce_hook(process_group: Any, bucket: GradBucket) -> Future:
    """The average of the gradients: what is sent without a hook."""
    return _averaged(bucket.buffer(), process_group)


def _compressed(dtype: Any, process_group: Any, bucket: GradBucket) -> Future:
    buffer: Any = bucket.buffer()
    return _averaged(buffer.to(dtype), process_group).then(lambda done: buffer.copy_(done.value()))


def fp16_compress_hook(process_group: Any, bucket: GradBucket) -> Future:
    """The average of the gradients, sent as float16."""
    return _compressed(dtypes.float16, process_group, bucket)


def bf16_compress_hook(process_group: Any, bucket: GradBucket) -> Future:
    """The average of the gradients, sent as bfloat16."""
    return _compressed(dtypes.bfloat16, process_group, bucket)


def _compressing(dtype: Any, hook: Hook) -> Hook:
    def wrapped(state: Any, bucket: GradBucket) -> Future:
        buffer: Any = bucket.buffer()
        bucket.set_buffer(buffer.to(dtype))
        return hook(state, bucket).then(lambda done: buffer.copy_(done.value()))

    return wrapped


def fp16_compress_wrapper(hook: Hook) -> Hook:
    """`hook` on gradients as float16."""
    return _compressing(dtypes.float16, hook)


def bf16_compress_wrapper(hook: Hook) -> Hook:
    """`hook` on gradients as bfloat16."""
    return _compressing(dtypes.bfloat16, hook)
