"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any

from eager.core.interpreter import current_interpreter
from eager.core.sparse import is_sparse
from eager.core.tensor import Tensor
from eager.engine.inplace import assign
from eager.engine.language import E
from eager.optim.optimizer import Group, Optimizer, ParamsT
from eager.optim.state import like
from eager.optim.updates import learning_rate
from graphc.errors import SPARSE_MOMENTUM, CaptureError


class SGD(Optimizer):
    """p -= lr * g, with momentum, Nesterov's variant, dampening and weight decay. As `torch.optim.SGD`."""

    _settings = "lr momentum dampening weight_decay nesterov maximize foreach differentiable fused"
    _checks = "lr momentum weight_decay"
    _takes_sparse = _foreach_records = True

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
