"""Formulas that the updates of several optimizers share."""

from __future__ import annotations

from typing import Any

from eager.core.interpreter import current_interpreter
from eager.core.tensor import Tensor
from eager.engine.language import E
from eager.functional.arithmetic import check_end


def learning_rate(group: dict[str, Any]) -> Any:
    """The learning rate, as a number. A tensor remains one under a trace, of which a number would be a constant."""
    lr = group["lr"]
    if not isinstance(lr, Tensor):
        return lr
    return E.reshape(lr, shape=()) if current_interpreter().capturing else lr.item()


def decayed(grad: Tensor, parameter: Any, group: dict[str, Any], lr: Any = None) -> Tensor:
    """The gradient of the loss plus weight_decay / 2 * |parameter|^2.

    lr: given by optimizers in which the decay may be decoupled: then it shrinks the parameter instead.
    """
    decay = group["weight_decay"]
    if decay == 0:
        return grad
    if lr is None or not group["decoupled_weight_decay"]:
        return E.add(grad, E.mul(parameter, decay))
    parameter.mul_(1 - lr * decay)
    return grad


def approach(average: Any, value: Tensor, share: float) -> None:
    """Move a running average by a share of the way to `value`. RuntimeError if that is of another dtype."""
    check_end(average._dtype(), value)
    average.add_(E.mul(E.sub(value, average), share))


def average_squares(square: Any, value: Tensor, kept: float) -> None:
    """Move a running mean of squares to that of `value`, of which it gets the share 1 - kept."""
    square.mul_(kept)
    square.add_(E.mul(E.mul(value, value), 1 - kept))


def kept(value: Tensor, group: dict[str, Any]) -> Tensor:
    """State as an operand that gradients may need later: a copy if the step itself is recorded."""
    return E.clone(value) if group["differentiable"] else value
