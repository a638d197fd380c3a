"""Adam and AdamW."""

from __future__ import annotations

import math
from typing import Any

from eager.core.tensor import Tensor
from eager.engine.inplace import assign
from eager.engine.language import E
from eager.optim.optimizer import Group, Optimizer, ParamsT
from eager.optim.state import counter, like, zeros
from eager.optim.updates import approach, average_squares, decayed, kept, learning_rate
from graphc.ops.dtypes import FLOAT32, FLOAT64


class Adam(Optimizer):
    """Kingma and Ba (2015), with weight decay added to the gradient. As `torch.optim.Adam`."""

    _settings = (
        "lr betas eps weight_decay amsgrad maximize foreach capturable differentiable fused decoupled_weight_decay"
    )
    _checks = "lr eps betas weight_decay"
    _sparse_remedy = ", please consider SparseAdam instead"

    def __init__(
        self, params: ParamsT, lr: float | Tensor = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0, amsgrad: bool = False, *, foreach: bool | None = None, maximize: bool = False,
        capturable: bool = False, differentiable: bool = False, fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ):  # fmt: skip
        self._begin(locals())

    def _checked(self, arguments: dict[str, Any]) -> dict[str, Any]:
        betas, refused = arguments["betas"], bool(arguments["foreach"]) and not arguments["capturable"]
        _check_tensors(arguments["lr"], betas, refused)
        return {**super()._checked(arguments), "betas": tuple(float(beta) for beta in betas)}

    def _update_one(self, parameter: Any, grad: Tensor, group: Group, remembered: dict[str, Any]) -> None:
        lr, (beta1, beta2) = learning_rate(group), group["betas"]
        if not remembered:
            remembered["step"] = zeros((), FLOAT32) if group["fused"] else counter()
            for name in ("exp_avg", "exp_avg_sq", *(("max_exp_avg_sq",) if group["amsgrad"] else ())):
                remembered[name] = like(parameter)
        step, average, square = remembered["step"], remembered["exp_avg"], remembered["exp_avg_sq"]
        step.add_(1)
        grad = decayed(grad, parameter, group, lr)
        approach(average, grad, 1 - beta1)
        average_squares(square, grad, beta2)
        if group["amsgrad"]:
            largest = remembered["max_exp_avg_sq"]
            assign(largest, E.maximum(kept(largest, group), square), "maximum")
            square = largest
        steps = E.cast(step, dtype=FLOAT64) if parameter._dtype() == FLOAT64 else step
        debias1, debias2 = negative_bias(steps, beta1), negative_bias(steps, beta2)
        denominator = E.add(E.div(E.sqrt(square), E.sqrt(E.neg(debias2))), group["eps"])
        parameter.add_(E.mul(E.div(kept(average, group), denominator), lr / debias1))


def negative_bias(steps: Tensor, beta: float) -> Any:
    """beta ** steps - 1, as a 0-d tensor of the dtype of `steps`, so that a step never waits for a Python number."""
    # expm1 keeps every digit where beta ** steps is close to 1, in float32 too
    if type(beta) is float:
        return E.expm1(E.mul(steps, math.log(beta) if beta else -math.inf))
    # a number that is traced, because a scheduler moves it, has no logarithm but as a tensor
    power = E.log(E.mul(E.full(shape=(), value=1, dtype=FLOAT64), beta))
    return E.expm1(E.mul(steps, E.cast(power, dtype=steps._dtype())))


def _check_tensors(lr: Any, betas: tuple[Any, Any], refused: bool) -> None:
    """Raise PyTorch's ValueError for settings that are tensors and `refused`, or have more than one element."""
    if isinstance(lr, Tensor) and refused:
        raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True")
    if isinstance(betas[0], Tensor) != isinstance(betas[1], Tensor):
        raise ValueError("betas must be either both floats or both Tensors")
    for i, beta in enumerate(betas):
        if isinstance(beta, Tensor) and refused:
            raise ValueError(f"betas[{i}] as a Tensor is not supported for capturable=False and foreach=True")
        if isinstance(beta, Tensor) and beta.numel() != 1:
            raise ValueError(f"Tensor betas[{i}] must be 1-element")


class AdamW(Adam):
    """Adam with decoupled weight decay: Loshchilov and Hutter (2019). As `torch.optim.AdamW`."""

    def __init__(
        self, params: ParamsT, lr: float | Tensor = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0.01, amsgrad: bool = False, *, maximize: bool = False, foreach: bool | None = None,
        capturable: bool = False, differentiable: bool = False, fused: bool | None = None,
    ):  # fmt: skip
        super().__init__(
            params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize, capturable=capturable,
            differentiable=differentiable, fused=fused, decoupled_weight_decay=True,
        )  # fmt: skip
