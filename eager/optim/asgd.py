"""Averaged stochastic gradient descent."""

from __future__ import annotations

from typing import Any

from eager.core.tensor import Tensor
from eager.engine.inplace import assign
from eager.engine.language import E
from eager.functional.arithmetic import clamp_min
from eager.optim.optimizer import Group, Optimizer, ParamsT
from eager.optim.state import counter, like, wide
from eager.optim.updates import decayed, kept, learning_rate


class ASGD(Optimizer):
    """Polyak and Juditsky (1992): descent with a falling rate, and the mean of the path. As `torch.optim.ASGD`.

    The mean is `state[parameter]["ax"]`; it begins at step `t0`.
    """

    _settings = "lr lambd alpha t0 weight_decay foreach maximize differentiable capturable"
    _checks = "lr weight_decay"

    def __init__(
        self, params: ParamsT, lr: float | Tensor = 1e-2, lambd: float = 1e-4, alpha: float = 0.75, t0: float = 1e6,
        weight_decay: float = 0, foreach: bool | None = None, maximize: bool = False, differentiable: bool = False,
        capturable: bool = False,
    ):  # fmt: skip
        self._begin(locals())

    def _update_one(self, parameter: Any, grad: Tensor, group: Group, remembered: dict[str, Any]) -> None:
        lr, lambd = learning_rate(group), group["lambd"]
        if not remembered:
            remembered.update(step=counter(), eta=counter(lr), mu=counter(1), ax=like(parameter))
        step, eta, mu, mean = (remembered[name] for name in ("step", "eta", "mu", "ax"))
        step.add_(1)
        grad = decayed(grad, parameter, group)
        rate, weight = wide(eta), wide(mu)
        parameter.mul_(E.sub(1, E.mul(rate, lambd)))
        parameter.add_(E.mul(grad, E.neg(rate)))
        here = kept(parameter, group)
        moved = E.add(mean, E.mul(E.sub(here, mean), weight))
        assign(mean, E.where(E.eq(weight, 1), here, moved), "copy")
        steps = wide(step)
        assign(eta, E.div(lr, E.pow(E.add(E.mul(steps, lambd * lr), 1), group["alpha"])), "copy")
        assign(mu, E.div(1, clamp_min(E.sub(steps, group["t0"]), 1)), "copy")
