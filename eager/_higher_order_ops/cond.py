"""Branches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eager._higher_order_ops.flow import flow
from eager.core.tensor import Tensor


def cond(
    pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: tuple[Any, ...] | list[Any] = ()
) -> Any:
    """`true_fn(*operands)` if `pred` is true, else `false_fn(*operands)`. As `torch.cond`; see `graphc.cond`.

    pred: a bool, a number or a tensor with one element. RuntimeError for other arguments.

    >>> import eager as torch
    >>> torch.cond(torch.tensor(True), lambda x: x.sin(), lambda x: x.cos(), (torch.zeros(2),))
    tensor([0., 0.])
    """
    if not isinstance(pred, (bool, int, float, Tensor)):
        raise RuntimeError(f"Expected pred to be bool or tensor, but got {pred}.")
    if isinstance(pred, Tensor) and pred.numel() != 1:
        raise RuntimeError(f"Expected pred to be bool or single-element tensor, but got {pred}.")
    if not callable(true_fn) or not callable(false_fn):
        raise RuntimeError("Expect both branches to be callable.")
    if not isinstance(operands, (tuple, list)):
        raise RuntimeError(
            "Expect operands to be a tuple of possibly nested dict/list/tuple that only consists of tensor leaves, "
            f"but got {operands}."
        )
    return flow("cond")(pred, true_fn, false_fn, *operands)
