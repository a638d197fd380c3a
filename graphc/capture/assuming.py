"""`graphc.assume`: facts about tensors that only their user knows."""

from __future__ import annotations

from typing import Any

from eager.core.interpreter import on_arrays
from eager.core.tensor import Tensor
from eager.engine.language import E
from graphc.capture.location import user_line
from graphc.ops.assumptions import read


def assume(x: Tensor, *facts: Any) -> Tensor:
    """`x`, with the promise that each of these facts holds for it, which compiled programs make use of.

    x      of any shape; matrices may have batch dims in front. Its gradient passes through as it is
    facts  "symmetric", "spd" ("positive_definite"), "psd" ("positive_semidefinite"), "orthogonal" (columns are
           orthonormal), "lower", "upper", "tridiagonal", "diagonal", ("band", below, above): of real matrices;
           "positive", "nonnegative", "nonpositive", "finite", (low, high) with both ends: of real numbers

    What is equal but for rounding is equal. nan is neither in a range nor positive nor finite.

    Raises ValueError for what is no fact, for an array that cannot have it, and, with the user's line, where a fact is
    false: at once, or when a compiled program is run. TypeError for dtypes that cannot have it, and without facts.

    >>> import eager as torch, graphc
    >>> K = torch.tensor([[2.0, 1.0], [1.0, 2.0]])
    >>> graphc.compile(lambda K: torch.linalg.inv(graphc.assume(K, "spd")))(K)
    tensor([[ 0.6667, -0.3333],
            [-0.3333,  0.6667]])
    """
    if not isinstance(x, Tensor):
        raise TypeError(f"assume: expected a Tensor, got {type(x).__name__}")
    if not facts:
        raise TypeError("assume: expected a fact, as in assume(x, 'spd')")
    for fact in map(read, facts):
        try:
            x = E.assume(x, fact=fact)
        except ValueError as error:
            if not on_arrays():
                raise
            raise ValueError(f"{error} (at {user_line()})") from None
    return x
