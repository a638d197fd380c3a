"""Checks of an optimizer's settings, in PyTorch's words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eager.core.tensor import Tensor


def one_element(lr: Any) -> None:
    """Raise PyTorch's ValueError for a learning rate that is a tensor of several elements."""
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")


def should_be(what: str, bound: str, value: Any, valid: Any) -> None:
    """Raise the ValueError of PyTorch's newer optimizers unless `valid`."""
    if not valid:
        raise ValueError(f"{what} should be {bound} but is: {value}")


def _check_rate(lr: Any) -> None:
    one_element(lr)
    rate = lr.item() if isinstance(lr, Tensor) else lr
    _check("learning rate", rate, rate >= 0.0)


def _check_betas(betas: tuple[float, float]) -> None:
    for i in (0, 1):
        _check(f"beta parameter at index {i}", betas[i], 0.0 <= betas[i] < 1.0)


def _check(what: str, value: Any, valid: Any) -> None:
    if not valid:
        raise ValueError(f"Invalid {what}: {value}")


def _not_negative(what: str) -> Callable[[Any], None]:
    return lambda value: _check(what, value, value >= 0.0)


# name of a setting -> raises PyTorch's ValueError for a value that is not valid
CHECKS: dict[str, Callable[[Any], None]] = {
    "lr": _check_rate,
    "betas": _check_betas,
    "rho": lambda rho: _check("rho value", rho, 0.0 <= rho <= 1.0),
    "etas": lambda etas: _check("eta values", f"{etas[0]}, {etas[1]}", 0.0 < etas[0] < 1.0 < etas[1]),
    "eps": _not_negative("epsilon value"),
    **{name: _not_negative(f"{name} value") for name in (
        "alpha", "initial_accumulator_value", "lr_decay", "momentum", "momentum_decay", "weight_decay",
    )},
}  # fmt: skip
