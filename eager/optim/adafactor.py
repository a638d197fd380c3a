"""Adafactor."""

from __future__ import annotations

from typing import Any

from eager.core.tensor import Tensor
from eager.engine.language import E
from eager.functional.arithmetic import clamp_max, clamp_min
from eager.optim.checks import one_element, should_be
from eager.optim.optimizer import Group, Optimizer, ParamsT
from eager.optim.state import counter, like
from eager.optim.updates import learning_rate
from graphc.ops.dtypes import FLOAT64, finfo


class Adafactor(Optimizer):
    """Shazeer and Stern (2018): second moments of matrices by means of rows and columns. As `torch.optim.Adafactor`."""

    _settings = "lr beta2_decay eps d weight_decay foreach maximize"

    def __init__(
        self, params: ParamsT, lr: float | Tensor = 1e-2, beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3), d: float = 1.0, weight_decay: float = 0.0, *,
        foreach: bool | None = None, maximize: bool = False,
    ):  # fmt: skip
        one_element(lr)
        should_be("Learning rate", ">= 0", lr, (lr.item() if isinstance(lr, Tensor) else lr) >= 0.0)
        should_be("beta2_decay", "<= 0", beta2_decay, beta2_decay <= 0.0)
        should_be("epsilon1", ">= 0", eps[0], eps[0] is None or eps[0] >= 0.0)
        should_be("epsilon2", ">= 0", eps[1], eps[1] >= 0.0)
        should_be("Clipping threshold d", ">= 1", d, d >= 1.0)
        should_be("weight_decay", ">= 0", weight_decay, weight_decay >= 0.0)
        self._begin(locals())

    def _update(self, group: Group) -> None:
        if any(p.grad is not None and p._dtype().kind == "c" for p in group["params"]):
            raise RuntimeError("Adafactor does not support complex parameters")
        super()._update(group)

    def _update_one(self, parameter: Any, grad: Tensor, group: Group, remembered: dict[str, Any]) -> None:
        shape, dtype = tuple(grad._d.shape), parameter._dtype()
        if not remembered:
            remembered["step"] = counter()
            if len(shape) > 1:
                remembered["row_var"] = like(parameter, shape=(*shape[:-1], 1))
                remembered["col_var"] = like(parameter, shape=(*shape[:-2], 1, shape[-1]))
            else:
                remembered["variance"] = like(parameter)
        least = finfo(dtype).eps if group["eps"][0] is None else group["eps"][0]
        lr, decay = learning_rate(group), group["weight_decay"]
        remembered["step"].add_(1)
        steps = E.cast(remembered["step"], dtype=FLOAT64)
        share = E.pow(steps, group["beta2_decay"])  # of what is new: 1 - beta2
        rate = E.mul(clamp_min(_size(parameter), group["eps"][1]), clamp_max(E.rsqrt(steps), lr))
        if decay != 0:
            parameter.mul_(1 - lr * decay)
        squares = E.mul(grad, grad)
        if len(shape) > 1:
            rows, columns = remembered["row_var"], remembered["col_var"]
            _approach(rows, E.mean(squares, axis=(len(shape) - 1,), keepdims=True), share)
            _approach(columns, E.mean(squares, axis=(len(shape) - 2,), keepdims=True), share)
            means = clamp_min(E.mean(rows, axis=(len(shape) - 2,), keepdims=True), float(least))
            estimate = E.div(E.matmul(rows, columns), means)
        else:
            _approach(remembered["variance"], squares, share)
            estimate = remembered["variance"]
        update = E.mul(E.rsqrt(clamp_min(estimate, float(least) ** 2)), grad)
        clipped = clamp_min(E.div(_size(update), group["d"]), 1.0)
        parameter.sub_(E.mul(update, E.cast(E.div(rate, clipped), dtype=dtype)))


def _size(x: Tensor) -> Tensor:
    """The root mean square of the elements, in float64."""
    total = E.cast(E.sum(E.mul(x, x), axis=tuple(range(len(x._d.shape))), keepdims=False), dtype=FLOAT64)
    return E.sqrt(E.div(total, max(x.numel(), 1)))


def _approach(average: Tensor, value: Tensor, share: Tensor) -> None:
    """Move `average` by a share of the way to `value`."""
    average.add_(E.mul(E.sub(value, average), E.cast(share, dtype=average._dtype())))
