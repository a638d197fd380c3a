"""NAdam."""

from __future__ import annotations

import math
from typing import Any

from eager.core.tensor import Tensor
from eager.engine.language import E
from eager.optim.adam import negative_bias
from eager.optim.optimizer import Group, Optimizer, ParamsT
from eager.optim.state import counter, like, wide
from eager.optim.updates import approach, average_squares, decayed, kept, learning_rate

WARM_UP = 0.96  # Dozat's schedule of the momentum: beta1 * (1 - 0.96 ** (step * momentum_decay) / 2)


class NAdam(Optimizer):
    """Dozat (2016): Adam with Nesterov's momentum. As `torch.optim.NAdam`."""

    _settings = (
        "lr betas eps weight_decay momentum_decay decoupled_weight_decay maximize foreach capturable differentiable"
    )
    _checks = "lr eps betas weight_decay momentum_decay"

    def __init__(
        self, params: ParamsT, lr: float | Tensor = 2e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, momentum_decay: float = 4e-3, decoupled_weight_decay: bool = False, *,
        foreach: bool | None = None, maximize: bool = False, capturable: bool = False, differentiable: bool = False,
    ):  # fmt: skip
        self._begin(locals())

    def _update_one(self, parameter: Any, grad: Tensor, group: Group, remembered: dict[str, Any]) -> None:
        if not remembered:
            remembered.update(
                step=counter(), mu_product=counter(1), exp_avg=like(parameter), exp_avg_sq=like(parameter)
            )
        step, product, average, square = (remembered[name] for name in ("step", "mu_product", "exp_avg", "exp_avg_sq"))
        lr, (beta1, beta2) = learning_rate(group), group["betas"]
        step.add_(1)
        steps = wide(step)
        grad = decayed(grad, parameter, group, lr)
        now, after = (_momentum(E.add(steps, i), beta1, group["momentum_decay"]) for i in (0, 1))
        product.mul_(E.cast(now, dtype=product._dtype()))
        approach(average, grad, 1 - beta1)
        average_squares(square, grad, beta2)
        unbiased = E.div(kept(square, group), E.neg(negative_bias(steps, beta2)))
        scale = E.add(E.sqrt(unbiased), group["eps"])
        until_now = wide(product)
        for direction, weight, decay in (
            (grad, E.sub(1, now), until_now),
            (kept(average, group), after, E.mul(until_now, after)),
        ):
            parameter.add_(E.mul(E.div(direction, scale), E.div(E.mul(weight, -lr), E.sub(1, decay))))


def _momentum(steps: Tensor, beta: float, decay: float) -> Tensor:
    return E.mul(E.sub(1, E.mul(E.exp(E.mul(steps, decay * math.log(WARM_UP))), 0.5)), beta)
