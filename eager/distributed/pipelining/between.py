"""A stage whose neighbours are other processes. Activations go to the next one, gradients come back from it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, final

from eager.autograd import backward
from eager.core.tensor import Tensor
from eager.processes.objects import recv_object_list, send_object_list
from eager.processes.world import ProcessGroup, is_initialized, resolved

SIZE = "Pipeline group size {size} must be the number of stages, {count}: each process has one stage"
OTHER = "stage {index} is that of rank {index} of the group, not of rank {rank}"


def group_of(stage: Any) -> ProcessGroup | None:
    """The processes that have the stages of a pipeline, one each, of which `stage` is this one's; None if this process
    has all. ValueError if there are not as many, and for the stage of another."""
    if stage.num_stages == 1 or not is_initialized():
        return None
    group = resolved(stage.group)
    if group.size() == 1:
        return None
    if group.size() != stage.num_stages:
        raise ValueError(SIZE.format(size=group.size(), count=stage.num_stages))
    if group.rank() != stage.stage_index:
        raise ValueError(OTHER.format(index=stage.stage_index, rank=group.rank()))
    return group


@final
class Between:
    """What one process does of a schedule: `stage`, between those of its neighbours in `group`."""

    def __init__(self, stage: Any, group: ProcessGroup):
        self._stage, self._group = stage, group

    def run(
        self, order: Iterable[tuple[bool, int]], parts: list[tuple[Any, ...]], targets: list[Any],
        loss_of: Callable[..., Any] | None, share: Callable[[Any], Any] | None,
    ) -> tuple[list[Any], list[Any]]:  # fmt: skip
        """The outputs and losses of the microbatches, in the last process; elsewhere, this stage's outputs, no losses.

        order    (whether it is a forward pass, the number of the microbatch), in turn
        parts    arguments of each microbatch, which the first stage is given
        loss_of  f(output, target), of the last stage
        share    the part of a loss in what is differentiated; None: nothing is
        """
        stage, count = self._stage, len(targets)
        nothing: list[Any] = [None] * count
        given, outputs, losses = [*nothing], [*nothing], [*nothing]
        for forward, k in order:
            if forward:
                given[k] = parts[k] if stage.is_first else (self._received(-1, share is not None),)
                outputs[k] = stage.submod(*given[k])
                if not stage.is_last:
                    self._send(outputs[k], 1)
                elif loss_of is not None and targets[k] is not None:
                    losses[k] = loss_of(outputs[k], targets[k])
            elif share is not None:
                if stage.is_last:
                    share(losses[k]).backward()
                    losses[k] = losses[k].detach()
                else:
                    backward(outputs[k], self._received(1, False))
                if not stage.is_first:
                    self._send(given[k][0].grad, -1)
                given[k], outputs[k] = None, outputs[k].detach()
        return outputs, [loss for loss in losses if loss is not None]

    def _send(self, tensor: Tensor, step: int) -> None:
        send_object_list([tensor.detach()], group=self._group, group_dst=self._group.rank() + step)

    def _received(self, step: int, differentiated: bool) -> Tensor:
        found: list[Any] = [None]
        recv_object_list(found, group=self._group, group_src=self._group.rank() + step)
        floats = found[0].is_floating_point() or found[0].is_complex()
        return found[0].requires_grad_(differentiated and floats)
