"""Schedules: in which order stages compute microbatches. As `torch.distributed.pipelining`."""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, final

from eager.core.grad_mode import is_grad_enabled, no_grad
from eager.core.interpreter import current_interpreter
from eager.core.tensor import Tensor
from eager.distributed.pipelining.between import Between, Step, group_of, listed
from eager.distributed.pipelining.pipe import Pipe
from eager.distributed.pipelining.stage import PipelineStage
from eager.functional.joining import cat, stack
from graphc.lazy import lazy

NO_GRADIENTS = (
    "step() requires gradients to be enabled for backward computation; it should not be used under torch.no_grad() "
    "context. Please call eval() instead."
)
MISSING = "all {count} stages are in this process: pass all of them, or one that Pipe.build_stage has made"
NO_TARGET = "step() computes losses, and needs a target. Remedy: step(x, target=y)"
FEW = "a batch of {size} samples cannot be split into {count} microbatches"
UNEVEN = "on a mesh a batch of {size} samples cannot be split into {count} microbatches of one size"
FORWARD, BACKWARD = True, False
_OTHERS = (
    "ScheduleDualPipeV", "ScheduleInterleaved1F1B", "ScheduleInterleavedZeroBubble", "ScheduleLoopedBFS",
    "ScheduleZBVZeroBubble",
)  # fmt: skip

__all__ = [  # pyright: ignore[reportUnsupportedDunderAll]
    "PipelineScheduleMulti", "PipelineScheduleSingle", "Schedule1F1B", "ScheduleGPipe", "get_schedule_class", *_OTHERS,
]  # fmt: skip
__getattr__, __dir__ = lazy(__name__, dict.fromkeys(_OTHERS, "eager.distributed.pipelining.interleaved"))


