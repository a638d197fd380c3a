"""DistributedDataParallel: each process computes on its share of the batch, and gradients are averaged."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from eager.core.grad_mode import is_grad_enabled, no_grad
from eager.core.interpreter import current_interpreter
from eager.core.parameter import Parameter
from eager.core.tensor import Tensor
from eager.functional.joining import cat
from eager.nn.module import Module
from eager.nn.parallel.reducer import Reducer, unused
from eager.processes.collectives import all_reduce, broadcast
from eager.processes.joining import Join, Joinable, JoinHook, summed
from eager.processes.objects import all_gather_object
from eager.processes.world import ProcessGroup, ReduceOp, resolved
from graphc.scoped import attribute

__all__ = ["DistributedDataParallel"]

NO_GRADIENTS = (
    "DistributedDataParallel is not needed when a module doesn't have any parameter that requires a gradient."
)
OTHER_MODEL = (
    "DDP expects same model across all ranks, but Rank {rank} has {n} params, while rank {other} has inconsistent {m} "
    "params."
)
OTHER_SHAPE = (
    "[{rank}]: params[{k}] in this process with sizes {ours} appears not to match sizes of the same param in process "
    "{other}: {theirs}."
)


class DistributedDataParallel(Module, Joinable):
    """Calls `module`, which stays an attribute, and averages its gradients over the processes of a group.

    As `torch.nn.parallel.DistributedDataParallel`. At the beginning all processes get the parameters and buffers of the
    first one. In each backward pass a parameter's `.grad` becomes the average over all processes, in buckets: a bucket
    is sent when all of its gradients are there, while others are still computed.

    broadcast_buffers        each forward pass begins with the buffers of the first process
    bucket_cap_mb            megabytes of gradients that are sent together: 25 unless said otherwise
    find_unused_parameters   look, after each forward pass, for parameters that the outputs do not depend on: the others
                             do not wait for these, and where no process uses one, its `.grad` stays as it is
    static_graph             which those are never changes: look once
    gradient_as_bucket_view, device_ids, output_device, dim, check_reduction  change nothing here

    Raises RuntimeError for a module without parameters that require gradients, and where processes have other ones.
    """

    module: Module
    _divides_by_all = True

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0,
                 broadcast_buffers: bool | None = None, init_sync: bool = True, process_group: Any = None,
                 bucket_cap_mb: float | None = None, find_unused_parameters: bool = False,
                 check_reduction: bool = False, gradient_as_bucket_view: bool = False,
                 static_graph: bool = False):  # fmt: skip
        super().__init__()
        group = resolved(process_group)
        if not isinstance(group, ProcessGroup):
            raise ValueError("Invalid process group specified")
        if device_ids is not None and len(device_ids) > 1:
            raise ValueError("device_ids can only be None or contain a single element.")
        ignored = set(getattr(module, "_ddp_params_and_buffers_to_ignore", ()))
        named = [(name, p) for name, p in module.named_parameters() if p.requires_grad and name not in ignored]
        if not named:
            raise RuntimeError(NO_GRADIENTS)
        self.module, self.process_group, self.dim = module, group, dim
        self.broadcast_buffers = broadcast_buffers is None or broadcast_buffers
        self.find_unused_parameters, self.static_graph = find_unused_parameters, static_graph
        self.require_backward_grad_sync = self.require_forward_param_sync = True
        self._buffers_sent = [b for name, b in module.named_buffers() if name not in ignored]
        self._reducer = Reducer([p for _, p in named], [name for name, _ in named], group, bucket_cap_mb)
        every = [p for name, p in module.named_parameters() if name not in ignored]
        self._everything = [*every, *self._buffers_sent]
        if init_sync:
            _verify([p for _, p in named], group)
            self._send(self._everything)

    def forward(self, *inputs: Any, **kwargs: Any) -> Any:
        """What the module computes. RuntimeError if the pass before left some gradients out."""
        sends = self.require_backward_grad_sync and is_grad_enabled()
        if sends:
            self._reducer.expect_finished()
        if self._join_config.enable:
            self._notify(sends)
        else:
            self._reducer.share = None
            self._send_buffers(0)
        outputs = self.module(*inputs, **kwargs)
        self.require_forward_param_sync = sends
        self._reducer.sends = sends
        if sends and (self.find_unused_parameters or self.static_graph):
            self._reducer.leave_out(self._left_out(outputs))
        return outputs

    def _left_out(self, outputs: Any) -> list[int]:
        known = self._reducer.left_out
        if self.static_graph and known is not None:
            return known
        return unused(outputs, self._reducer.parameters)

    def _send_buffers(self, source: int) -> None:
        if self.broadcast_buffers and self.require_forward_param_sync and self._buffers_sent:
            self._send(self._buffers_sent, source)

    def _notify(self, sends: bool) -> None:
        """Tell the processes that have joined already what is to be exchanged in this pass."""
        work = Join.notify_join_context(self)
        if work is not None and not self._divides_by_all:
            self._reducer.share = lambda: 1 / float(work.result()[0].item())
        self._send_buffers(common_rank(self.process_group, True))
        summed(sends, self.process_group)

    def join(self, divide_by_initial_world_size: bool = True, enable: bool = True,
             throw_on_early_termination: bool = False) -> Join:  # fmt: skip
        """Context for processes with different numbers of batches. As `DistributedDataParallel.join`; see `Join`.

        A process whose batches have ended counts as one with gradients of zero; unless `divide_by_initial_world_size`,
        it is left out of the average. At the end all processes have the model of one that was at work to the last.
        """
        return Join([self], enable, throw_on_early_termination,
                    divide_by_initial_world_size=divide_by_initial_world_size)  # fmt: skip

    def join_hook(self, **kwargs: Any) -> JoinHook:
        """What a process does once its batches have ended, for `Join`."""
        self._divides_by_all = kwargs.get("divide_by_initial_world_size", True)
        return _Accompanying(self)

    @property
    def join_device(self) -> Any:
        """The device of the parameters."""
        return self._reducer.parameters[0].device

    @property
    def join_process_group(self) -> Any:
        """The group over which gradients are averaged."""
        return self.process_group

    def register_comm_hook(self, state: object, hook: Callable[..., Any]) -> None:
        """Send gradients by `hook(state, bucket)`, which returns a Future of what takes the place of `bucket.buffer()`.

        As `DistributedDataParallel.register_comm_hook`. The hook averages, if that is wanted; see
        `torch.distributed.algorithms.ddp_comm_hooks`. TypeError unless it is callable, RuntimeError for a second one.
        """
        if not callable(hook):
            raise TypeError("Communication hook must be callable.")
        if self._reducer.hook is not None:
            raise RuntimeError("register_comm_hook or register_builtin_comm_hook can only be called once.")
        self._reducer.hook = state, hook

    def no_sync(self) -> AbstractContextManager[None]:
        """Context: gradients of forward passes inside stay this process's own, and add up until one outside."""
        return attribute(self, "require_backward_grad_sync", False)

    def _send(self, tensors: list[Tensor], source: int = 0) -> None:
        """One process's values of `tensors`, everywhere: those of one dtype together."""
        if self.process_group.size() == 1:
            return
        by_dtype: dict[Any, list[Tensor]] = {}
        for t in tensors:
            by_dtype.setdefault(t.dtype, []).append(t)
        with no_grad():
            for alike in by_dtype.values():
                flat = cat([t.detach().reshape(-1) for t in alike])
                broadcast(flat, group=self.process_group, group_src=source)
                start = 0
                for t in alike:
                    t.copy_(flat[start : start + t.numel()].reshape(t.shape))
                    start += t.numel()


