"""Optimizers whose rates follow the sizes of past gradients."""

from __future__ import annotations

from typing import Any

from eager.core.sparse import is_sparse
from eager.core.tensor import Tensor
from eager.engine.language import E
from eager.optim.optimizer import Group, Optimizer, ParamsT
from eager.optim.state import counter, like, wide
from eager.optim.updates import approach, average_squares, decayed, kept, learning_rate
from eager.sparse.rows import at, put, totals


class Adagrad(Optimizer):
    """Duchi, Hazan and Singer (2011): rates fall with the sum of squared gradients. As `torch.optim.Adagrad`."""

    _settings = "lr lr_decay eps weight_decay initial_accumulator_value foreach maximize differentiable fused"
    _checks = "lr lr_decay weight_decay initial_accumulator_value eps"
    _takes_sparse = True

    def __init__(
        self, params: ParamsT, lr: float | Tensor = 1e-2, lr_decay: float = 0, weight_decay: float = 0,
        initial_accumulator_value: float = 0, eps: float = 1e-10, foreach: bool | None = None, *,
        maximize: bool = False, differentiable: bool = False, fused: bool | None = None,
    ):  # fmt: skip
        self._begin(locals())

    def _update_one(self, parameter: Any, grad: Tensor, group: Group, remembered: dict[str, Any]) -> None:
        if not remembered:
            start = self.defaults["initial_accumulator_value"]
            remembered.update(step=counter(), sum=like(parameter, start))
        step, squares = remembered["step"], remembered["sum"]
        step.add_(1)
        if is_sparse(grad) and group["weight_decay"] != 0:
            raise RuntimeError("weight_decay option is not compatible with sparse gradients")
        grad = decayed(grad, parameter, group)
        rate: Any = -learning_rate(group)
        if group["lr_decay"] != 0:
            rate = E.div(rate, E.add(E.mul(E.sub(wide(step), 1), group["lr_decay"]), 1))
        if is_sparse(grad):
            places, values = totals(grad)
            put(squares, places, E.add(at(squares, places), E.mul(values, values)))
            scale = E.add(E.sqrt(at(squares, places)), group["eps"])
            put(parameter, places, E.add(at(parameter, places), E.mul(E.div(values, scale), rate)))
            return
        squares.add_(E.mul(grad, grad))
        scale = E.add(E.sqrt(kept(squares, group)), group["eps"])
        parameter.add_(E.mul(E.div(grad, scale), rate))


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
