"""Loops of unknown length."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eager._higher_order_ops.flow import flow


def while_loop(cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Any) -> Any:
    """`carried = body_fn(*carried)` while `cond_fn(*carried)`. Returns the last. As `torch.while_loop`.

    carried_inputs: a tuple or list of tensors and numbers, whose shapes and dtypes stay. RuntimeError for others. See
    `graphc.while_loop`.

    >>> import eager as torch
    >>> torch.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, x * 2), (torch.tensor(0), torch.ones(2)))
    (tensor(3), tensor([8., 8.]))
    """
    if not callable(cond_fn) or not callable(body_fn):
        raise RuntimeError("Expect cond_fn and body_fn to be callable.")
    if not isinstance(carried_inputs, (tuple, list)):
        raise RuntimeError(f"Expect carried_inputs to be a tuple of tensors or ints, but got {carried_inputs}.")

    def body(carried: tuple[Any, ...]) -> tuple[Any, ...]:
        after = body_fn(*carried)
        return tuple(after) if isinstance(after, (tuple, list)) else (after,)

    return flow("while_loop")(lambda carried: cond_fn(*carried), body, tuple(carried_inputs))
