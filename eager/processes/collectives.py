"""Collectives that write to tensors. As those of `torch.distributed`.

Each takes part in one op of the registry (`graphc.ops.collectives`): at once, on the thread of the transport, or as a
node of the program that is being captured. Nothing is recorded for gradients, as in PyTorch: `eager.processes.recorded`
has what is.
"""

from __future__ import annotations

import datetime
import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np

from eager.core.grad_mode import no_grad
from eager.core.interpreter import current_interpreter
from eager.core.tensor import Tensor
from eager.engine.language import E
from eager.functional.joining import cat, stack
from eager.functional.shapes import reshape
from eager.processes.futures import Work
from eager.processes.world import (
    GroupMember,
    ProcessGroup,
    ReduceOp,
    get_global_rank,
    get_group_rank,
    member,
    resolved,
    world,
)
from graphc.ops.collectives import label_of

SIZE = "ProcessGroupGloo::{what}: invalid tensor size at index {k} (expected {expected}, got {got})"
COUNT = "ProcessGroupGloo::{what}: invalid {which} tensor list at index 0 (expected length {expected}, got {got})"
DTYPES = "Invalid usage of tensors with different dtypesFound {first} and  {second}"
NOT_COMPLEX = "{what} does not support {op} on complex tensors"
NOT_INTEGRAL = "Cannot use {op} with non-integral dtype"
F = TypeVar("F", bound=Callable[..., Any])


def tensor_argument(value: Any, name: str) -> None:
    """Raise PyTorch's TypeError for what is no tensor."""
    if not isinstance(value, Tensor):
        raise TypeError(
            f"Invalid function argument. Expected parameter `{name}` of type torch.Tensor\n"
            f"             but got {type(value)} instead."
        )


def list_argument(value: Any, name: str) -> None:
    """Raise PyTorch's TypeError for what is no list of tensors."""
    expected = f"Invalid function argument. Expected parameter `{name}` of type List[torch.Tensor]\n             "
    if not isinstance(value, list):
        raise TypeError(f"{expected}but got {type(value)} instead.")
    if not all(isinstance(x, Tensor) for x in value):
        raise TypeError(f"{expected}but got {type(value)} with elements of type {[type(x) for x in value]}.")


def collective(*tensors: str, outside: Any = None) -> Callable[[F], F]:
    """Decorator of what the processes of a `group` do: the function is given the ProcessGroup itself for its `group`.

    It raises PyTorch's TypeError unless these arguments are tensors ("name[]": a list of them). In a process outside of
    the group it warns as PyTorch does, and returns `outside`.
    """

    def decorate(function: F) -> F:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def taking_part(*args: Any, **kwargs: Any) -> Any:
            try:
                given = signature.bind(*args, **kwargs)
            except TypeError:
                return function(*args, **kwargs)  # Python's own words
            for name in tensors:
                check = list_argument if name.endswith("[]") else tensor_argument
                check(given.arguments[name.removesuffix("[]")], name.removesuffix("[]"))
            given.arguments["group"] = ours = member(given.arguments.get("group"), function.__name__)
            return outside if ours is None else function(*given.args, **given.kwargs)

        return taking_part  # type: ignore[return-value]

    return decorate


def one_dtype(*tensors: Tensor) -> None:
    """Raise PyTorch's ValueError for tensors of different dtypes."""
    for x in tensors:
        if x.dtype != tensors[0].dtype:
            raise ValueError(DTYPES.format(first=tensors[0].dtype, second=x.dtype))


def shown(shape: Sequence[int]) -> str:
    """A shape as PyTorch's messages have it."""
    return f"({', '.join(map(str, shape))})"


def sized(what: str, tensors: Sequence[Tensor], expected: Sequence[int]) -> None:
    """Raise PyTorch's RuntimeError for a tensor of another shape."""
    for k, x in enumerate(tensors):
        if tuple(x.shape) != tuple(expected):
            raise RuntimeError(SIZE.format(what=what, k=k, expected=shown(expected), got=shown(x.shape)))


def counted(what: str, which: str, tensors: Sequence[Tensor], group: ProcessGroup) -> None:
    """Raise PyTorch's RuntimeError unless there is a tensor for each process."""
    if len(tensors) != group.size():
        raise RuntimeError(COUNT.format(what=what, which=which, expected=group.size(), got=len(tensors)))


