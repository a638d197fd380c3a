"""LRScheduler: sets the learning rate of each parameter group, once an epoch."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from contextlib import contextmanager
from typing import Any

from eager.core.grad_mode import no_grad
from eager.core.shown import ShownObject
from eager.core.tensor import Tensor
from eager.optim.optimizer import Group, Optimizer

NOT_RESUMABLE = (
    "param 'initial_lr' is not specified in param_groups[{i}] when resuming scheduler with last_epoch >= 0.\n"
    "This typically happens when:\n"
    "1. You're trying to resume training from a checkpoint but haven't properly loaded the optimizer state\n"
    "2. You're using last_epoch >= 0 for a fresh training run (not recommended)"
)
WRONG_ORDER = (
    "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, you should call "
    "them in the opposite order: `optimizer.step()` before `lr_scheduler.step()`.  Failure to do this will result in "
    "PyTorch skipping the first value of the learning rate schedule. See more details at "
    "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
)
EPOCH_IS_OLD = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use "
    "`scheduler.step()` to step the scheduler. During the deprecation, if epoch is different from None, the closed "
    "form is used instead of the new chainable form, where available. Please open an issue if you are unable to "
    "replicate your use case: https://github.com/pytorch/pytorch/issues/new/choose."
)
USE_LAST = "To get the last learning rate computed by the scheduler, please use `get_last_lr()`."


def rates(optimizer: Optimizer, name: str = "lr") -> list[Any]:
    """The setting `name` of each group; tensors are copied."""
    return [group[name].clone() if isinstance(group[name], Tensor) else group[name] for group in optimizer.param_groups]


def set_rate(group: Group, value: Any, name: str = "lr") -> None:
    """Change a setting; a tensor keeps its identity and gets another value."""
    if isinstance(group[name], Tensor):
        with no_grad():
            group[name].fill_(value.squeeze() if isinstance(value, Tensor) else value)
    else:
        group[name] = value


def for_each_group(name: str, optimizer: Optimizer, value: Any) -> list[Any]:
    """`value` for every group, or the list that it is. ValueError if that has another length."""
    groups = optimizer.param_groups
    if not isinstance(value, (list, tuple)):
        return [value] * len(groups)
    if len(value) != len(groups):
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} values, param_groups "
            f"has {len(groups)}."
        )
    return list(value)


def check_optimizer(optimizer: Any) -> None:
    """Raise PyTorch's TypeError unless `optimizer` is one."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


class LRScheduler(ShownObject):
    """Base of the schedules. As `torch.optim.lr_scheduler.LRScheduler`.

    A subclass defines `get_lr`, which gives the rates for epoch `last_epoch` from those that the groups have now. It
    may define `_get_closed_form_lr`, which gives them from `base_lrs` alone.
    """

    _get_lr_called_within_step = False
    _is_initial = False  # while the rates of the first epoch are set
    _last_lr: list[Any]

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1):
        check_optimizer(optimizer)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", rates(optimizer)[i])
            elif "initial_lr" not in group:
                raise KeyError(NOT_RESUMABLE.format(i=i))
        self.base_lrs = rates(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        self._initial_step()

    def _begin(self, arguments: dict[str, Any]) -> None:
        """Begin with `arguments`, the local variables of a subclass's `__init__`; other settings become attributes."""
        for name, value in arguments.items():
            if name not in ("self", "__class__", "optimizer", "last_epoch"):
                setattr(self, name, value)
        LRScheduler.__init__(self, arguments["optimizer"], arguments["last_epoch"])

    def _initial_step(self) -> None:
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def get_last_lr(self) -> list[Any]:
        """The rates that the last step set, one for each group."""
        return self._last_lr

    def get_lr(self) -> list[Any]:
        """The rates for the epoch `last_epoch`."""
        raise NotImplementedError

    def step(self, epoch: int | None = None) -> None:
        """Set the rates of the next epoch, or of the given one. Warns if the optimizer has made no step yet."""
        if not self.optimizer._opt_called and self._step_count == 1:
            warnings.warn(WRONG_ORDER, UserWarning, stacklevel=2)
        self._step_count += 1
        if epoch is not None:
            warnings.warn(EPOCH_IS_OLD, UserWarning, stacklevel=2)
        self._update_lr(epoch)

    def _update_lr(self, epoch: int | None = None) -> None:
        with self._computing():
            if epoch is None:
                self.last_epoch += 1
                values = self.get_lr()
            else:
                self.last_epoch = epoch
                values = getattr(self, "_get_closed_form_lr", self.get_lr)()
        self._set(values)

    def _set(self, values: Iterable[Any]) -> None:
        for group, value in zip(self.optimizer.param_groups, values, strict=True):
            set_rate(group, value)
        self._last_lr = rates(self.optimizer)

    @contextmanager
    def _computing(self):
        self._get_lr_called_within_step = True
        try:
            yield
        finally:
            self._get_lr_called_within_step = False

    def _warn_outside_step(self) -> None:
        if not self._get_lr_called_within_step:
            warnings.warn(USE_LAST, UserWarning, stacklevel=3)

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer."""
        return {name: value for name, value in self.__dict__.items() if name != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` returned."""
        self.__dict__.update(state_dict)


class GroupwiseLR(LRScheduler):
    """A schedule whose groups follow one formula."""

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        now = rates(self.optimizer)
        bases = self.base_lrs if self._asks_for_bases() else now
        return [self._next(lr, base) for base, lr in zip(bases, now, strict=True)]

    def _asks_for_bases(self) -> bool:
        """Whether the rates of this epoch depend on the initial ones, which groups that were added since lack."""
        return False

    def _get_closed_form_lr(self) -> list[Any]:
        return [self._closed(base) for base in self.base_lrs]

    def _next(self, lr: Any, base: Any) -> Any:
        """The rate for epoch `last_epoch` from the rate of the epoch before."""
        raise NotImplementedError

    def _closed(self, base: Any) -> Any:
        """The rate for epoch `last_epoch` from the initial rate."""
        raise NotImplementedError
