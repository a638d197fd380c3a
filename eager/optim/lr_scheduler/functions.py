"""Schedules that call a function of the user's with the epoch."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from eager.optim.lr_scheduler.base import LRScheduler, rates
from eager.optim.optimizer import Optimizer

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
        return now if self._is_initial else [lr * factor for lr, factor in zip(now, self._factors(), strict=True)]
