"""Adam and its variants."""

from __future__ import annotations

import math
from typing import Any

from eager.core.sparse import is_sparse
from eager.core.tensor import Tensor
from eager.engine.inplace import assign
from eager.engine.language import E
from eager.functional.arithmetic import clamp_min
from eager.optim.optimizer import Group, Optimizer, ParamsT
from eager.optim.state import counter, like, wide, zeros
from eager.optim.updates import approach, average_squares, decayed, kept, learning_rate
from eager.sparse.rows import at, put, totals
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


class SparseAdam(Optimizer):
    """Adam of which each step updates only the elements, and their moments, that the gradient has.

    As `torch.optim.SparseAdam`. Raises ValueError for sparse parameters, RuntimeError for a dense gradient.
    """

    _settings = "lr betas eps maximize"
    _takes_sparse = True

    def __init__(
        self, params: ParamsT, lr: float | Tensor = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        maximize: bool = False,
    ):  # fmt: skip
        if not lr > 0.0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not eps > 0.0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        for k, beta in enumerate(betas):
            if not 0.0 <= beta < 1.0:
                raise ValueError(f"Invalid beta parameter at index {k}: {beta}")
        self._begin(locals())
        wrong = [
            [i, j] for i, group in enumerate(self.param_groups) for j, p in enumerate(group["params"]) if is_sparse(p)
        ]
        if wrong:
            raise ValueError(f"Sparse params at indices {wrong}: SparseAdam requires dense parameter tensors")

    def _update_one(self, parameter: Any, grad: Tensor, group: Group, remembered: dict[str, Any]) -> None:
        if not is_sparse(grad):
            raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
        if not remembered:
            remembered.update(step=counter(), exp_avg=like(parameter), exp_avg_sq=like(parameter))
        beta1, beta2 = group["betas"]
        step, mean, square = remembered["step"], remembered["exp_avg"], remembered["exp_avg_sq"]
        step.add_(1)
        places, values = totals(grad)
        for moment, beta, news in ((mean, beta1, values), (square, beta2, E.mul(values, values))):
            old = at(moment, places)
            put(moment, places, E.add(old, E.mul(E.sub(news, old), 1 - beta)))
        known = wide(step)
        corrections = [E.sub(1.0, E.pow(beta, known)) for beta in (beta1, beta2)]
        rate = E.mul(E.div(E.sqrt(corrections[1]), corrections[0]), learning_rate(group))
        change = E.div(at(mean, places), E.add(E.sqrt(at(square, places)), group["eps"]))
        put(parameter, places, E.sub(at(parameter, places), E.mul(change, E.cast(rate, dtype=change._dtype()))))
