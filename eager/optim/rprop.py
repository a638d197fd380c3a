"""Resilient backpropagation."""

from __future__ import annotations

from typing import Any

from eager.core.tensor import Tensor
from eager.engine.inplace import assign
from eager.engine.language import E
from eager.functional.arithmetic import clamp
from eager.optim.optimizer import Group, Optimizer, ParamsT
from eager.optim.state import counter, like
from eager.optim.updates import kept


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
