"""Loops over the rows of tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eager._higher_order_ops.flow import flow
from eager.utils._pytree import tree_map


def scan(
    combine_fn: Callable[[Any, Any], tuple[Any, Any]], init: Any, xs: Any, *, dim: int = 0, reverse: bool = False
) -> tuple[Any, Any]:
    """`carry, y = combine_fn(carry, x)` for each slice x of `xs` along `dim`. Returns the last carry and all ys.

    As PyTorch's prototype `torch._higher_order_ops.scan`: the ys are stacked along their first dim. See `graphc.scan`.

    >>> import eager as torch
    >>> from eager._higher_order_ops import scan
    >>> scan(lambda total, x: (total + x, total * x), torch.tensor(0.0), torch.tensor([1.0, 2.0, 3.0]))
    (tensor(6.), tensor([0., 2., 9.]))
    """
    if not callable(combine_fn):
        raise RuntimeError("Combine_fn must be a callable, but got " + str(combine_fn))
    rows = xs if dim == 0 else tree_map(lambda x: x.movedim(dim, 0), xs)
    return flow("scan")(combine_fn, init, rows, reverse=reverse)