class _Accompanying(JoinHook):
    """What a process whose batches have ended does in each pass of the others."""

    def __init__(self, model: DistributedDataParallel):
        self._model = model

    def main_hook(self) -> None:
        model = self._model
        model._send_buffers(common_rank(model.process_group, False))
        model.require_forward_param_sync = sends = summed(0, model.process_group) > 0
        if sends:
            model._reducer.accompany(model.find_unused_parameters or model.static_graph)

    def post_hook(self, is_last_joiner: bool) -> None:
        model = self._model
        model._send(model._everything, common_rank(model.process_group, is_last_joiner))


def common_rank(group: ProcessGroup, candidate: bool) -> int:
    """The highest rank of a process that is a candidate."""
    rank = Tensor._wrap(np.full(1, group.rank() if candidate else -1, np.int64))
    all_reduce(rank, ReduceOp.MAX, group)
    return int(rank._known()[0])


def _verify(parameters: list[Parameter], group: ProcessGroup) -> None:
    """Raise RuntimeError where another process has other parameters."""
    if group.size() == 1 or not current_interpreter().immediate:
        return
    own = [(tuple(p.shape), str(p.dtype)) for p in parameters]
    found: list[Any] = [None] * group.size()
    all_gather_object(found, own, group)
    for other, theirs in enumerate(found):
        if len(theirs) != len(own):
            raise RuntimeError(OTHER_MODEL.format(rank=group.rank(), n=len(own), other=other, m=len(theirs)))
        for k, (a, b) in enumerate(zip(own, theirs, strict=True)):
            if a != b:
                raise RuntimeError(
                    OTHER_SHAPE.format(rank=group.rank(), k=k, ours=list(a[0]), other=other, theirs=list(b[0]))
                )
