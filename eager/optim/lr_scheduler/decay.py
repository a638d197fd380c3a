"""Rates by a formula of the epoch: steps, decays, functions, cosines."""

from __future__ import annotations

import math
import types
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from eager.optim.lr_scheduler.base import GroupwiseLR, LRScheduler, rates
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


Factor = Callable[[int], float]
Factors = Factor | list[Factor] | tuple[Factor, ...]


class _FunctionLR(LRScheduler):
    """Keeps one function for each group. The state of those that are objects is part of the schedule's state."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Factors, last_epoch: int = -1):
        groups = len(optimizer.param_groups)
        if not isinstance(lr_lambda, (list, tuple)):
            lr_lambda = [lr_lambda] * groups
        if len(lr_lambda) != groups:
            raise ValueError(f"Expected {groups} lr_lambdas, but got {len(lr_lambda)}")
        self.lr_lambdas = list(lr_lambda)
        super().__init__(optimizer, last_epoch)

    def _factors(self) -> list[float]:
        return [function(self.last_epoch) for function in self.lr_lambdas]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer, with the attributes of the functions that are objects, None for others."""
        state = super().state_dict()
        del state["lr_lambdas"]
        state["lr_lambdas"] = [
            None if isinstance(function, types.FunctionType) else dict(function.__dict__)
            for function in self.lr_lambdas
        ]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` returned; the functions stay, the attributes of objects are set."""
        for function, attributes in zip(self.lr_lambdas, state_dict["lr_lambdas"], strict=False):
            if attributes is not None:
                function.__dict__.update(attributes)
        super().load_state_dict({name: value for name, value in state_dict.items() if name != "lr_lambdas"})


class LambdaLR(_FunctionLR):
    """The initial rate times `lr_lambda(epoch)`; a list has a function for each group."""

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        return [base * factor for base, factor in zip(self.base_lrs, self._factors(), strict=True)]


class MultiplicativeLR(_FunctionLR):
    """The rate times `lr_lambda(epoch)`, every epoch; a list has a function for each group."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Factors, last_epoch: int = -1):
        for function in lr_lambda if isinstance(lr_lambda, (list, tuple)) else [lr_lambda]:
            if not callable(function):
                raise TypeError(f"lr_lambda should be a function, but got {type(function).__name__}")
        super().__init__(optimizer, lr_lambda, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        now = rates(self.optimizer)
        return now if self._is_initial else [lr * factor for factor, lr in zip(self._factors(), now, strict=True)]


class CosineAnnealingLR(GroupwiseLR):
    """eta_min + (base - eta_min) (1 + cos(pi epoch / T_max)) / 2, computed from one epoch to the next."""

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1):
        self._begin(locals())

    def _height(self, epoch: int) -> float:
        return 1 + math.cos(math.pi * epoch / self.T_max)

    def _is_resumed(self) -> bool:
        return self._step_count == 1 and self.last_epoch > 0

    def _is_after_a_trough(self) -> bool:
        return (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0

    def _asks_for_bases(self) -> bool:
        return not self._is_initial and (self._is_resumed() or self._is_after_a_trough())

    def _next(self, lr: Any, base: Any) -> Any:
        if self._is_initial:
            return lr
        if self._is_resumed():
            return self.eta_min + (base - self.eta_min) * (1 + math.cos(self.last_epoch * math.pi / self.T_max)) / 2
        if self._is_after_a_trough():  # the recurrence divides by zero here
            return lr + (base - self.eta_min) * (1 - math.cos(math.pi / self.T_max)) / 2
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
        height = 1 + math.cos(math.pi * self.T_cur / self.T_i)
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
