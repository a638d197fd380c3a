"""Averages gradients over processes while a backward pass makes them, a bucket of them at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, final

import numpy as np

from eager import autograd
from eager.core.grad_mode import no_grad
from eager.core.interpreter import current_interpreter
from eager.core.parameter import Parameter
from eager.core.pytree import flatten
from eager.core.tensor import Tensor
from eager.functional.joining import cat, split
from eager.processes.collectives import all_reduce
from eager.processes.futures import Future
from eager.processes.world import ProcessGroup, ReduceOp

MEGABYTE = 1024 * 1024
FIRST = 1 * MEGABYTE  # bytes of the first bucket, so that something is sent early
CAPACITY = 25  # megabytes of the others
UNFINISHED = (
    "Expected to have finished reduction in the prior iteration before starting a new one. This error indicates that "
    "your module has parameters that were not used in producing loss. You can enable unused parameter detection by "
    "passing the keyword argument `find_unused_parameters=True` to `torch.nn.parallel.DistributedDataParallel`, and by "
    "\nmaking sure all `forward` function outputs participate in calculating loss. \nIf you already have done the "
    "above, then the distributed data parallel module wasn't able to locate the output tensors in the return value of "
    "your module's `forward` function. Please include the loss function and the structure of the return value of "
    "`forward` of your module when reporting this issue (e.g. list, dict, iterable).\n"
    "Parameters which did not receive grad for rank {rank}: {names}\n"
    "Parameter indices which did not receive grad for rank {rank}: {indices}"
)
TWICE = (
    "Expected to mark a variable ready only once. This error is caused by one of the following reasons: 1) Use of a "
    "module parameter outside the `forward` function. 2) Reused parameters in multiple reentrant backward passes. "
    "3) A second backward pass through the outputs of one forward pass.\nParameter at index {k} with name {name} has "
    "been marked as ready twice."
)


class GradBucket:
    """Gradients that are sent together, flat in `buffer`. As `torch.distributed.GradBucket`."""

    def __init__(self, index: int, buffer: Tensor, parameters: Sequence[Tensor], is_last: bool):
        self._index, self._buffer, self._parameters, self._is_last = index, buffer, parameters, is_last

    def index(self) -> int:
        """Its number in the backward pass; the first holds the gradients of the last parameters."""
        return self._index

    def buffer(self) -> Tensor:
        """The gradients, one after the other, flat."""
        return self._buffer

    def set_buffer(self, buffer: Tensor) -> None:
        """Put other numbers, or the same in another dtype, in their place."""
        self._buffer = buffer

    def gradients(self) -> list[Tensor]:
        """The gradient of each parameter, a view of `buffer`."""
        parts = split(self._buffer, [p.numel() for p in self._parameters])
        return [part.reshape(p.shape) for part, p in zip(parts, self._parameters, strict=True)]

    def parameters(self) -> list[Tensor]:
        """The parameters, in the order of their gradients."""
        return list(self._parameters)

    def is_last(self) -> bool:
        """Whether the pass has no further bucket."""
        return self._is_last


class _Sent(NamedTuple):
    """A bucket under way: the parameters whose gradients it holds, one after the other; `result` waits for them."""

    places: list[int]
    result: Callable[[], Tensor]


@final
class Reducer:
    """The gradients of `parameters`, averaged over a group.

    sends     whether the next backward pass is to average
    left_out  numbers of parameters that no gradient will come for, as far as that has been looked for
    hook      (state, function) that sends a bucket in its own way
    share     what the sum over all processes is multiplied by; None for the average
    """

    def __init__(self, parameters: list[Parameter], names: list[str], group: ProcessGroup, bucket_cap_mb: float | None):
        self.parameters, self._names, self._group = parameters, names, group
        self._buckets = buckets(parameters, CAPACITY if bucket_cap_mb is None else bucket_cap_mb)
        self.sends = True
        self.left_out: list[int] | None = None
        self.hook: tuple[Any, Callable[[Any, GradBucket], Any]] | None = None
        self.share: Callable[[], float] | None = None
        self._ready: set[int] = set()
        self._sent: list[_Sent] = []
        for k, p in enumerate(parameters):
            p.register_post_accumulate_grad_hook(partial(self._has_come, k))

    def __deepcopy__(self, memo: Any) -> Any:
        raise TypeError("a DistributedDataParallel cannot be copied: copy its `module`, and wrap the copy")

    def expect_finished(self) -> None:
        """RuntimeError if gradients of the last backward pass are still missing."""
        came = self._ready.difference(self.left_out or ())
        if not came:
            return
        missing = [k for k in range(len(self.parameters)) if k not in self._ready]
        self._ready, self._sent = set(), []
        raise RuntimeError(
            UNFINISHED.format(
                rank=self._group.rank(), names=", ".join(self._names[k] for k in missing),
                indices=" ".join(map(str, missing)),
            )
        )  # fmt: skip

    def leave_out(self, numbers: list[int]) -> None:
        """Do not wait for the gradients of these parameters."""
        self.left_out = numbers
        self._ready = set(numbers)
        if len(numbers) == len(self.parameters):
            self._send_what_is_ready()

    def _has_come(self, k: int, parameter: Tensor) -> None:
        """The gradient of parameter k is there."""
        if not self.sends:
            return
        if k in self._ready and k not in (self.left_out or ()):
            raise RuntimeError(TWICE.format(k=k, name=self._names[k]))
        self._ready = self._ready | {k}
        self._send_what_is_ready()

    def _send_what_is_ready(self) -> None:
        """Send the buckets that are full, in their order, which has to be the same everywhere."""
        while len(self._sent) < len(self._buckets) and self._ready.issuperset(self._buckets[len(self._sent)]):
            places = self._buckets[len(self._sent)]
            self._sent = [*self._sent, self._send(places, [self._gradient(k) for k in places])]
        if len(self._sent) == len(self._buckets):
            self._finish()

    def accompany(self, looks_for_unused: bool) -> None:
        """Take part in what the others send in one backward pass, with gradients of zero, and keep nothing."""
        for k, places in enumerate(self._buckets):
            self._sent = [*self._sent, self._send(places, [self._zeros(k) for k in places])]
        sent, self._sent = self._sent, []
        for each in sent:
            each.result()
        if looks_for_unused:
            self._used_anywhere(list(range(len(self.parameters))))

    def _send(self, places: list[int], gradients: list[Tensor]) -> _Sent:
        with no_grad():
            flat = cat(gradients)
        if self.hook is not None:
            state, function = self.hook
            index = len(self._sent)
            whose = [self.parameters[k] for k in places]
            sent = function(state, GradBucket(index, flat, whose, index == len(self._buckets) - 1))
            if not isinstance(sent, Future):
                raise TypeError(f"expected Future object from a communication hook, but got {type(sent).__name__}")
            return _Sent(places, sent.wait)
        share = self.share
        work = all_reduce(flat, ReduceOp.AVG if share is None else ReduceOp.SUM, self._group, async_op=True)

        def result() -> Tensor:
            if work is not None:
                work.wait()
            return flat if share is None else flat.mul_(share())

        return _Sent(places, result)

    def _zeros(self, k: int) -> Tensor:
        return self.parameters[k].detach().new_zeros(self.parameters[k].numel())

    def _gradient(self, k: int) -> Tensor:
        p = self.parameters[k]
        return self._zeros(k) if p.grad is None else p.grad.detach().reshape(-1)

    def _finish(self) -> None:
        """Write the averages to `.grad`."""
        sent, self._sent, self._ready = self._sent, [], set()
        used = self._used_anywhere(self.left_out)
        for places, result in sent:
            flat, start = result(), 0
            for k in places:
                p, start = self.parameters[k], start + self.parameters[k].numel()
                if used is None or used[k]:
                    average = flat[start - p.numel() : start].reshape(p.shape)
                    with no_grad():
                        if p.grad is None:
                            p.grad = average.clone()
                        else:
                            p.grad.copy_(average)

    def _used_anywhere(self, left_out: list[int] | None) -> list[bool] | None:
        """Whether any process has a gradient for each parameter; None where that was not looked for: for all."""
        if left_out is None:
            return None
        here = np.ones(len(self.parameters), np.uint8)
        here[left_out] = 0
        if self._group.size() > 1 and self._transport is not None:
            params = {"reduction": "max", "ranks": self._group.ranks}
            here = self._transport.run("all_reduce", here, params)
        return [bool(x) for x in here]

    @property
    def _transport(self) -> Any:
        from eager.processes.world import world

        return world.transport


def buckets(parameters: Sequence[Tensor], capacity_mb: float) -> list[list[int]]:
    """Numbers of the parameters that are sent together: of one dtype, the last parameters first, as backward goes."""
    found: list[list[int]] = []
    open_: dict[Any, tuple[list[int], int]] = {}
    for k in reversed(range(len(parameters))):
        p = parameters[k]
        places, size = open_.pop(p.dtype, ([], 0))
        if not places:
            found.append(places)
        places.append(k)
        size += p.numel() * p.element_size()
        limit = min(FIRST, capacity_mb * MEGABYTE) if places is found[0] else capacity_mb * MEGABYTE
        if size < limit:
            open_[p.dtype] = places, size
    return found


def unused(outputs: Any, parameters: Sequence[Tensor]) -> list[int]:
    """Numbers of the parameters that the tensors in `outputs` do not depend on."""
    tensors = [t for t in flatten(outputs)[0] if isinstance(t, Tensor) and t.requires_grad]
    if current_interpreter().immediate:
        reached = _leaves(tensors)
        return [k for k, p in enumerate(parameters) if id(p) not in reached]
    if not tensors:
        return list(range(len(parameters)))
    # a graph under capture has no nodes to follow; what is computed here is read by nobody, and so dropped
    found = autograd.grad([t.sum() for t in tensors], list(parameters), allow_unused=True, retain_graph=True)
    return [k for k, g in enumerate(found) if g is None]


def _leaves(tensors: Sequence[Tensor]) -> set[int]:
    """The ids of the leaves that `tensors` depend on."""
    found = {id(t) for t in tensors if t.is_leaf}
    seen: set[Any] = set()
    todo = [t.grad_fn for t in tensors if t.grad_fn is not None]
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        variable = getattr(node, "variable", None)
        if variable is not None:
            found.add(id(variable))
        todo += [parent for parent, _ in node.next_functions if parent is not None]
    return found
