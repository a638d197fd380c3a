"""Adamax."""

from __future__ import annotations

from typing import Any

from eager.core.tensor import Tensor
from eager.engine.inplace import assign
from eager.engine.language import E
from eager.optim.adam import negative_bias
from eager.optim.optimizer import Group, Optimizer, ParamsT
from eager.optim.state import counter, like, wide
from eager.optim.updates import approach, decayed, kept, learning_rate


class Adamax(Optimizer):
    """Kingma and Ba (2015), section 7: Adam with the infinity norm. As `torch.optim.Adamax`."""

    _settings = "lr betas eps weight_decay foreach maximize differentiable capturable"
    _checks = "lr eps betas weight_decay"

    def __init__(
        self, params: ParamsT, lr: float | Tensor = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, foreach: bool | None = None, *, maximize: bool = False, differentiable: bool = False,
        capturable: bool = False,
    ):  # fmt: skip
        self._begin(locals())

    def _update_one(self, parameter: Any, grad: Tensor, group: Group, remembered: dict[str, Any]) -> None:
        if not remembered:
            remembered.update(step=counter(), exp_avg=like(parameter), exp_inf=like(parameter))
        step, average, largest = remembered["step"], remembered["exp_avg"], remembered["exp_inf"]
        beta1, beta2 = group["betas"]
        step.add_(1)
        grad = decayed(grad, parameter, group)
        approach(average, grad, 1 - beta1)
        assign(largest, E.maximum(E.mul(largest, beta2), E.add(E.abs(grad), group["eps"])), "maximum")
        rate = E.div(learning_rate(group), negative_bias(wide(step), beta1))
        parameter.add_(E.mul(E.div(kept(average, group), kept(largest, group)), rate))
