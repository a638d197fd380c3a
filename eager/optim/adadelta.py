"""Adadelta."""

from __future__ import annotations

from typing import Any

from eager.core.tensor import Tensor
from eager.engine.language import E
from eager.optim.optimizer import Group, Optimizer, ParamsT
from eager.optim.state import counter, like
from eager.optim.updates import average_squares, decayed, kept, learning_rate


class Adadelta(Optimizer):
    """Zeiler (2012): steps in proportion to the running size of past steps. As `torch.optim.Adadelta`."""

    _settings = "lr rho eps weight_decay maximize capturable foreach differentiable"
    _checks = "lr rho eps weight_decay"

    def __init__(
        self, params: ParamsT, lr: float | Tensor = 1.0, rho: float = 0.9, eps: float = 1e-6, weight_decay: float = 0,
        foreach: bool | None = None, *, capturable: bool = False, maximize: bool = False, differentiable: bool = False,
    ):  # fmt: skip
        self._begin(locals())

    def _update_one(self, parameter: Any, grad: Tensor, group: Group, remembered: dict[str, Any]) -> None:
        if not remembered:
            remembered.update(step=counter(), square_avg=like(parameter), acc_delta=like(parameter))
        square, steps = remembered["square_avg"], remembered["acc_delta"]
        rho, eps = group["rho"], group["eps"]
        remembered["step"].add_(1)
        grad = decayed(grad, parameter, group)
        average_squares(square, grad, rho)
        ratio = E.div(E.sqrt(E.add(kept(steps, group), eps)), E.sqrt(E.add(kept(square, group), eps)))
        delta = E.mul(ratio, grad)
        average_squares(steps, delta, rho)
        parameter.add_(E.mul(delta, -learning_rate(group)))
