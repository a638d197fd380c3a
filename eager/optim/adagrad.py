"""Adagrad."""

from __future__ import annotations

from typing import Any

from eager.core.sparse import is_sparse
from eager.core.tensor import Tensor
from eager.engine.language import E
from eager.optim.optimizer import Group, Optimizer, ParamsT
from eager.optim.state import counter, like, wide
from eager.optim.updates import decayed, kept, learning_rate
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
        for group in self.param_groups:
            for parameter in group["params"]:
                self._begin_state(parameter, self.state[parameter])

    def _begin_state(self, parameter: Any, remembered: dict[str, Any]) -> None:
        start: Any = self.defaults["initial_accumulator_value"]
        if parameter._dtype().kind == "c":  # which is optimized as two real numbers
            start = complex(start, start)
        remembered.update(step=counter(), sum=like(parameter, start))

    def _update_one(self, parameter: Any, grad: Tensor, group: Group, remembered: dict[str, Any]) -> None:
        if not remembered:
            self._begin_state(parameter, remembered)
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
