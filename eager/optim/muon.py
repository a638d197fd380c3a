"""Muon."""

from __future__ import annotations

import math
from typing import Any

from eager.core.dtypes import bfloat16
from eager.core.tensor import Tensor
from eager.engine.language import E
from eager.optim.optimizer import Group, Optimizer, learning_rate, like

_ADJUSTMENTS = ("original", "match_rms_adamw")


class Muon(Optimizer):
    """Jordan et al. (2024): steps by the orthogonal factor of a matrix's momentum. As `torch.optim.Muon`.

    The factor is the result of `ns_steps` Newton-Schulz iterations in bfloat16. For matrices only.
    """

    def __init__(
        self,
        params: Any,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ):
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not lr >= 0.0:
            raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
        if not momentum >= 0.0:
            raise ValueError(f"momentum should be >= 0 but is: {momentum}")
        if not weight_decay >= 0.0:
            raise ValueError(f"weight decay should be >= 0 but is: {weight_decay}")
        if adjust_lr_fn is not None and adjust_lr_fn not in _ADJUSTMENTS:
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        defaults = {
            "lr": lr, "weight_decay": weight_decay, "momentum": momentum, "nesterov": nesterov,
            "ns_coefficients": ns_coefficients, "eps": eps, "ns_steps": ns_steps, "adjust_lr_fn": adjust_lr_fn,
        }  # fmt: skip
        super().__init__(params, defaults)
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
        buffer.add_(E.mul(E.sub(grad, buffer), 1 - momentum))
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
