"""ReduceLROnPlateau: lowers the rate when a metric has stopped improving."""

from __future__ import annotations

import math
import warnings
from typing import Any

from eager.optim.lr_scheduler.base import EPOCH_IS_OLD, LRScheduler, check_optimizer, rates, set_rate
from eager.optim.optimizer import Optimizer

# (mode, threshold_mode) -> is metric `a` better than `best`, by threshold `t`?
BETTER = {
    ("min", "rel"): lambda a, best, t: a < best * (1.0 - t),
    ("min", "abs"): lambda a, best, t: a < best - t,
    ("max", "rel"): lambda a, best, t: a > best * (t + 1.0),
    ("max", "abs"): lambda a, best, t: a > best + t,
}


class ReduceLROnPlateau(LRScheduler):
    """The rate times `factor` after `patience` epochs without improvement, down to `min_lr`; then `cooldown` epochs.

    As `torch.optim.lr_scheduler.ReduceLROnPlateau`: `step(metric)` is called once an epoch. ValueError for a factor of
    1 or more and for unknown modes.
    """

    def __init__(
        self, optimizer: Optimizer, mode: str = "min", factor: float = 0.1, patience: int = 10,
        threshold: float = 1e-4, threshold_mode: str = "rel", cooldown: int = 0, min_lr: Any = 0, eps: float = 1e-8,
    ):  # fmt: skip
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        check_optimizer(optimizer)
        self.factor = factor
        self.optimizer = optimizer
        groups = len(optimizer.param_groups)
        if isinstance(min_lr, (list, tuple)):
            if len(min_lr) != groups:
                raise ValueError(f"expected {groups} min_lrs, got {len(min_lr)}")
            self.default_min_lr = None
            self.min_lrs = list(min_lr)
        else:
            self.default_min_lr = min_lr
            self.min_lrs = [min_lr] * groups
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.last_epoch = 0
        self._last_lr = rates(optimizer)
        if mode not in {"min", "max"}:
            raise ValueError(f"mode {mode} is unknown!")
        if threshold_mode not in {"rel", "abs"}:
            raise ValueError(f"threshold mode {threshold_mode} is unknown!")
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.mode = mode
        self.threshold = threshold
        self.threshold_mode = threshold_mode
        self.best: float = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    @property
    def in_cooldown(self) -> bool:
        return self.cooldown_counter > 0

    def step(self, metrics: Any, epoch: int | None = None) -> None:  # type: ignore[override]
        """Take note of the metric of an epoch, and lower the rates if it is time."""
        current = float(metrics)
        if epoch is not None:
            warnings.warn(EPOCH_IS_OLD, UserWarning, stacklevel=2)
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if BETTER[self.mode, self.threshold_mode](current, self.best, self.threshold):
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce()
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = rates(self.optimizer)

    def _reduce(self) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"The number of param groups in the `optimizer` ({len(groups)}) differs from when "
                    f"`ReduceLROnPlateau` was initialized ({len(self.min_lrs)}), usually due to a new param group "
                    "being added to the optimizer. Please modify the `min_lrs` field to match the length of the "
                    "`optimizer` param groups."
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, least in zip(groups, self.min_lrs, strict=True):
            old = float(group["lr"])
            new = max(old * self.factor, least)
            if old - new > self.eps:
                set_rate(group, new)
