"""Loshchilov and Hutter (2017): cosine annealing, with and without warm restarts."""

from __future__ import annotations

import math
from typing import Any

from eager.optim.lr_scheduler.base import GroupwiseLR, LRScheduler, cosine
from eager.optim.optimizer import Optimizer


class CosineAnnealingLR(GroupwiseLR):
    """eta_min + (base - eta_min) (1 + cos(pi epoch / T_max)) / 2, computed from one epoch to the next."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1):
        self._begin(locals())

    def _height(self, epoch: int) -> float:
        return 1 + cosine(math.pi * epoch / self.T_max)

    def _next(self, lr: Any, base: Any) -> Any:
        if self._is_initial:
            return lr
        if self._step_count == 1 and self.last_epoch > 0:
            return self.eta_min + (base - self.eta_min) * (1 + cosine(self.last_epoch * math.pi / self.T_max)) / 2
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:  # the recurrence divides by zero here
            return lr + (base - self.eta_min) * (1 - cosine(math.pi / self.T_max)) / 2
        ratio = self._height(self.last_epoch) / self._height(self.last_epoch - 1)
        return ratio * (lr - self.eta_min) + self.eta_min

    def _closed(self, base: Any) -> Any:
        return self.eta_min + (base - self.eta_min) * self._height(self.last_epoch) / 2


class CosineAnnealingWarmRestarts(LRScheduler):
    """Cosine annealing over `T_0` epochs, then again over `T_mult` times as many, and so on.

    `step(epoch)` takes fractions of epochs too. ValueError for lengths that are no positive integers.
    """

    def __init__(self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1):
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0 = T_0
        self.T_i = T_0  # length of the present cycle
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: float = last_epoch  # epochs since it began
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        height = 1 + cosine(math.pi * self.T_cur / self.T_i)
        return [self.eta_min + (base - self.eta_min) * height / 2 for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:  # type: ignore[override]
        """Set the rates of the next epoch, or of the given one. ValueError if that is negative."""
        if epoch is None and self.last_epoch >= 0:
            self.last_epoch += 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        else:
            self._jump(0 if epoch is None else epoch)
        with self._computing():
            values = self.get_lr()
        self._set(values)

    def _jump(self, epoch: float) -> None:
        if epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        first, growth = self.T_0, self.T_mult
        if epoch < first:
            self.T_i, self.T_cur = first, epoch
        elif growth == 1:
            self.T_cur = epoch % first
        else:
            cycles = int(math.log(epoch / first * (growth - 1) + 1, growth))
            self.T_cur = epoch - first * (growth**cycles - 1) / (growth - 1)
            self.T_i = first * growth**cycles
        self.last_epoch = math.floor(epoch)