def reduction(what: str, op: Any, tensor: Tensor) -> str:
    """The registry's name of a ReduceOp, which the tensor's dtype has to allow."""
    if not isinstance(op, ReduceOp):
        raise TypeError(f"{what}(): argument 'op' must be a torch.distributed.ReduceOp, not {type(op).__name__}")
    ordered = op not in (ReduceOp.SUM, ReduceOp.AVG, ReduceOp.PRODUCT)
    if tensor.is_complex() and ordered:
        raise ValueError(NOT_COMPLEX.format(what=what, op=f"RedOpType.{op.name}"))
    if op in (ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR) and tensor.is_floating_point():
        raise RuntimeError(NOT_INTEGRAL.format(op=op))
    return op.value


def position(group: ProcessGroup, rank: int | None, group_rank: int | None) -> int:
    """The position in a group of a process that is given by either number."""
    if rank is not None and group_rank is not None:
        raise ValueError("Can't specify both group_rank and global_rank")
    if rank is None and group_rank is None:
        raise ValueError("Must specify global_rank or group_rank")
    if world.alone:  # whoever is meant is this one
        return 0
    if group_rank is not None:
        get_global_rank(group, group_rank)  # refuses what is outside
        return group_rank
    assert rank is not None
    return get_group_rank(group, rank)


def communicate(name: str, tensor: Tensor, group: ProcessGroup, finish: Callable[[Tensor], None], async_op: bool,
                results: Any = None, **params: Any) -> Work | None:  # fmt: skip
    """Take part in the op `name`; its result goes to `finish`. Returns a Work if `async_op`, else waits."""
    params["ranks"] = group.ranks

    def written(array: np.ndarray) -> None:
        with no_grad():
            finish(Tensor._wrap(array))

    if group.size() == 1 or not current_interpreter().immediate:
        with no_grad():
            finish(getattr(E, name)(tensor.detach(), **params))
        return Work(results=results) if async_op else None
    array = tensor._array()
    label = label_of(name, array, params)
    future = world.transport.start(name, array, params)
    work = Work(world.transport, future, label, group.timeout, written, results)
    return work if async_op else _waited(work)


def _waited(work: Work, timeout: datetime.timedelta | None = None) -> None:
    work.wait(timeout)


def _into(tensors: Sequence[Tensor]) -> Callable[[Iterable[Tensor]], None]:
    """Writes the blocks of a result to tensors."""

    def finish(result: Iterable[Tensor]) -> None:
        for x, block in zip(tensors, result, strict=True):
            x.copy_(block.reshape(x.shape))

    return finish


@collective("tensor")
def all_reduce(tensor: Tensor, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False) -> Work | None:
    """Every process's `tensor` becomes the reduction of all. As `torch.distributed.all_reduce`."""
    how = reduction("all_reduce", op, tensor)
    return communicate("all_reduce", tensor, group, _copied(tensor), async_op, [tensor], reduction=how)


def _copied(tensor: Tensor) -> Callable[[Tensor], None]:
    return lambda result: (tensor.copy_(result), None)[1]


@collective("tensor")
def broadcast(tensor: Tensor, src: int | None = None, group: Any = None, async_op: bool = False,
              group_src: int | None = None) -> Work | None:  # fmt: skip
    """Every process's `tensor` becomes that of `src`. As `torch.distributed.broadcast`."""
    source = position(group, src, group_src)
    return communicate("broadcast", tensor, group, _copied(tensor), async_op, [tensor], source=source)


@collective("tensor")
def reduce(tensor: Tensor, dst: int | None = None, op: Any = ReduceOp.SUM, group: Any = None, async_op: bool = False,
           group_dst: int | None = None) -> Work | None:  # fmt: skip
    """The `tensor` of `dst` becomes the reduction of all; others stay as they are. As `torch.distributed.reduce`."""
    how, there = reduction("reduce", op, tensor), position(group, dst, group_dst) == group.rank()
    finish = _copied(tensor) if there else _ignored
    return communicate("all_reduce", tensor, group, finish, async_op, [tensor], reduction=how)


def _ignored(result: Tensor) -> None:
    """Another process has the result."""


@collective()
def barrier(group: Any = None, async_op: bool = False, device_ids: Any = None,
            timeout: datetime.timedelta | None = None) -> Work | None:  # fmt: skip
    """Wait until all processes have come here. As `torch.distributed.barrier`."""
    here = Tensor._wrap(np.zeros((), np.uint8))
    work = communicate("all_reduce", here, group, _ignored, True, reduction="sum")
    if async_op or work is None:
        return work
    return _waited(work, timeout)


