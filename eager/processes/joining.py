"""Processes whose data ends earlier than that of others, which they accompany until all are done.

As `torch.distributed.algorithms.join`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from eager.core.tensor import Tensor
from eager.processes.collectives import all_reduce
from eager.processes.futures import Work

EARLY_END = "Detected at least one rank that exhausted inputs. Throwing across all ranks."


class JoinConfig(NamedTuple):
    """What a Joinable knows of the context that it is in."""

    enable: bool = False
    throw_on_early_termination: bool = False
    is_first_joinable: bool = False


class JoinHook:
    """What a process does for a Joinable once its own data has ended. As `torch.distributed.algorithms.JoinHook`."""

    def main_hook(self) -> None:
        """Take part in the collectives of one iteration of the others."""

    def post_hook(self, is_last_joiner: bool) -> None:
        """Called when all processes have joined; `is_last_joiner`: this one was among the last."""


class Joinable(ABC):
    """What exchanges tensors in each iteration: it begins each with `Join.notify_join_context(self)`."""

    _join_config = JoinConfig()

    @abstractmethod
    def join_hook(self, **kwargs: Any) -> JoinHook:
        """What a process whose data has ended does for this object; the arguments are those of `Join`."""

    @property
    @abstractmethod
    def join_device(self) -> Any:
        """The device of what `Join` itself exchanges."""

    @property
    @abstractmethod
    def join_process_group(self) -> Any:
        """The group of what `Join` itself exchanges."""


class Join:
    """Context in which processes may have different numbers of inputs. As `torch.distributed.algorithms.Join`.

    joinables: DistributedDataParallel, ZeroRedundancyOptimizer, or a Joinable of one's own, all of one group. A process
    that leaves the context goes on to take part in what the others exchange, until all have left. With
    `throw_on_early_termination`, all raise RuntimeError as soon as one has left.
    """

    def __init__(self, joinables: Sequence[Joinable], enable: bool = True, throw_on_early_termination: bool = False,
                 **kwargs: Any):  # fmt: skip
        if not joinables:
            raise ValueError("The join context manager requires at least one joinable")
        self._joinables = joinables
        self._hooks = [joinable.join_hook(**kwargs) for joinable in joinables]
        self._enable, self._throws = enable, throw_on_early_termination
        self._group = joinables[0].join_process_group
        if any(joinable.join_process_group is not self._group for joinable in joinables):
            raise ValueError("Using join context manager with multiple process groups")

    def __enter__(self) -> None:
        for k, joinable in enumerate(self._joinables):
            joinable._join_config = JoinConfig(self._enable, self._throws, k == 0)

    def __exit__(self, kind: Any, *error: object) -> None:
        try:
            if self._enable and kind is None:
                self._accompany()
        finally:
            for joinable in self._joinables:
                joinable._join_config = JoinConfig()

    def _accompany(self) -> None:
        is_last = True
        while summed(0, self._group):
            if self._throws:
                summed(1, self._group)
                raise RuntimeError(f"Rank {self._group.rank()} exhausted all inputs.")
            for hook in self._hooks:
                hook.main_hook()
            is_last = False
        for hook in self._hooks:
            hook.post_hook(is_last)

    @staticmethod
    def notify_join_context(joinable: Joinable) -> Work | None:
        """Say that this process is still at work, before what `joinable` exchanges in an iteration.

        Returns the Work whose result is how many are; None outside of `Join`, and but for the first of its joinables.
        RuntimeError if one has left and the context was to throw.
        """
        config = joinable._join_config
        if not config.enable or not config.is_first_joinable:
            return None
        group = joinable.join_process_group
        work = all_reduce(Tensor._wrap(np.ones(1, np.float32)), group=group, async_op=True)
        if config.throw_on_early_termination and summed(0, group):
            raise RuntimeError(EARLY_END)
        return work


def summed(number: float, group: Any) -> float:
    """The sum of every process's number."""
    t = Tensor._wrap(np.full(1, number, np.float32))
    all_reduce(t, group=group)
    return float(t._known()[0])
