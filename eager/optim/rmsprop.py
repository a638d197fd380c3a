"""RMSprop."""

from __future__ import annotations

from typing import Any

from eager.core.tensor import Tensor
from eager.engine.language import E
from eager.optim.optimizer import (
    Group,
    Optimizer,
    check_rate,
    check_setting,
    counter,
    decayed,
    kept,
    learning_rate,
    like,
)


class RMSprop(Optimizer):
    """Tieleman and Hinton (2012), with momentum; `centered` as Graves (2013). As `torch.optim.RMSprop`."""

    def __init__(
        self,
        params: Any,
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ):
        check_rate(lr)
        check_setting("epsilon value", eps, eps >= 0.0)
        check_setting("momentum value", momentum, momentum >= 0.0)
        check_setting("weight_decay value", weight_decay, weight_decay >= 0.0)
        check_setting("alpha value", alpha, alpha >= 0.0)
        defaults = {
            "lr": lr, "momentum": momentum, "alpha": alpha, "eps": eps, "centered": centered,
            "weight_decay": weight_decay, "capturable": capturable, "foreach": foreach, "maximize": maximize,
            "differentiable": differentiable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _update_one(self, parameter: Any, grad: Tensor, group: Group, remembered: dict[str, Any]) -> None:
        alpha, momentum, centered = group["alpha"], group["momentum"], group["centered"]
        if not remembered:
            remembered.update(step=counter(), square_avg=like(parameter))
            if momentum > 0:
                remembered["momentum_buffer"] = like(parameter)
            if centered:
                remembered["grad_avg"] = like(parameter)
        square = remembered["square_avg"]
        remembered["step"].add_(1)
        grad = decayed(grad, parameter, group)
        square.mul_(alpha)
        square.add_(E.mul(E.mul(grad, grad), 1 - alpha))
        variance = kept(square, group)
        if centered:
            mean = remembered["grad_avg"]
            mean.add_(E.mul(E.sub(grad, mean), 1 - alpha))
            mean = kept(mean, group)
            variance = E.sub(variance, E.mul(mean, mean))
        change = E.div(grad, E.add(E.sqrt(variance), group["eps"]))
        if momentum > 0:
            buffer = remembered["momentum_buffer"]
            buffer.mul_(momentum)
            change = buffer.add_(change)
        parameter.add_(E.mul(change, -learning_rate(group)))
