"""Arrays that are zero but for some elements, as the gradients of gather are.

Summed, they are the sum of those elements: XLA reads the zeros back. Duplicates add up on both sides, in another order.
With one element in each line there is nothing to add up: a choice at each place, which XLA computes where it is used,
while a scatter is a loop of its own over zeros that are written first.
"""

from __future__ import annotations

from typing import Any

from graphc.ops.samples import Floats, Full, Ints
from graphc.passes.rules.operands import truth
from graphc.rewrite import EXACT, REASSOCIATES, number
from graphc.rewrite import RewriteRule as R


def _whole(z: Any, i: Any, s: Any, axis: int) -> bool:
    """Whether `s`, scattered into zeros `z` along `axis`, leaves no line of them out."""
    lines = all(n == m for k, (n, m) in enumerate(zip(i.shape, z.shape, strict=True)) if k != axis % len(z.shape))
    return number(z) == 0 and i.shape == s.shape and lines


def _within(F: Any, i: Any, s: Any, size: int) -> Any:
    """`s`, for indices that are within `size`: scattered or not, an index that is not is an error."""
    return F.where(F.in_range(i, size=size) >= 0, s, 0)


_EXAMPLE = {"z": Full((3, 16), 0.0), "i": Ints((3, 2), 16), "s": Floats((3, 2)), "a": 1}

RULES = (
    R(
        "scatter_one",
        EXACT,
        lambda F, z, i, v, a: F.scatter_add(z, i, v, axis=a),
        lambda F, z, i, v, a: F.place(i, v, axis=a, size=z.shape[a]),
        numbers="z",
        when=lambda z, i, v, a: i.shape[a] == 1 and _whole(z, i, v, a),
        example={"z": Full((3, 4), 0.0), "i": Ints((3, 1), 4), "v": Floats((3, 1)), "a": 1},
    ),
    R(
        "sum_scattered",
        REASSOCIATES,
        lambda F, z, i, s, a, t, k: F.sum(F.scatter_add(z, i, s, axis=a), axis=t, keepdims=k),
        lambda F, z, i, s, a, t, k: F.sum(_within(F, i, s, z.shape[a]), axis=t, keepdims=k),
        numbers="z",
        when=lambda z, i, s, a, t, k: t == (a % len(z.shape),) and _whole(z, i, s, a) and not truth(z),  # True + True
        example={**_EXAMPLE, "t": (1,), "k": True},
    ),
    R(
        "sum_placed",
        EXACT,
        lambda F, i, v, a, n, d, k: F.sum(F.place(i, v, axis=a, size=n), axis=d, keepdims=k),
        lambda F, i, v, a, n, d, k: F.sum(_within(F, i, v, n), axis=d, keepdims=k),
        when=lambda i, v, a, n, d, k: d == (a % len(v.shape),),
        example={"i": Ints((3, 1), 4), "v": Floats((3, 1)), "a": 1, "n": 4, "d": (1,), "k": True},
    ),
)
