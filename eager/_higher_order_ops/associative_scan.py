"""Scans of functions that are associative: their depth is the logarithm of the length."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eager.core.tensor import Tensor
from eager.func import vmap
from eager.functional.joining import cat, stack
from eager.utils._pytree import tree_flatten, tree_unflatten

LENGTHS = "All xs leaves must have the same number of elements along dim {}, got {}"


def associative_scan(
    combine_fn: Callable[[Any, Any], Any], xs: Any, dim: int, reverse: bool = False, combine_mode: str = "pointwise"
) -> Any:
    """x0, f(x0, x1), f(f(x0, x1), x2), ... along `dim` of the tensors of `xs`. As PyTorch's prototype, on any device.

    combine_fn    an associative function of two nests like `xs`, without `dim`
    reverse       from the last to the first
    combine_mode  "pointwise" calls `combine_fn` with many slices at once, "generic" maps it over them

    Pairs are combined, their scan is found in the same way, and what lies between them from it: Blelloch, "Prefix sums
    and their applications", 1990. ValueError for another mode, or for lengths that differ.

    >>> import eager as torch
    >>> from eager._higher_order_ops import associative_scan
    >>> associative_scan(lambda x, y: x * y, torch.tensor([1.0, 2.0, 3.0, 4.0]), dim=0)
    tensor([ 1.,  2.,  6., 24.])
    """
    if not callable(combine_fn):
        raise ValueError("Combine_fn must be a callable, but got " + str(combine_fn))
    if combine_mode not in ("pointwise", "generic"):
        raise ValueError(f"Combine_mode must either 'pointwise' or 'generic', but got {combine_mode}")
    leaves, structure = tree_flatten(xs)
    rows = [leaf.movedim(dim, 0) for leaf in leaves]
    if len({len(row) for row in rows}) != 1:
        raise ValueError(LENGTHS.format(dim, [len(row) for row in rows]))

    def pair(*both: Tensor) -> tuple[Tensor, ...]:
        half = len(both) // 2
        result = combine_fn(tree_unflatten(both[:half], structure), tree_unflatten(both[half:], structure))
        return tuple(tree_flatten(result)[0])

    together = pair if combine_mode == "pointwise" else vmap(pair)
    found = _scanned(lambda left, right: list(together(*left, *right)), [x.flip(0) for x in rows] if reverse else rows)
    return tree_unflatten([(x.flip(0) if reverse else x).movedim(0, dim) for x in found], structure)


def _scanned(combine: Callable[[list[Tensor], list[Tensor]], list[Tensor]], rows: list[Tensor]) -> list[Tensor]:
    n = len(rows[0])
    if n < 2:
        return rows
    odd = _scanned(combine, combine([x[: n - 1 : 2] for x in rows], [x[1::2] for x in rows]))
    if n == 2:
        even = [x[:1] for x in rows]
    else:
        between = combine([x[: (n - 1) // 2] for x in odd], [x[2::2] for x in rows])
        even = [cat([x[:1], y]) for x, y in zip(rows, between, strict=True)]
    pairs = [stack([x[: n // 2], y], 1).flatten(0, 1) for x, y in zip(even, odd, strict=True)]
    return pairs if n % 2 == 0 else [cat([both, x[-1:]]) for both, x in zip(pairs, even, strict=True)]
