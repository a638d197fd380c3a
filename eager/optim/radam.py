"""RAdam."""

from __future__ import annotations

from typing import Any

from eager.core.tensor import Tensor
from eager.engine.language import E
from eager.functional.arithmetic import clamp_min
from eager.optim.adam import negative_bias
from eager.optim.optimizer import (
    Group,
    Optimizer,
    check_betas,
    check_rate,
    check_setting,
    counter,
    decayed,
    kept,
    learning_rate,
    like,
    wide,
)

ENOUGH = 5.0  # length of the moving average from which its variance is known well enough


class RAdam(Optimizer):
    """Liu et al. (2020): Adam whose first steps are plain momentum, then rectified. As `torch.optim.RAdam`."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ):
        check_rate(lr)
        check_setting("epsilon value", eps, eps >= 0.0)
        check_betas(betas)
        check_setting("weight_decay value", weight_decay, weight_decay >= 0.0)
        defaults = {
            "lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
            "foreach": foreach, "capturable": capturable, "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _update_one(self, parameter: Any, grad: Tensor, group: Group, remembered: dict[str, Any]) -> None:
        if not remembered:
            remembered.update(step=counter(), exp_avg=like(parameter), exp_avg_sq=like(parameter))
        step, average, square = remembered["step"], remembered["exp_avg"], remembered["exp_avg_sq"]
        lr, (beta1, beta2) = learning_rate(group), group["betas"]
        step.add_(1)
        steps = wide(step)
        if not group["decoupled_weight_decay"]:
            grad = decayed(grad, parameter, group)
        elif group["weight_decay"] != 0:
            parameter.mul_(1 - lr * group["weight_decay"])
        average.add_(E.mul(E.sub(grad, average), 1 - beta1))
        square.mul_(beta2)
        square.add_(E.mul(E.mul(grad, grad), 1 - beta2))
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