class _Schedule(ABC):
    """stage           one of a `Pipe`, or a list of all stages
    n_microbatches     how many parts of the batch there are
    loss_fn            f(output, target) of a microbatch; None: nothing is differentiated
    scale_grads        whether gradients are divided by the number of microbatches, as of a loss that is a mean
    args_chunk_spec, kwargs_chunk_spec, output_merge_spec  must be None: batches are split along their first dim
    """

    def __init__(
        self, stage: PipelineStage | Sequence[PipelineStage], n_microbatches: int,
        loss_fn: Callable[..., Any] | None = None, args_chunk_spec: Any = None, kwargs_chunk_spec: Any = None,
        output_merge_spec: Any = None, scale_grads: bool = True,
    ):  # fmt: skip
        if not args_chunk_spec is kwargs_chunk_spec is output_merge_spec is None:
            raise NotImplementedError("schedules split batches along their first dim, and take no specs of chunks")
        if type(n_microbatches) is not int or n_microbatches < 1:
            raise ValueError(f"n_microbatches must be a positive integer, got {n_microbatches!r}")
        given = [stage] if isinstance(stage, PipelineStage) else sorted(stage, key=lambda s: s.stage_index)
        self._pipe: Pipe | None = given[0].pipe
        self._between: Between | None = None
        group = None if self._on_mesh else group_of(given, self._ranks)
        if group is not None:
            self._placed = self._ranks(given[0].num_stages, group.size())
            self._modules, self._between = [s.submod for s in given], Between(given, group, self._placed)
        elif self._pipe is not None:
            self._modules = [self._pipe.get_stage_module(k) for k in range(self._pipe.num_stages)]
        elif [s.stage_index for s in given] == [*range(given[0].num_stages)]:
            self._modules = [s.submod for s in given]
        else:
            raise ValueError(MISSING.format(count=given[0].num_stages))
        self._count, self._loss_fn, self._scale = n_microbatches, loss_fn, scale_grads

    @abstractmethod
    def _ranks(self, stages: int, processes: int) -> Sequence[int]:
        """The process that has each stage."""

    @abstractmethod
    def _order(self, stages: int) -> Iterator[tuple[bool, int]]:
        """(FORWARD or BACKWARD, the number of a microbatch), in the order of the schedule for one stage, behind which
        there are so many with it."""

    @abstractmethod
    def _steps(self, ranks: Sequence[int]) -> Iterator[Step]:
        """The steps of all processes, or at least of this one, in their order."""

    def step(self, *args: Any, target: Any = None, losses: list[Any] | None = None, return_outputs: bool = True) -> Any:
        """Forward and backward passes of a whole batch, in microbatches. Returns what the model makes of it.

        Between processes the first one is given the batch, the last one the target, and returns the output.
        Gradients are added to `.grad`; `losses` gets the loss of each microbatch. On a mesh microbatch k is samples k,
        k + n, ..., so a batch that is split over devices stays where it is; else it is the k-th part.
        Raises RuntimeError under `no_grad`, ValueError without a target, and for batches that cannot be split.
        """
        if self._loss_fn is not None and not is_grad_enabled():
            raise RuntimeError(NO_GRADIENTS)
        makes_loss = self._between is None or self._between.has_last
        if self._loss_fn is not None and target is None and makes_loss:
            raise ValueError(NO_TARGET)
        return self._run(args, target, losses, return_outputs, self._loss_fn is not None)

    def eval(self, *args: Any, target: Any = None, losses: list[Any] | None = None) -> Any:
        """Forward passes only, without gradients."""
        with no_grad():
            return self._run(args, target, losses, True, False)

    def _run(self, args: tuple[Any, ...], target: Any, losses: Any, return_outputs: bool, backward: bool) -> Any:
        parts: list[Any] = [*zip(*map(self._split, args), strict=True)]
        targets = self._split(target) if target is not None else [None] * self._count
        if self._between is not None:
            order = self._steps(self._placed)
            made, found = self._between.run(order, parts, targets, self._loss_fn, self._share if backward else None)
            output = self._merged(made) if self._between.has_last else None
        elif self._on_mesh and not current_interpreter().immediate:
            output, found = self._shifted(args, targets, backward)
        else:
            output, found = self._one_by_one(parts, targets, backward)
        if losses is not None:
            losses[:] = found
        return output if return_outputs else None

    def _one_by_one(self, parts: list[Any], targets: list[Any], backward: bool) -> tuple[Any, list[Any]]:
        outputs: list[Any] = [None] * self._count
        losses: list[Any] = [None] * self._count
        for which, k in self._order(len(self._modules)):
            if which is FORWARD:
                made = parts[k]
                for module in self._modules:
                    made = module(*listed(made))
                outputs[k] = made
                losses[k] = None if self._loss_fn is None or targets[k] is None else self._loss_fn(made, targets[k])
            elif backward:
                self._share(losses[k]).backward()
                outputs[k], losses[k] = outputs[k].detach(), losses[k].detach()
        return self._merged(outputs), [loss for loss in losses if loss is not None]

    def _shifted(self, args: tuple[Any, ...], targets: list[Any], backward: bool) -> tuple[Any, list[Any]]:
        """All stages at once, on their devices: XLA orders forward before backward passes, whatever the schedule."""
        pipe = self._pipe
        assert pipe is not None
        x = pipe.first(*args)
        made = pipe.stages(x.reshape(-1, self._count, *x.shape[1:]).transpose(0, 1))
        output = pipe.last(made.transpose(0, 1).flatten(0, 1))
        losses: list[Any] = []
        if self._loss_fn is not None and targets[0] is not None:
            losses = [self._loss_fn(part, own) for part, own in zip(self._split(output), targets, strict=True)]
        if backward:
            self._share(stack(losses).sum()).backward()
            output, losses = output.detach(), [loss.detach() for loss in losses]
        return output, losses

    def _share(self, loss: Any) -> Any:
        return loss / self._count if self._scale else loss

    @property
    def _on_mesh(self) -> bool:
        return self._pipe is not None and self._pipe.mesh is not None

    def _split(self, batch: Tensor) -> list[Any]:
        size = batch.shape[0] if batch.dim() else 0
        if size < self._count:
            raise ValueError(FEW.format(size=size, count=self._count))
        if not self._on_mesh:
            return [*batch.tensor_split(self._count)]
        if size % self._count:
            raise ValueError(UNEVEN.format(size=size, count=self._count))
        return [*batch.reshape(size // self._count, self._count, *batch.shape[1:]).unbind(1)]

    def _merged(self, outputs: list[Any]) -> Any:
        return stack(outputs, 1).flatten(0, 1) if self._on_mesh else cat(outputs)


class PipelineScheduleSingle(_Schedule):
    """A schedule for processes with one stage each."""

    def _ranks(self, stages: int, processes: int) -> Sequence[int]:
        return range(stages) if stages == processes else []

    def _steps(self, ranks: Sequence[int]) -> Iterator[Step]:
        # each process needs its own, and all others come to it in this order
        for stage in range(len(ranks)):
            yield from ((forward, stage, k) for forward, k in self._order(len(ranks) - stage))


class PipelineScheduleMulti(_Schedule):
    """A schedule for processes with several stages each, by default r, r + n, ... of n processes.

    stages           those of this process, or all if it is alone
    n_microbatches   how many parts of the batch there are
    loss_fn          f(output, target) of a microbatch; None: nothing is differentiated
    scale_grads      whether gradients are divided by the number of microbatches, as of a loss that is a mean

    The other arguments change nothing, or must be None.
    """

    def __init__(
        self, stages: Sequence[PipelineStage], n_microbatches: int, loss_fn: Callable[..., Any] | None = None,
        args_chunk_spec: Any = None, kwargs_chunk_spec: Any = None, output_merge_spec: Any = None,
        use_full_backward: bool | None = None, scale_grads: bool = True, backward_requires_autograd: bool = True,
    ):  # fmt: skip
        specs = (args_chunk_spec, kwargs_chunk_spec, output_merge_spec)
        super().__init__(stages, n_microbatches, loss_fn, *specs, scale_grads)

    def _ranks(self, stages: int, processes: int) -> Sequence[int]:
        return [k % processes for k in range(stages)] if stages % processes == 0 else []

    def _order(self, stages: int) -> Iterator[tuple[bool, int]]:
        for k in range(self._count):
            yield from ((FORWARD, k), (BACKWARD, k))


def get_schedule_class(schedule_name: str) -> type[_Schedule]:
    """The schedule of a name, "1F1B" or "Interleaved1F1B", in any case. ValueError for another."""
    known = {name.removeprefix("Schedule").lower(): name for name in __all__ if name.startswith("Schedule")}
    short = schedule_name.lower().removeprefix("schedule")
    if short not in known:
        raise ValueError(f"Unknown schedule '{schedule_name}'. The supported options are {[*known.values()]}")
    return getattr(sys.modules[__name__], known[short])


@final
class ScheduleGPipe(PipelineScheduleSingle):
    """All forward passes, then all backward passes. As `torch.distributed.pipelining.ScheduleGPipe`."""

    __doc__ = f"{__doc__}\n\n{_Schedule.__doc__}"

    def _order(self, stages: int) -> Iterator[tuple[bool, int]]:
        for which in (FORWARD, BACKWARD):
            yield from ((which, k) for k in range(self._count))


@final
class Schedule1F1B(PipelineScheduleSingle):
    """One forward, one backward pass in turn, once each stage has a microbatch: activations are kept for as many as
    there are stages. As `torch.distributed.pipelining.Schedule1F1B`. On a mesh it is `ScheduleGPipe`."""

    __doc__ = f"{__doc__}\n\n{_Schedule.__doc__}"

    def _order(self, stages: int) -> Iterator[tuple[bool, int]]:
        ahead = min(stages, self._count)
        yield from ((FORWARD, k) for k in range(ahead))
        for k in range(self._count):
            yield BACKWARD, k
            if k + ahead < self._count:
                yield FORWARD, k + ahead
