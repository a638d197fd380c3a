"""A function of each row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eager._higher_order_ops.flow import flow


def map(f: Callable[..., Any], xs: Any, *args: Any) -> Any:
    """`f(x, *args)` for each x along the first dim of the tensors of `xs`, stacked. As PyTorch's prototype.

    >>> import eager as torch
    >>> from eager._higher_order_ops import map
    >>> map(lambda x, y: x.sum() * y, torch.ones(2, 3), torch.tensor(2.0))
    tensor([6., 6.])
    """
    return flow("scan")(lambda carry, x: (carry, f(x, *args)), (), xs)[1]
