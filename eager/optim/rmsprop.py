"""RMSprop."""

from __future__ import annotations

from typing import Any

from eager.core.tensor import Tensor
from eager.engine.language import E
from eager.optim.optimizer import Group, Optimizer, ParamsT
from eager.optim.state import counter, like
from eager.optim.updates import approach, average_squares, decayed, kept, learning_rate


class RMSprop(Optimizer):
    """Tieleman and Hinton (2012), with momentum; `centered` as Graves (2013). As `torch.optim.RMSprop`."""

    _settings = "lr momentum alpha eps centered weight_decay capturable foreach maximize differentiable"
    _checks = "lr eps momentum weight_decay alpha"

    def __init__(
        self, params: ParamsT, lr: float | Tensor = 1e-2,
        alpha: float = 0.99, eps: float = 1e-8, weight_decay: float = 0,
        momentum: float = 0, centered: bool = False, capturable: bool = False, foreach: bool | None = None,
        maximize: bool = False, differentiable: bool = False,
    ):  # fmt: skip
        self._begin(locals())

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
        average_squares(square, grad, alpha)
        variance = kept(square, group)
        if centered:
            mean = remembered["grad_avg"]
            approach(mean, grad, 1 - alpha)
            mean = kept(mean, group)
            variance = E.sub(variance, E.mul(mean, mean))
        change = E.div(grad, E.add(E.sqrt(variance), group["eps"]))
        if momentum > 0:
            buffer = remembered["momentum_buffer"]
            buffer.mul_(momentum)
            change = buffer.add_(change)
        parameter.add_(E.mul(change, -learning_rate(group)))
