"""Averages of models along a training run, and the schedule for them. As `torch.optim.swa_utils`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any

from eager.core.grad_mode import no_grad
from eager.functional.creation import tensor
from eager.nn.module import Module
from eager.nn.modules.batchnorm import _BatchNorm
from eager.optim.lr_scheduler.base import LRScheduler, for_each_group
from eager.optim.optimizer import Optimizer

__all__ = [
    "SWALR",
    "AveragedModel",
    "get_ema_avg_fn",
    "get_ema_multi_avg_fn",
    "get_swa_avg_fn",
    "get_swa_multi_avg_fn",
    "update_bn",
]


def get_swa_avg_fn() -> Callable[..., Any]:
    """The running mean: average + (new - average) / (count + 1)."""
    return lambda average, new, count: average + (new - average) / (count + 1)


def get_ema_avg_fn(decay: float = 0.999) -> Callable[..., Any]:
    """The exponential mean: decay * average + (1 - decay) * new. ValueError for a decay outside [0, 1]."""
    if not 0.0 <= decay <= 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")
    return lambda average, new, count: decay * average + (1 - decay) * new


def _on_lists(function: Callable[..., Any]) -> Callable[..., None]:
    def update(averages: list[Any], news: list[Any], count: Any) -> None:
        with no_grad():
            for average, new in zip(averages, news, strict=True):
                average.copy_(function(average, new, count))

    return update


def get_swa_multi_avg_fn() -> Callable[..., None]:
    """`get_swa_avg_fn` on lists of tensors, in place."""
    return _on_lists(get_swa_avg_fn())


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[..., None]:
    """`get_ema_avg_fn` on lists of tensors, in place."""
    return _on_lists(get_ema_avg_fn(decay))


class AveragedModel(Module):
    """A copy of `model` whose parameters are the mean of those that `update_parameters` has seen.

    avg_fn(average, new, count) gives the mean (the running one by default); multi_avg_fn works on lists, in place.
    With `use_buffers`, buffers are averaged too, else copied.
    """

    n_averaged: Any

    def __init__(self, model: Module, device: Any = None, avg_fn: Callable[..., Any] | None = None,
                 multi_avg_fn: Callable[..., None] | None = None, use_buffers: bool = False):  # fmt: skip
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", tensor(0))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the averaged model computes."""
        return self.module(*args, **kwargs)

    def _tensors(self, model: Module) -> list[Any]:
        return list(chain(model.parameters(), model.buffers()) if self.use_buffers else model.parameters())

    def update_parameters(self, model: Module) -> None:
        """Take the parameters of `model` into the mean."""
        averages = [t.detach() for t in self._tensors(self.module)]
        news = [t.detach() for t in self._tensors(model)]
        if self.n_averaged == 0:
            for average, new in zip(averages, news, strict=True):
                average.copy_(new)
        else:
            update = self.multi_avg_fn or _on_lists(self.avg_fn or get_swa_avg_fn())
            update(averages, news, self.n_averaged)
        if not self.use_buffers:
            for mine, new in zip(self.module.buffers(), model.buffers(), strict=True):
                mine.detach().copy_(new.detach())
        self.n_averaged += 1


def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Recompute the running statistics of the batch norms of `model` in one pass over `loader`.

    A batch that is a list or tuple is given to the model by its first member.
    """
    norms: list[Any] = [m for m in model.modules() if isinstance(m, _BatchNorm) and m.running_mean is not None]
    momenta = {m: m.momentum for m in norms}
    if not norms:
        return
    was_training = model.training
    model.train()
    for norm in norms:
        norm.running_mean.zero_()
        norm.running_var.fill_(1)
        norm.num_batches_tracked.zero_()
        norm.momentum = None  # the plain mean over all batches
    with no_grad():
        for batch in loader:
            inputs = batch[0] if isinstance(batch, (list, tuple)) else batch
            model(inputs if device is None else inputs.to(device))
    for norm, momentum in momenta.items():
        norm.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """The rate goes to `swa_lr` in `anneal_epochs` epochs, along a cosine or a line, and stays there."""

    def __init__(self, optimizer: Optimizer, swa_lr: Any, anneal_epochs: int = 10, anneal_strategy: str = "cos",
                 last_epoch: int = -1):  # fmt: skip
        for group, rate in zip(optimizer.param_groups, for_each_group("swa_lr", optimizer, swa_lr), strict=True):
            group["swa_lr"] = rate
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _weight(self, epoch: int) -> float:
        """How much of the way has been gone at `epoch`."""
        part = max(0.0, min(1.0, epoch / max(1, self.anneal_epochs)))
        return (1 - math.cos(math.pi * part)) / 2 if self._anneal_strategy == "cos" else part

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        epoch = self._step_count - 1
        if self.anneal_epochs == 0:
            epoch = max(1, epoch)
        before, now = self._weight(max(0, epoch - 1)), self._weight(epoch)
        found = []
        for group in self.optimizer.param_groups:
            goal, lr = group["swa_lr"], group["lr"]
            start = goal if before == 1 else (lr - before * goal) / (1 - before)
            found.append(goal * now + start * (1 - now))
        return found
