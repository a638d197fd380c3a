"""Collectives that gradients flow through. As `torch.distributed.nn.functional`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eager.core.tensor import Tensor
from eager.engine.language import E
from eager.functional.joining import cat, stack
from eager.processes.collectives import (
    counted,
    filled,
    longest,
    position,
    reduction,
    sized,
    splits,
    tensor_argument,
)
from eager.processes.world import ProcessGroup, ReduceOp, resolved

__all__ = [
    "all_gather", "all_reduce", "all_to_all", "all_to_all_single", "broadcast", "gather", "reduce", "reduce_scatter",
    "scatter",
]  # fmt: skip


def _group(group: Any, tensor: Any) -> ProcessGroup:
    tensor_argument(tensor, "tensor")
    found = resolved(group)
    if not isinstance(found, ProcessGroup):
        raise ValueError("Invalid process group specified")
    return found


def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """The reduction of every process's `tensor`; gradients are reduced by the same `op`."""
    ours = _group(group, tensor)
    return E.all_reduce(tensor, reduction=reduction("all_reduce", op, tensor), ranks=ours.ranks)


def broadcast(tensor: Tensor, src: int, group: Any = None) -> Tensor:
    """The `tensor` of `src`, which gets the sum of all gradients; others get zeros."""
    ours = _group(group, tensor)
    return E.broadcast(tensor, source=position(ours, src, None), ranks=ours.ranks)


def reduce(tensor: Tensor, dst: int, op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """The reduction at `dst`, zeros elsewhere; the gradient of `dst` goes to all."""
    ours = _group(group, tensor)
    how, target = reduction("reduce", op, tensor), position(ours, dst, None)
    if how == ReduceOp.SUM.value:
        return E.reduce_to(tensor, target=target, ranks=ours.ranks)
    return E.all_reduce(tensor, reduction=how, ranks=ours.ranks)


def all_gather(tensor: Tensor, group: Any = None) -> tuple[Tensor, ...]:
    """The tensors of all processes; gradients are summed over them."""
    ours = _group(group, tensor)
    return tuple(E.all_gather(tensor, ranks=ours.ranks).unbind(0))


def gather(tensor: Tensor, dst: int = 0, group: Any = None) -> tuple[Tensor, ...]:
    """The tensors of all processes at `dst`, zeros elsewhere."""
    ours = _group(group, tensor)
    target, nothing = position(ours, dst, None), tensor.detach().new_zeros(tensor.shape)
    blocks = stack([tensor if k == target else nothing for k in range(ours.size())])
    return tuple(E.all_to_all(blocks, ranks=ours.ranks).unbind(0))


def scatter(tensors: Sequence[Tensor], src: int = 0, group: Any = None) -> Tensor:
    """`tensors[k]` of `src` in process k."""
    ours = _group(group, tensors[0])
    counted("scatter", "input", tensors, ours)
    sized("scatter", tensors, tensors[0].shape)
    return E.all_to_all(stack(list(tensors)), ranks=ours.ranks)[position(ours, src, None)]


def reduce_scatter(output: Tensor, input_list: Sequence[Tensor], op: Any = ReduceOp.SUM, group: Any = None) -> Tensor:
    """The reduction of all `input_list[k]` in process k, of the shape of `output`; gradients are gathered."""
    ours = _group(group, output)
    counted("reduce_scatter", "input", input_list, ours)
    sized("reduce_scatter", input_list, output.shape)
    how = reduction("reduce_scatter", op, output)
    return E.reduce_scatter(stack(list(input_list)), reduction=how, ranks=ours.ranks)


def all_to_all(output_tensor_list: Sequence[Tensor], input_tensor_list: Sequence[Tensor],
               group: Any = None) -> tuple[Tensor, ...]:  # fmt: skip
    """`input_tensor_list[k]` of all in process k, of the shapes of `output_tensor_list`."""
    ours = _group(group, input_tensor_list[0])
    counted("alltoall", "input", input_tensor_list, ours)
    pieces = _exchanged([x.reshape(-1) for x in input_tensor_list], [x.numel() for x in output_tensor_list], ours)
    return tuple(piece.reshape(x.shape) for piece, x in zip(pieces, output_tensor_list, strict=True))


def all_to_all_single(output: Tensor, input: Tensor, output_split_sizes: list[int] | None = None,
                      input_split_sizes: list[int] | None = None, group: Any = None) -> Tensor:  # fmt: skip
    """Part k of the first dimension of all `input`s in process k, of the shape of `output`."""
    ours = _group(group, input)
    given, wanted = splits(input, input_split_sizes, ours.size()), splits(output, output_split_sizes, ours.size())
    row = input.numel() // max(input.shape[0], 1) if input.shape else 1
    pieces = _exchanged([x.reshape(-1) for x in input.split(given)], [n * row for n in wanted], ours)
    return cat(pieces).reshape(output.shape)


def _exchanged(given: list[Tensor], wanted: list[int], group: ProcessGroup) -> list[Tensor]:
    length = longest(group, [x.numel() for x in given] + wanted)
    result = E.all_to_all(stack([filled(x, length) for x in given]), ranks=group.ranks)
    return [block[:n] for block, n in zip(result.unbind(0), wanted, strict=True)]
