"""One mode's result of a call, as the caller would have it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compare.cases.case import Case
from compare.cases.outcome import Leaf, map_leaves
from compare.modes import Mode, modes_named
from eager.core.tensor import Tensor


def run(mode: str | Mode, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """What `fn(*args, **kwargs)` returns in a mode, with tensors that have no history.

    What the call changes is put back; to look at it, return it from `fn`. Raises what the mode raises, and ValueError
    for a mode that is not registered, or that returns no values.

    >>> import eager as torch
    >>> run("compiled", lambda x: {"sum": x.sum()}, torch.ones(3))
    {'sum': tensor(3.)}
    """
    chosen = modes_named([mode])
    if len(chosen) != 1 or chosen[0].wide:
        raise ValueError(f"mode '{mode}' returns no values")
    outcome = chosen[0].run(Case(fn, args, kwargs, 0))
    if outcome.error is not None:
        raise outcome.error
    if outcome.silent:
        raise ValueError(f"mode '{mode}' has no result for this function: {outcome.silent}")

    def value(leaf: Leaf, path: str) -> Any:
        array = outcome.values[path]
        return Tensor._wrap(array) if path in outcome.declared else array if array.ndim else array.item()

    return map_leaves(outcome.structure, lambda x: isinstance(x, Leaf), value)
