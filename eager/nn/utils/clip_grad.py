"""Limits on the size of gradients, applied in place."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator
from typing import Any

from eager.core.grad_mode import no_grad
from eager.core.tensor import Tensor
from eager.engine.inplace import assign
from eager.engine.language import E
from eager.functional.arithmetic import clamp
from eager.functional.creation import tensor
from eager.functional.joining import stack
from eager.functional.norms import vector_norm

Tensors = Tensor | Iterable[Tensor]
MARGIN = 1e-6  # keeps the quotient finite where the norm is zero
NOT_FINITE = (
    "The total norm of order {order} for gradients from `parameters` is non-finite, so it cannot be clipped. To "
    "disable this error and scale the gradients by the non-finite norm anyway, set `error_if_nonfinite=False`"
)


def _listed(parameters: Tensors) -> list[Tensor]:
    """The parameters as a list. Warns of a generator that yields none: it has been used up elsewhere."""
    if isinstance(parameters, Tensor):
        return [parameters]
    listed = list(parameters)
    if not listed and isinstance(parameters, Iterator):
        message = "`parameters` is an empty generator, no gradient clipping will occur."
        warnings.warn(message, stacklevel=3)
    return listed


def _gradients(parameters: list[Tensor]) -> list[Any]:
    gradients = (parameter.grad for parameter in parameters)
    return [gradient for gradient in gradients if gradient is not None]


def get_total_norm(
    tensors: Tensors, norm_type: float = 2.0, error_if_nonfinite: bool = False, foreach: bool | None = None
) -> Tensor:
    """The norm of all elements together, as if in one vector. As `torch.nn.utils.get_total_norm`.

    RuntimeError if it is infinite or nan and `error_if_nonfinite`.
    """
    members = [tensors] if isinstance(tensors, Tensor) else list(tensors)
    if not members:
        return tensor(0.0)
    order = float(norm_type)
    with no_grad():
        total = vector_norm(stack([vector_norm(member, order) for member in members]), order)
    if error_if_nonfinite and not E.isfinite(total):
        raise RuntimeError(NOT_FINITE.format(order=order))
    return total


def clip_grads_with_norm_(
    parameters: Tensors, max_norm: float, total_norm: Tensor, foreach: bool | None = None
) -> None:
    """Scale the gradients as if their norm were `total_norm` and should be at most `max_norm`."""
    _scale(_gradients(_listed(parameters)), max_norm, total_norm)


def _scale(gradients: list[Any], max_norm: float, total_norm: Tensor) -> None:
    with no_grad():
        factor = clamp(E.div(float(max_norm), E.add(total_norm, MARGIN)), max=1.0)
        for gradient in gradients:
            gradient.mul_(factor)


def clip_grad_norm_(parameters: Tensors, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False,
                    foreach: bool | None = None) -> Tensor:  # fmt: skip
    """Scale the gradients so that their total norm is at most `max_norm`; returns what it was.

    As `torch.nn.utils.clip_grad_norm_`. RuntimeError if it is infinite or nan and `error_if_nonfinite`.
    """
    gradients = _gradients(_listed(parameters))
    total = get_total_norm(gradients, norm_type, error_if_nonfinite)
    _scale(gradients, max_norm, total)
    return total


def clip_grad_norm(parameters: Tensors, max_norm: float, norm_type: float = 2.0, error_if_nonfinite: bool = False,
                   foreach: bool | None = None) -> Tensor:  # fmt: skip
    """The old name of `clip_grad_norm_`; warns."""
    message = "`torch.nn.utils.clip_grad_norm` is now deprecated in favor of `torch.nn.utils.clip_grad_norm_`."
    warnings.warn(message, FutureWarning, stacklevel=2)
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)


def clip_grad_value_(parameters: Tensors, clip_value: float, foreach: bool | None = None) -> None:
    """Limit each element of the gradients to [-clip_value, clip_value]. As `torch.nn.utils.clip_grad_value_`."""
    bound = float(clip_value)
    with no_grad():
        for gradient in _gradients(_listed(parameters)):
            assign(gradient, clamp(gradient, -bound, bound), "clamp")
