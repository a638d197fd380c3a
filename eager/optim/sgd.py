"""Stochastic gradient descent, its averaged form, and steps by signs."""

from __future__ import annotations

from typing import Any

from eager.core.interpreter import current_interpreter
from eager.core.sparse import is_sparse
from eager.core.tensor import Tensor
from eager.engine.inplace import assign
from eager.engine.language import E
from eager.functional.arithmetic import clamp, clamp_min
from eager.optim.optimizer import Group, Optimizer, ParamsT
from eager.optim.state import counter, like, wide
from eager.optim.updates import decayed, kept, learning_rate
from graphc.errors import SPARSE_MOMENTUM, CaptureError


class SGD(Optimizer):
    """p -= lr * g, with momentum, Nesterov's variant, dampening and weight decay. As `torch.optim.SGD`."""

    _settings = "lr momentum dampening weight_decay nesterov maximize foreach differentiable fused"
    _checks = "lr momentum weight_decay"
    _takes_sparse = True

    def __init__(
        self, params: ParamsT, lr: float | Tensor = 1e-3,
        momentum: float = 0, dampening: float = 0, weight_decay: float = 0,
        nesterov: bool = False, *, maximize: bool = False, foreach: bool | None = None, differentiable: bool = False,
        fused: bool | None = None,
    ):  # fmt: skip
        self._begin(locals())

    def _checked(self, arguments: dict[str, Any]) -> dict[str, Any]:
        super()._checked(arguments)
        if arguments["nesterov"] and (arguments["momentum"] <= 0 or arguments["dampening"] != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        return arguments

    def _update(self, group: Group) -> None:
        descent = -learning_rate(group)
        decay, momentum, maximize = group["weight_decay"], group["momentum"], group["maximize"]
        for parameter in group["params"]:
            grad = parameter.grad
            if grad is None:
                continue
            if maximize:
                grad = E.neg(grad)
            if decay != 0:
                grad = E.add(grad, E.mul(parameter, decay))
            if momentum != 0:
                grad = self._direction(parameter, grad, group)
            parameter.add_(E.mul(grad, descent))

    def _direction(self, parameter: Tensor, grad: Tensor, group: Group) -> Tensor:
        momentum = group["momentum"]
        remembered = self.state[parameter]
        if is_sparse(grad):
            return _sparse_direction(grad, group, remembered)
        buffer = remembered.get("momentum_buffer")
        if buffer is None and not group["dampening"]:
            # the sum of -0.0 and any number is that number: a compiled first step is the program of all steps
            buffer = remembered["momentum_buffer"] = like(parameter, -0.0)
        if buffer is None:
            # the first step takes another path than the rest
            what = "whether SGD has a momentum_buffer"
            self._guard(lambda: remembered.get("momentum_buffer") is not None, False, what)
            buffer = remembered["momentum_buffer"] = like(parameter)
            assign(buffer, grad, "copy")
        else:
            buffer.mul_(momentum)
            buffer.add_(E.mul(grad, 1 - group["dampening"]))
        return E.add(grad, E.mul(buffer, momentum)) if group["nesterov"] else buffer


def _sparse_direction(grad: Tensor, group: Group, remembered: dict[str, Any]) -> Tensor:
    """`SGD._direction` of a sparse gradient: the buffer is sparse, too, and has more elements with each step."""
    if current_interpreter().capturing:
        raise CaptureError(SPARSE_MOMENTUM)
    momentum, buffer = group["momentum"], remembered.get("momentum_buffer")
    if buffer is None:
        buffer = E.clone(grad)
    else:
        news = E.add(E.mul(buffer, momentum), E.mul(grad, 1 - group["dampening"]))
        buffer = news.coalesce()  # type: ignore[attr-defined]  # else it would grow with each step
    remembered["momentum_buffer"] = buffer
    return E.add(grad, E.mul(buffer, momentum)) if group["nesterov"] else buffer


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


class Rprop(Optimizer):
    """Riedmiller and Braun (1993): step sizes follow the signs of the gradient. As `torch.optim.Rprop`."""

    _settings = "lr etas step_sizes foreach maximize differentiable capturable"
    _checks = "lr etas"

    def __init__(
        self, params: ParamsT, lr: float | Tensor = 1e-2, etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50), *, capturable: bool = False, foreach: bool | None = None,
        maximize: bool = False, differentiable: bool = False,
    ):  # fmt: skip
        self._begin(locals())

    def _update_one(self, parameter: Any, grad: Tensor, group: Group, remembered: dict[str, Any]) -> None:
        if not remembered:
            remembered.update(step=counter(), prev=like(parameter), step_size=like(parameter, float(group["lr"])))
        before, size = remembered["prev"], remembered["step_size"]
        (shrink, grow), (least, most) = group["etas"], group["step_sizes"]
        remembered["step"].add_(1)
        turned = E.mul(grad, kept(before, group))
        last = kept(size, group)
        other = E.where(E.lt(turned, 0), E.mul(last, shrink), last)
        wanted = E.where(E.gt(turned, 0), E.mul(last, grow), other)
        assign(size, clamp(wanted, least, most), "mul")
        grad = E.where(E.lt(turned, 0), 0.0, grad)
        parameter.sub_(E.mul(E.sign(grad), kept(size, group)))
        assign(before, grad, "copy")
