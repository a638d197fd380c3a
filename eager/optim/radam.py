"""RAdam."""

from __future__ import annotations

from typing import Any

from eager.core.tensor import Tensor
from eager.engine.language import E
from eager.functional.arithmetic import clamp_min
from eager.optim.adam import negative_bias
from eager.optim.optimizer import Group, Optimizer, ParamsT
from eager.optim.state import counter, like, wide
from eager.optim.updates import approach, average_squares, decayed, kept, learning_rate

ENOUGH = 5.0  # length of the moving average from which its variance is known well enough


class RAdam(Optimizer):
    """Liu et al. (2020): Adam whose first steps are plain momentum, then rectified. As `torch.optim.RAdam`."""

    _settings = "lr betas eps weight_decay maximize foreach capturable decoupled_weight_decay differentiable"
    _checks = "lr eps betas weight_decay"

    def __init__(
        self, params: ParamsT, lr: float | Tensor = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, decoupled_weight_decay: bool = False, *, foreach: bool | None = None,
        maximize: bool = False, capturable: bool = False, differentiable: bool = False,
    ):  # fmt: skip
        self._begin(locals())

    def _update_one(self, parameter: Any, grad: Tensor, group: Group, remembered: dict[str, Any]) -> None:
        if not remembered:
            remembered.update(step=counter(), exp_avg=like(parameter), exp_avg_sq=like(parameter))
        step, average, square = remembered["step"], remembered["exp_avg"], remembered["exp_avg_sq"]
        lr, (beta1, beta2) = learning_rate(group), group["betas"]
        step.add_(1)
        steps = wide(step)
        grad = decayed(grad, parameter, group, lr)
        approach(average, grad, 1 - beta1)
        average_squares(square, grad, beta2)
        bias = E.neg(negative_bias(steps, beta2))
        length, rectifier = _rectifier(steps, bias, beta2)
        adapted = E.div(E.mul(E.sqrt(bias), rectifier), E.add(E.sqrt(kept(square, group)), group["eps"]))
        factor = E.where(E.gt(length, ENOUGH), adapted, 1.0)
        rate = E.div(lr, negative_bias(steps, beta1))
        parameter.add_(E.mul(E.mul(kept(average, group), rate), factor))


def _rectifier(steps: Tensor, bias: Tensor, beta: float) -> tuple[Tensor, Tensor]:
    """The length of the moving average after `steps`, and the correction of the rate for the variance it leaves."""
    limit = 2 / (1 - beta) - 1
    length = E.sub(limit, E.div(E.mul(E.mul(steps, 2), E.sub(1, bias)), bias))
    # where the length is too short for a correction, that of a long enough one is computed, and not used
    safe = clamp_min(length, ENOUGH)
    squared = E.div(E.mul(E.sub(safe, 4), E.sub(safe, 2)), safe)
    return length, E.sqrt(E.mul(squared, limit / ((limit - 4) * (limit - 2))))
