"""Long sequences over several processes. As `torch.distributed.tensor.experimental._attention`.

Each process has two parts of the sequence, one from its head and one from its tail, so that under a causal mask all
have as much to do. Queries stay where they are; keys and values of all are gathered.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, final

import numpy as np

from eager.core.tensor import Tensor
from eager.functional.joining import cat
from eager.nn import functional
from eager.overrides import TorchFunctionMode
from eager.processes.recorded import all_gather

__all__ = ["context_parallel", "context_parallel_unshard", "set_rotate_method"]

ONE_PROCESS = "context_parallel needs a process for each device of the mesh; in one process, let the sequence be Shard"
MASKED = (
    "context_parallel: scaled_dot_product_attention takes is_causal, but no attn_mask, where the sequence is in parts"
)
PARTS = "The sequence of {} must be divisible by twice the processes of the mesh, {}"
ROTATIONS = "Context Parallel does not support using {} for kv shards rotation"


def _places(length: int, size: int) -> np.ndarray:
    """The places in the sequence that each process has, a row for each."""
    if length % (2 * size):
        raise ValueError(PARTS.format(length, 2 * size))
    chunks = np.arange(length).reshape(2 * size, -1)
    return np.concatenate([chunks[:size], chunks[: size - 1 : -1]], 1)


def _group(mesh: Any) -> Any:
    group = mesh.get_group()
    if group.size() != mesh.size():
        raise NotImplementedError(ONE_PROCESS)
    return group


@final
class _OverProcesses(TorchFunctionMode):
    """Attention of this process's queries to the keys of all."""

    def __init__(self, group: Any):
        super().__init__()
        self._group = group

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        run = self._attended if func is functional.scaled_dot_product_attention else func
        return run(*args, **(kwargs or {}))

    def _attended(self, query: Tensor, key: Tensor, value: Tensor, attn_mask: Tensor | None = None,
                  dropout_p: float = 0.0, is_causal: bool = False, scale: float | None = None,
                  enable_gqa: bool = False) -> Tensor:  # fmt: skip
        if attn_mask is not None:
            raise ValueError(MASKED)
        size = self._group.size()
        mask = None
        if is_causal:
            places = _places(query.shape[-2] * size, size)
            mask = Tensor._wrap(places[self._group.rank()][:, None] >= places.reshape(-1))
        key, value = (cat(all_gather(x, self._group), -2) for x in (key, value))
        return functional.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, dropout_p=dropout_p, scale=scale, enable_gqa=enable_gqa
        )


@contextmanager
def context_parallel(
    mesh: Any, *, buffers: list[Tensor] | None = None, buffer_seq_dims: list[int] | None = None,
    no_restore_buffers: Collection[Tensor] | None = None,
) -> Iterator[None]:  # fmt: skip
    """A context in which `buffers` have this process's part of the sequence, and attention is to the whole.

    mesh                of one axis, a process for each place
    buffers             tensors that every process has whole: inputs, labels, embeddings of places
    buffer_seq_dims     the dim of each that is the sequence
    no_restore_buffers  of these, which keep their part afterwards

    `scaled_dot_product_attention` gathers keys and values, and lets gradients through; it takes no mask, but
    `is_causal`. Raises ValueError for a sequence that twice the processes do not divide.
    """
    given, dims = buffers or [], buffer_seq_dims or []
    if len(given) != len(dims):
        raise ValueError("`seq_dims` must have the same number of elements as `buffers`.")
    lasting = {id(b) for b in no_restore_buffers or ()}
    if not lasting <= {id(b) for b in given}:
        raise ValueError("`no_restore_buffers` must be a subset of `buffers`.")
    group = _group(mesh)
    before = [b.clone() for b in given]
    parts = [
        b.index_select(dim, _tensor(_places(b.shape[dim], group.size())[group.rank()]))
        for b, dim in zip(before, dims, strict=True)
    ]
    _put(given, parts)
    try:
        with _OverProcesses(group):
            yield
    finally:
        kept = [k for k, b in enumerate(given) if id(b) not in lasting]
        _put([given[k] for k in kept], [before[k] for k in kept])


def _tensor(places: np.ndarray) -> Tensor:
    return Tensor._wrap(np.ascontiguousarray(places))


def _put(buffers: Sequence[Tensor], values: Sequence[Tensor]) -> None:
    for buffer, value in zip(buffers, values, strict=True):
        buffer.resize_(value.shape)
        buffer.copy_(value)


def context_parallel_unshard(
    mesh: Any, buffers: list[Tensor], seq_dims: list[int], load_balancer: Callable[..., Any] | None = None
) -> list[Tensor]:
    """The whole of tensors that have this process's part of a sequence along `seq_dims`, in its order."""
    if load_balancer is not None:
        raise NotImplementedError("context_parallel_unshard: the parts lie as context_parallel has laid them")
    group = _group(mesh)
    found: list[Tensor] = []
    for buffer, dim in zip(buffers, seq_dims, strict=True):
        whole = cat(all_gather(buffer.contiguous(), group), dim)
        order = _places(whole.shape[dim], group.size()).reshape(-1)
        found.append(whole.index_select(dim, _tensor(np.argsort(order))))
    return found


def set_rotate_method(rotate_method: str) -> None:
    """How keys and values travel: "allgather" or "alltoall", which is the same here. Else NotImplementedError."""
    if rotate_method not in ("allgather", "alltoall"):
        raise NotImplementedError(ROTATIONS.format(rotate_method))
