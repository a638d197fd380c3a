"""Smith (2017, 2018): cyclical rates, and one cycle; the momentum goes the other way."""

from __future__ import annotations

import math
import types
from collections.abc import Callable
from typing import Any

from eager.optim.lr_scheduler.base import LRScheduler, check_optimizer, for_each_group, set_rate
from eager.optim.optimizer import Group, Optimizer

NO_MOMENTUM = "optimizer must support momentum or beta1 with `cycle_momentum` option enabled"
# mode of CyclicLR -> (factor of the height from `gamma` and `x`, what x counts)
SHAPES: dict[str, tuple[Callable[[float, float], float], str]] = {
    "triangular": (lambda gamma, x: 1.0, "cycle"),
    "triangular2": (lambda gamma, x: 1 / 2.0 ** (x - 1), "cycle"),
    "exp_range": (lambda gamma, x: gamma**x, "iterations"),
}
# strategy of OneCycleLR -> value between start and end
ANNEALING: dict[str, Callable[[float, float, float], float]] = {
    "cos": lambda start, end, part: end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1),
    "linear": lambda start, end, part: (end - start) * part + start,
}


def _uses_betas(optimizer: Optimizer) -> bool:
    """Whether the momentum is the first of "betas". ValueError if the optimizer has neither."""
    if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
        raise ValueError(NO_MOMENTUM)
    return "betas" in optimizer.defaults


def _set_momentum(group: Group, value: float, betas: bool) -> None:
    if betas:
        group["betas"] = (value, *group["betas"][1:])
    else:
        group["momentum"] = value


class _MomentumLR(LRScheduler):
    """A schedule that may move the momentum between two bounds."""

    cycle_momentum: bool
    use_beta1: bool

    def _start_momentum(self, lows: list[float], highs: list[float]) -> None:
        for group, low, high in zip(self.optimizer.param_groups, lows, highs, strict=True):
            _set_momentum(group, high, self.use_beta1)
            group["max_momentum"], group["base_momentum"] = high, low


