"""Adadelta."""

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


class Adadelta(Optimizer):
    """Zeiler (2012): steps in proportion to the running size of past steps. As `torch.optim.Adadelta`."""

    def __init__(
        self,
        params: Any,
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ):
        check_rate(lr)
        check_setting("rho value", rho, 0.0 <= rho <= 1.0)
        check_setting("epsilon value", eps, eps >= 0.0)
        check_setting("weight_decay value", weight_decay, weight_decay >= 0.0)
        defaults = {
            "lr": lr, "rho": rho, "eps": eps, "weight_decay": weight_decay, "maximize": maximize,
            "capturable": capturable, "foreach": foreach, "differentiable": differentiable,
        }  # fmt: skip
        super().__init__(params, defaults)

    def _update_one(self, parameter: Any, grad: Tensor, group: Group, remembered: dict[str, Any]) -> None:
        if not remembered:
            remembered.update(step=counter(), square_avg=like(parameter), acc_delta=like(parameter))
        square, steps = remembered["square_avg"], remembered["acc_delta"]
        rho, eps = group["rho"], group["eps"]
        remembered["step"].add_(1)
        grad = decayed(grad, parameter, group)
        square.mul_(rho)
        square.add_(E.mul(E.mul(grad, grad), 1 - rho))
        ratio = E.div(E.sqrt(E.add(kept(steps, group), eps)), E.sqrt(E.add(kept(square, group), eps)))
        delta = E.mul(ratio, grad)
        steps.mul_(rho)
        steps.add_(E.mul(E.mul(delta, delta), 1 - rho))
        parameter.add_(E.mul(delta, -learning_rate(group)))