def monitored_barrier(group: Any = None, timeout: datetime.timedelta | None = None,
                      wait_all_ranks: bool = False) -> None:  # fmt: skip
    """A barrier whose error names the processes that do not come. As `torch.distributed.monitored_barrier`."""
    if resolved(group) == GroupMember.NON_GROUP_MEMBER:
        member(group, "monitored_barrier")
        return
    barrier(group, timeout=timeout)


@collective("tensor_list[]", "tensor")
def all_gather(tensor_list: list[Tensor], tensor: Tensor, group: Any = None, async_op: bool = False) -> Work | None:
    """`tensor_list[k]` becomes process k's `tensor`, everywhere. As `torch.distributed.all_gather`."""
    one_dtype(*tensor_list, tensor)
    counted("allgather", "output", tensor_list, group)
    sized("allgather", tensor_list, tensor.shape)
    return communicate("all_gather", tensor, group, _into(tensor_list), async_op, tensor_list)


@collective("input_tensor", "output_tensor")
def all_gather_into_tensor(output_tensor: Tensor, input_tensor: Tensor, group: Any = None,
                           async_op: bool = False) -> Work | None:  # fmt: skip
    """`output_tensor` holds the tensors of all, one after the other or along a new first dimension.

    As `torch.distributed.all_gather_into_tensor`. Raises RuntimeError unless it has their elements, and their dtype.
    """
    if output_tensor.dtype != input_tensor.dtype:
        raise RuntimeError("output tensor must have the same type as input tensor")
    if output_tensor.numel() != group.size() * input_tensor.numel():
        raise RuntimeError("output tensor size must be equal to world_size times input tensor size")

    def finish(result: Tensor) -> None:
        output_tensor.copy_(result.reshape(output_tensor.shape))

    return communicate("all_gather", input_tensor, group, finish, async_op, [output_tensor])


@collective("tensor")
def gather(tensor: Tensor, gather_list: list[Tensor] | None = None, dst: int | None = None, group: Any = None,
           async_op: bool = False, group_dst: int | None = None) -> Work | None:  # fmt: skip
    """`gather_list[k]` of `dst` becomes process k's `tensor`. As `torch.distributed.gather`."""
    there = position(group, 0 if dst is None and group_dst is None else dst, group_dst) == group.rank()
    found = gather_list or []
    if there:
        if not found:
            raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
        list_argument(found, "gather_list")
        one_dtype(tensor, *found)
        counted("gather", "output", found, group)
        sized("gather", found, tensor.shape)
    elif found:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    return communicate("all_gather", tensor, group, _into(found) if there else _ignored, async_op, found)


@collective("tensor")
def scatter(tensor: Tensor, scatter_list: list[Tensor] | None = None, src: int | None = None, group: Any = None,
            async_op: bool = False, group_src: int | None = None) -> Work | None:  # fmt: skip
    """Process k's `tensor` becomes `scatter_list[k]` of `src`. As `torch.distributed.scatter`."""
    source = position(group, 0 if src is None and group_src is None else src, group_src)
    given = scatter_list or []
    if source == group.rank():
        if not given:
            raise ValueError("Argument ``scatter_list`` must be specified on source rank.")
        list_argument(given, "scatter_list")
        one_dtype(tensor, *given)
        counted("scatter", "input", given, group)
        sized("scatter", given, tensor.shape)
    elif given:
        raise ValueError("Argument ``scatter_list`` must NOT be specified on non-source ranks.")
    blocks = stack(given) if given else stack([tensor] * group.size())
    return communicate("all_to_all", blocks, group, _block(source, tensor), async_op, [tensor])


def _block(k: int, tensor: Tensor) -> Callable[[Tensor], None]:
    return lambda result: (tensor.copy_(result[k]), None)[1]


@collective("output", "input_list[]")
def reduce_scatter(output: Tensor, input_list: list[Tensor], op: Any = ReduceOp.SUM, group: Any = None,
                   async_op: bool = False) -> Work | None:  # fmt: skip
    """Process k's `output` becomes the reduction of all `input_list[k]`. As `torch.distributed.reduce_scatter`."""
    one_dtype(output, *input_list)
    if len(input_list) != group.size():
        raise RuntimeError("invalid input tensor list size, must be world size")
    sized("reduce_scatter", input_list, output.shape)
    how = reduction("reduce_scatter", op, output)
    return communicate("reduce_scatter", stack(input_list), group, _copied(output), async_op, [output], reduction=how)