class CyclicLR(_MomentumLR):
    """The rate goes up from `base_lr` to `max_lr` in `step_size_up` steps and down again, over and over.

    The height of a cycle shrinks as `mode` says, or by `scale_fn` of the cycle or of the step (`scale_mode`).
    """

    def __init__(
        self, optimizer: Optimizer, base_lr: Any, max_lr: Any, step_size_up: int = 2000,
        step_size_down: int | None = None, mode: str = "triangular", gamma: float = 1.0, scale_fn: Callable[[float],
        float] | None = None, scale_mode: str = "cycle", cycle_momentum: bool = True, base_momentum: Any = 0.8,
        max_momentum: Any = 0.9, last_epoch: int = -1,
    ):  # fmt: skip
        check_optimizer(optimizer)
        self.optimizer = optimizer
        base_lrs = for_each_group("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for group, lr in zip(optimizer.param_groups, base_lrs, strict=True):
                set_rate(group, lr)
        self.max_lrs = for_each_group("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        self.total_size = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio = up / self.total_size
        if mode not in SHAPES and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else SHAPES[mode][1]
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = _uses_betas(optimizer)
            self.base_momentums = for_each_group("base_momentum", optimizer, base_momentum)
            self.max_momentums = for_each_group("max_momentum", optimizer, max_momentum)
            if last_epoch == -1:
                self._start_momentum(self.base_momentums, self.max_momentums)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """The factor of the height in cycle `x`, or at step `x`."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        return SHAPES[self.mode][0](self.gamma, x)

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        place = 1.0 + self.last_epoch / self.total_size - cycle
        rising = place <= self.step_ratio
        part = place / self.step_ratio if rising else (place - 1) / (self.step_ratio - 1)
        factor = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            bounds = zip(self.optimizer.param_groups, self.base_momentums, self.max_momentums, strict=True)
            for group, low, high in bounds:
                _set_momentum(group, high - (high - low) * part * factor, self.use_beta1)
        return [low + (high - low) * part * factor for low, high in zip(self.base_lrs, self.max_lrs, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer; of a `scale_fn` that is an object its attributes, of a function None."""
        state = super().state_dict()
        custom = state.pop("_scale_fn_custom")
        plain = custom is None or isinstance(custom, types.FunctionType)
        return {**state, "_scale_fn_custom": None if plain else dict(custom.__dict__)}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` returned; `scale_fn` stays, the attributes of an object are set."""
        attributes = state_dict["_scale_fn_custom"]
        if attributes is not None and self._scale_fn_custom is not None:
            self._scale_fn_custom.__dict__.update(attributes)
        super().load_state_dict({name: value for name, value in state_dict.items() if name != "_scale_fn_custom"})


class OneCycleLR(_MomentumLR):
    """Up from max_lr / div_factor to `max_lr` in `pct_start` of the steps, then down to a `final_div_factor`th of it.

    With `three_phase`, first as far down as it went up. `step` is called after each batch, `total_steps` times.
    """

    def __init__(
        self, optimizer: Optimizer, max_lr: Any, total_steps: int | None = None, epochs: int | None = None,
        steps_per_epoch: int | None = None, pct_start: float = 0.3, anneal_strategy: str = "cos",
        cycle_momentum: bool = True, base_momentum: Any = 0.85, max_momentum: Any = 0.95, div_factor: float = 25.0,
        final_div_factor: float = 1e4, three_phase: bool = False, last_epoch: int = -1,
    ):  # fmt: skip
        check_optimizer(optimizer)
        self.optimizer = optimizer
        self.total_steps = _total(total_steps, epochs, steps_per_epoch)
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ANNEALING:
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._schedule_phases = _phases(self.total_steps, pct_start, three_phase)
        self._anneal_func_type = anneal_strategy
        if last_epoch == -1:
            for group, high in zip(optimizer.param_groups, for_each_group("max_lr", optimizer, max_lr), strict=True):
                group["initial_lr"] = high / div_factor
                group["max_lr"] = high
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = _uses_betas(optimizer)
            highs = for_each_group("max_momentum", optimizer, max_momentum)
            lows = for_each_group("base_momentum", optimizer, base_momentum)
            if last_epoch == -1:
                self._start_momentum(lows, highs)
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_outside_step()
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"Tried to step {step} times. The specified number of total steps is {self.total_steps}")
        start = 0.0
        phase = self._schedule_phases[-1]
        for each in self._schedule_phases[:-1]:
            if step <= each["end_step"]:
                phase = each
                break
            start = each["end_step"]
        part = (step - start) / (phase["end_step"] - start)
        anneal, groups = ANNEALING[self._anneal_func_type], self.optimizer.param_groups
        if self.cycle_momentum:
            for group in groups:
                value = anneal(group[phase["start_momentum"]], group[phase["end_momentum"]], part)
                _set_momentum(group, value, self.use_beta1)
        return [anneal(group[phase["start_lr"]], group[phase["end_lr"]], part) for group in groups]


def _total(steps: Any, epochs: Any, steps_per_epoch: Any) -> int:
    if steps is None and (epochs is None or steps_per_epoch is None):
        raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    given = {"epochs": epochs, "steps_per_epoch": steps_per_epoch} if steps is None else {"total_steps": steps}
    total = 1
    for name, value in given.items():
        if not isinstance(value, int) or value <= 0:
            raise ValueError(f"Expected positive integer {name}, but got {value}")
        total *= value
    return total


def _phases(total: int, part: float, three: bool) -> list[dict[str, Any]]:
    """The phases of the cycle: the step at which each ends, and the names of the settings that it goes between."""
    rows: list[tuple[float, str, str, str, str]] = [
        (float(part * total) - 1, "initial_lr", "max_lr", "max_momentum", "base_momentum")
    ]
    if three:
        rows.append((float(2 * part * total) - 2, "max_lr", "initial_lr", "base_momentum", "max_momentum"))
        rows.append((total - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum"))
    else:
        rows.append((total - 1, "max_lr", "min_lr", "base_momentum", "max_momentum"))
    names = ("end_step", "start_lr", "end_lr", "start_momentum", "end_momentum")
    return [dict(zip(names, row, strict=True)) for row in rows]
