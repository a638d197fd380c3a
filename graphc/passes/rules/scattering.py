"""Arrays that are zero but for some elements, as the gradients of gather are: summed by those elements.

XLA reads the zeros back. Duplicates add up on both sides, in another order.
"""

from __future__ import annotations

from typing import Any

from graphc.ops.samples import Floats, Full, Ints
from graphc.rewrite import REASSOCIATES, number
from graphc.rewrite import RewriteRule as R


def _whole(z: Any, i: Any, s: Any, axis: int) -> bool:
    """Whether `s`, scattered into zeros `z` along `axis`, leaves no line of them out."""
    lines = all(n == m for k, (n, m) in enumerate(zip(i.shape, z.shape, strict=True)) if k != axis % len(z.shape))
    return number(z) == 0 and i.shape == s.shape and lines


_EXAMPLE = {"z": Full((3, 4), 0.0), "i": Ints((3, 2), 4), "s": Floats((3, 2)), "a": 1}

RULES = (
    R(
        "sum_scattered",
        REASSOCIATES,
        lambda F, z, i, s, a, t, k: F.sum(F.scatter_add(z, i, s, axis=a), axis=t, keepdims=k),
        lambda F, z, i, s, a, t, k: F.sum(s, axis=t, keepdims=k),
        numbers="z",
        when=lambda z, i, s, a, t, k: t == (a % len(z.shape),) and _whole(z, i, s, a),
        example={**_EXAMPLE, "t": (1,), "k": True},
    ),
)