@collective("output", "input")
def reduce_scatter_tensor(output: Tensor, input: Tensor, op: Any = ReduceOp.SUM, group: Any = None,
                          async_op: bool = False) -> Work | None:  # fmt: skip
    """The same, with the blocks of `input` one after the other. As `torch.distributed.reduce_scatter_tensor`."""
    if output.dtype != input.dtype:
        raise RuntimeError("input tensor must be the same type as the output tensor.")
    if input.numel() != group.size() * output.numel():
        raise RuntimeError("input tensor must be the same size as output size times world size")
    how = reduction("reduce_scatter_tensor", op, output)
    blocks = input.reshape(group.size(), *output.shape)
    return communicate("reduce_scatter", blocks, group, _copied(output), async_op, [output], reduction=how)


@collective("output_tensor_list[]", "input_tensor_list[]")
def all_to_all(output_tensor_list: list[Tensor], input_tensor_list: list[Tensor], group: Any = None,
               async_op: bool = False) -> Work | None:  # fmt: skip
    """Process k gets `input_tensor_list[k]` of all; sizes may differ. As `torch.distributed.all_to_all`."""
    one_dtype(*output_tensor_list, *input_tensor_list)
    counted("alltoall", "output", output_tensor_list, group)
    counted("alltoall", "input", input_tensor_list, group)
    flat, wanted = [x.reshape(-1) for x in input_tensor_list], [x.numel() for x in output_tensor_list]
    return _exchange(flat, wanted, group, _into(output_tensor_list), async_op, output_tensor_list)


@collective("output", "input")
def all_to_all_single(output: Tensor, input: Tensor, output_split_sizes: list[int] | None = None,
                      input_split_sizes: list[int] | None = None, group: Any = None,
                      async_op: bool = False) -> Work | None:  # fmt: skip
    """Process k gets part k of the first dimension of all `input`s. As `torch.distributed.all_to_all_single`."""
    one_dtype(output, input)
    given = splits(input, input_split_sizes, group.size())
    wanted = splits(output, output_split_sizes, group.size())
    row = input.numel() // max(input.shape[0], 1) if input.shape else 1
    flat = [x.reshape(-1) for x in input.split(given)]

    def finish(pieces: list[Tensor]) -> None:
        output.copy_(cat(pieces).reshape(output.shape))

    return _exchange(flat, [n * row for n in wanted], group, finish, async_op, [output])


def splits(tensor: Tensor, sizes: Sequence[int] | None, parts: int) -> list[int]:
    """How the first dimension of `tensor` is divided. RuntimeError for sizes that do not fit it."""
    length = tensor.shape[0] if tensor.shape else 1
    if not sizes:
        if length % parts:
            raise RuntimeError("Tensor's dim 0 does not divide equally across group size")
        return [length // parts] * parts
    if len(sizes) != parts:
        raise RuntimeError("Number of tensor splits not equal to group size")
    if sum(sizes) != length:
        raise RuntimeError("Split sizes doesn't match total dim 0 size")
    return list(sizes)


def _exchange(given: list[Tensor], wanted: list[int], group: ProcessGroup, finish: Callable[[list[Tensor]], None],
              async_op: bool, results: Any) -> Work | None:  # fmt: skip
    """`all_to_all` of vectors, filled up to one length."""
    length = longest(group, [x.numel() for x in given] + wanted)

    def cut(result: Tensor) -> None:
        finish([block[:n] for block, n in zip(result, wanted, strict=True)])

    return communicate("all_to_all", stack([filled(x, length) for x in given]), group, cut, async_op, results)


def longest(group: ProcessGroup, lengths: Sequence[int]) -> int:
    """The largest length that any process of the group has: they meet for it, also while a program is captured."""
    own = max(lengths)
    if world.transport is None or group.size() == 1:
        return own
    params = {"reduction": "max", "ranks": group.ranks}
    return int(world.transport.run("all_reduce", np.array(own), params))


def filled(x: Tensor, length: int) -> Tensor:
    """The vector `x` with zeros after it, of that length."""
    missing = length - x.numel()
    return cat([x, E.full(shape=(missing,), value=0, dtype=x._dtype())]) if missing else reshape(x, (length,))
