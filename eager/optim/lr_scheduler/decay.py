"""Schedules by a fixed decay: in steps, linear, exponential, polynomial."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable
from typing import Any

from eager.optim.lr_scheduler.base import GroupwiseLR
from eager.optim.optimizer import Optimizer


class StepLR(GroupwiseLR):
    """The rate times `gamma` every `step_size` epochs."""

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1):
        self._begin(locals())

    def _next(self, lr: Any, base: Any) -> Any:
        return lr if self.last_epoch == 0 or self.last_epoch % self.step_size else lr * self.gamma

    def _closed(self, base: Any) -> Any:
        return base * self.gamma ** (self.last_epoch // self.step_size)


class MultiStepLR(GroupwiseLR):
    """The rate times `gamma` at each of the `milestones`; one that is given twice counts twice."""

    def __init__(self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1):
        self._begin({**locals(), "milestones": Counter(milestones)})

    def _next(self, lr: Any, base: Any) -> Any:
        times = self.milestones.get(self.last_epoch)
        return lr if times is None else lr * self.gamma**times

    def _closed(self, base: Any) -> Any:
        return base * self.gamma ** bisect_right(sorted(self.milestones.elements()), self.last_epoch)


class ConstantLR(GroupwiseLR):
    """The rate times `factor` for the first `total_iters` epochs. ValueError for a factor outside [0, 1]."""

    def __init__(self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1):
        if not 0 <= factor <= 1:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self._begin(locals())

    def _next(self, lr: Any, base: Any) -> Any:
        if self.last_epoch == 0:
            return lr * self.factor
        return lr * (1.0 / self.factor) if self.last_epoch == self.total_iters else lr

    def _closed(self, base: Any) -> Any:
        return base * (self.factor + (self.last_epoch >= self.total_iters) * (1 - self.factor))


class LinearLR(GroupwiseLR):
    """The rate times a factor that goes from `start_factor` to `end_factor` in `total_iters` epochs.

    Raises ValueError for a factor outside [0, 1], or a start of zero.
    """

    def __init__(self, optimizer: Optimizer, start_factor: float = 1.0 / 3, end_factor: float = 1.0,
                 total_iters: int = 5, last_epoch: int = -1):  # fmt: skip
        if not 0 < start_factor <= 1:
            raise ValueError("Starting multiplicative factor expected to be greater than 0 and less or equal to 1.")
        if not 0 <= end_factor <= 1:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self._begin(locals())

    def _next(self, lr: Any, base: Any) -> Any:
        if self.last_epoch == 0:
            return lr * self.start_factor
        if self._is_initial or self.last_epoch > self.total_iters:
            return lr
        rise = self.end_factor - self.start_factor
        return lr * (1.0 + rise / (self.total_iters * self.start_factor + (self.last_epoch - 1) * rise))

    def _closed(self, base: Any) -> Any:
        epochs = min(self.total_iters, self.last_epoch)
        return base * (self.start_factor + (self.end_factor - self.start_factor) * epochs / self.total_iters)


class ExponentialLR(GroupwiseLR):
    """The rate times `gamma` every epoch."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1):
        self._begin(locals())

    def _next(self, lr: Any, base: Any) -> Any:
        return lr if self._is_initial else lr * self.gamma

    def _closed(self, base: Any) -> Any:
        return base * self.gamma**self.last_epoch


class PolynomialLR(GroupwiseLR):
    """The rate times (1 - epoch / total_iters) ** power, zero from `total_iters` on."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1):
        self._begin(locals())

    def _left(self, epoch: int) -> float:
        return 1.0 - epoch / self.total_iters

    def _next(self, lr: Any, base: Any) -> Any:
        if self._is_initial or self.last_epoch > self.total_iters:
            return lr
        return lr * (self._left(self.last_epoch) / self._left(self.last_epoch - 1)) ** self.power

    def _closed(self, base: Any) -> Any:
        return base * self._left(min(self.total_iters, self.last_epoch)) ** self.power
