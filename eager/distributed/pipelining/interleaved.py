"""Schedules for processes that have several stages each. As those of `torch.distributed.pipelining`.

Their orders are found by playing the pipeline through: in each tick every process does one step that is ready, the one
that its schedule likes best. So no process waits for one that waits for it, whatever the stages and microbatches are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, final

from eager.distributed.pipelining.between import Step
from eager.distributed.pipelining.schedules import BACKWARD, FORWARD, PipelineScheduleMulti

__all__ = [
    "ScheduleDualPipeV", "ScheduleInterleaved1F1B", "ScheduleInterleavedZeroBubble", "ScheduleLoopedBFS",
    "ScheduleZBVZeroBubble",
]  # fmt: skip


def played(
    ranks: Sequence[int], count: int, liking: Callable[[Step], Any], ahead: Callable[[int], int] | None = None
) -> Iterator[Step]:
    """The steps of all processes, in an order in which they can be done.

    ranks   the process of each stage
    count   microbatches
    liking  of what is ready, a process does the least by this
    ahead   f(process), how many forward passes it is ahead of its backward passes at most; None: as many as there are
    """
    left = {(forward, stage, k) for forward in (FORWARD, BACKWARD) for stage in range(len(ranks)) for k in range(count)}
    done: set[Step] = set()
    kept, more = dict.fromkeys(ranks, 0), 0

    def ready(step: Step) -> bool:
        forward, stage, k = step
        if forward:
            room = ahead is None or kept[ranks[stage]] < ahead(ranks[stage]) + more
            return room and (stage == 0 or (FORWARD, stage - 1, k) in done)
        return (FORWARD, stage, k) in done and (stage == len(ranks) - 1 or (BACKWARD, stage + 1, k) in done)

    while left:
        now = [
            min(steps, key=liking)
            for rank in kept
            if (steps := [step for step in left if ranks[step[1]] == rank and ready(step)])
        ]
        more = more + 1 if not now else 0  # what the processes may be ahead does not let the first microbatch through
        for step in now:
            kept[ranks[step[1]]] += 1 if step[0] else -1
        left.difference_update(now)
        done.update(now)
        yield from now


class _Alternating(PipelineScheduleMulti):
    """A backward pass as soon as there is one; forward passes by rounds of as many microbatches as processes."""

    def _steps(self, ranks: Sequence[int]) -> Iterator[Step]:
        size = len(set(ranks))
        own = len(ranks) // size

        def liking(step: Step) -> Any:
            forward, stage, k = step
            return (1, k // size, stage, k) if forward else (0, k, -stage, 0)

        return played(ranks, self._count, liking, lambda rank: (own - 1) * size + 2 * (size - rank - 1) + 1)


@final
class ScheduleInterleaved1F1B(_Alternating):
    """Process r has the stages r, r + n, ...; forward and backward passes in turn. As PyTorch's."""


@final
class ScheduleInterleavedZeroBubble(_Alternating):
    """`ScheduleInterleaved1F1B`: gradients of parameters are made together with those of activations here."""


@final
class ScheduleLoopedBFS(PipelineScheduleMulti):
    """Stage by stage, all microbatches; then back. Process r has the stages r, r + n, ... As PyTorch's."""

    def _steps(self, ranks: Sequence[int]) -> Iterator[Step]:
        return played(ranks, self._count, lambda step: (0, step[1], step[2]) if step[0] else (1, -step[1], step[2]))


class _Folded(_Alternating):
    def _ranks(self, stages: int, processes: int) -> Sequence[int]:
        return [*range(processes), *reversed(range(processes))] if stages == 2 * processes else []


@final
class ScheduleZBVZeroBubble(_Folded):
    """Process r of n has the stages r and 2 n - 1 - r, so the first one has the last stage, too. As PyTorch's, whose
    gradients of parameters are made later."""


@final
class ScheduleDualPipeV(_Folded):
    """`ScheduleZBVZeroBubble`, as here no step is done while another is."""
