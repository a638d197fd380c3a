"""Muon."""

from __future__ import annotations

import math
from typing import Any

from eager.core.dtypes import bfloat16
from eager.core.tensor import Tensor
from eager.engine.language import E
from eager.optim.checks import one_element, should_be
from eager.optim.optimizer import Group, Optimizer, ParamsT
from eager.optim.state import like
from eager.optim.updates import approach, learning_rate

_ADJUSTMENTS = ("original", "match_rms_adamw")


class Muon(Optimizer):
    """Jordan et al. (2024): steps by the orthogonal factor of a matrix's momentum. As `torch.optim.Muon`.

    The factor is the result of `ns_steps` Newton-Schulz iterations in bfloat16. For matrices only.
    """

    _settings = "lr weight_decay momentum nesterov ns_coefficients eps ns_steps adjust_lr_fn"

    def __init__(
        self, params: ParamsT, lr: float = 1e-3,
        weight_decay: float = 0.1, momentum: float = 0.95, nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315), eps: float = 1e-7, ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ):  # fmt: skip
        one_element(lr)
        should_be("Learning rate", ">= 0", lr, lr >= 0.0)
        should_be("momentum", ">= 0", momentum, momentum >= 0.0)
        should_be("weight decay", ">= 0", weight_decay, weight_decay >= 0.0)
        if adjust_lr_fn is not None and adjust_lr_fn not in _ADJUSTMENTS:
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        self._begin(locals())
        for group in self.param_groups:
            for parameter in group["params"]:
                if len(parameter._d.shape) != 2:
                    raise ValueError(
                        f"Muon only supports 2D parameters whereas we found a parameter with size: {parameter.size()}"
                    )

    def _update_one(self, parameter: Any, grad: Tensor, group: Group, remembered: dict[str, Any]) -> None:
        if not remembered:
            remembered["momentum_buffer"] = like(parameter)
        buffer, momentum, lr = remembered["momentum_buffer"], group["momentum"], learning_rate(group)
        approach(buffer, grad, 1 - momentum)
        update = E.add(grad, E.mul(E.sub(buffer, grad), momentum)) if group["nesterov"] else buffer
        update = orthogonal(update, group["ns_coefficients"], group["ns_steps"], group["eps"])
        parameter.mul_(1 - lr * group["weight_decay"])
        rows, columns = parameter._d.shape
        if group["adjust_lr_fn"] == "match_rms_adamw":
            factor = 0.2 * math.sqrt(max(rows, columns))
        else:
            factor = math.sqrt(max(1, rows / columns))
        parameter.sub_(E.mul(E.cast(update, dtype=parameter._dtype()), lr * factor))


def orthogonal(matrix: Tensor, coefficients: tuple[float, float, float], steps: int, eps: float) -> Tensor:
    """About U V^T of the singular value decomposition U S V^T of `matrix`, in bfloat16: singular values near 1."""
    a, b, c = coefficients
    rows, columns = matrix._d.shape
    x = E.cast(matrix, dtype=bfloat16.numpy)
    x = E.permute(x, dims=(1, 0)) if rows > columns else x
    x = x / x.norm().clamp(min=eps)  # type: ignore[attr-defined]
    for _ in range(steps):
        gram = x @ x.T  # type: ignore[attr-defined]
        x = (a * x).addmm(gram.mul(b).addmm(gram, gram, alpha=c), x)
    return E.permute(x, dims=(1, 0)) if rows > columns else x
