"""Stages whose neighbours are other processes. Activations go to the next one, gradients come back from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, final

from eager.autograd import backward
from eager.core.tensor import Tensor
from eager.processes.objects import recv_object_list, send_object_list
from eager.processes.world import ProcessGroup, is_initialized, resolved

SIZE = "Pipeline group size {size} must be the number of stages, {count}: each process has one stage"
OTHER = "stage {index} is that of rank {index} of the group, not of rank {rank}"
OTHERS = "rank {rank} of the group has the stages {expected} of {count} in this schedule, not {given}"

Step = tuple[bool, int, int]  # whether it is a forward pass, the number of the stage, that of the microbatch


def group_of(stages: Sequence[Any], ranks: Callable[[int, int], Sequence[int]]) -> ProcessGroup | None:
    """The processes that have the stages of a pipeline, of which `stages` are this one's; None if this has all.

    ranks: f(stages, processes), the process of each stage. ValueError for the stages of another process.
    """
    count = stages[0].num_stages
    if count == 1 or not is_initialized():
        return None
    group = resolved(stages[0].group)
    if group.size() == 1:
        return None
    rank, given = group.rank(), [stage.stage_index for stage in stages]
    expected = [k for k, owner in enumerate(ranks(count, group.size())) if owner == rank]
    if given == expected:
        return group
    if len(stages) > 1:
        raise ValueError(OTHERS.format(rank=rank, expected=expected, count=count, given=given))
    if group.size() != count:
        raise ValueError(SIZE.format(size=group.size(), count=count))
    raise ValueError(OTHER.format(index=given[0], rank=rank))


@final
class Between:
    """What one process does of a schedule: its `stages`, of those that the processes of `group` have.

    ranks: the process of each stage, by its number in the group
    """

    def __init__(self, stages: Sequence[Any], group: ProcessGroup, ranks: Sequence[int]):
        self._stages, self._group, self._ranks = {s.stage_index: s for s in stages}, group, ranks
        self._come: dict[Step, list[Any]] = {}  # what was sent for a step, and not yet asked for

    @property
    def has_last(self) -> bool:
        """Whether this process has the last stage."""
        return any(stage.is_last for stage in self._stages.values())

    def run(
        self, order: Iterable[Step], parts: list[tuple[Any, ...]], targets: list[Any],
        loss_of: Callable[..., Any] | None, share: Callable[[Any], Any] | None,
    ) -> tuple[list[Any], list[Any]]:  # fmt: skip
        """The outputs and losses of the microbatches, in the process of the last stage; elsewhere nothing.

        order    what is done in turn; steps of other processes' stages are left out
        parts    arguments of each microbatch, which the first stage is given
        loss_of  f(output, target), of the last stage
        share    the part of a loss in what is differentiated; None: nothing is
        """
        given: dict[tuple[int, int], Sequence[Any]] = {}
        made: dict[tuple[int, int], Any] = {}
        losses: list[Any] = [None] * len(targets)
        for step in order:
            forward, number, k = step
            stage = self._stages.get(number)
            if stage is None:
                continue
            if forward:
                given[number, k] = parts[k] if stage.is_first else self._received(step, number - 1, share is not None)
                made[number, k] = stage.submod(*given[number, k])
                if not stage.is_last:
                    self._send((True, number + 1, k), listed(made[number, k]))
                elif loss_of is not None and targets[k] is not None:
                    losses[k] = loss_of(made[number, k], targets[k])
            elif share is not None:
                if stage.is_last:
                    share(losses[k]).backward()
                    losses[k], made[number, k] = losses[k].detach(), made[number, k].detach()
                else:
                    found = zip(listed(made.pop((number, k))), self._received(step, number + 1, False), strict=True)
                    # what passes through of the arguments has no history
                    pairs = [(x, g) for x, g in found if g is not None and x.requires_grad]
                    if pairs:
                        backward([x for x, _ in pairs], [g for _, g in pairs])
                if not stage.is_first:
                    self._send((False, number - 1, k), [getattr(x, "grad", None) for x in given[number, k]])
                del given[number, k]
        last = len(self._ranks) - 1
        outputs = [made[last, k] for k in range(len(targets))] if last in self._stages else []
        return outputs, [loss for loss in losses if loss is not None]

    def _send(self, step: Step, tensors: Sequence[Any]) -> None:
        """Let the process of a step have what it is for."""
        plain = [x.detach() if isinstance(x, Tensor) else x for x in tensors]
        target = self._ranks[step[1]]
        if target == self._group.rank():
            self._come[step] = plain
        else:
            send_object_list([(step, plain)], group=self._group, group_dst=target)

    def _received(self, step: Step, neighbour: int, differentiated: bool) -> list[Any]:
        """What the stage `neighbour` has made for a step: what it has sent before for others is kept for these."""
        while step not in self._come:
            found: list[Any] = [None]
            recv_object_list(found, group=self._group, group_src=self._ranks[neighbour])
            self._come[found[0][0]] = found[0][1]
        return [_leaf(x, differentiated) for x in self._come.pop(step)]


def _leaf(x: Any, differentiated: bool) -> Any:
    if not isinstance(x, Tensor) or not differentiated or not (x.is_floating_point() or x.is_complex()):
        return x
    return x.requires_grad_(True)


def listed(made: Any) -> Sequence[Any]:
    """What a stage gives the next one, one after the other."""
    return made if isinstance(made, (tuple, list)) else (made,)
