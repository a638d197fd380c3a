"""Arrays that are zero but for some elements, as the gradients of gather are.

Summed, they are the sum of those elements: XLA reads the zeros back. Duplicates add up on both sides, in another order.
With one element in each line there is nothing to add up: a choice at each place, which XLA computes where it is used,
while a scatter is a loop of its own over zeros that are written first.
"""

from __future__ import annotations

import math
from typing import Any

from graphc.ops.samples import Counted, Floats, Full, Ints
from graphc.passes.rules.operands import floating, truth
from graphc.rewrite import EXACT, REASSOCIATES, number
from graphc.rewrite import RewriteRule as R


def _whole(z: Any, i: Any, s: Any, axis: int) -> bool:
    """Whether `s`, scattered into zeros `z` along `axis`, leaves no line of them out."""
    lines = all(n == m for k, (n, m) in enumerate(zip(i.shape, z.shape, strict=True)) if k != axis % len(z.shape))
    return number(z) == 0 and i.shape == s.shape and lines


def _within(F: Any, i: Any, s: Any, size: int) -> Any:
    """`s`, for indices that are within `size`: scattered or not, an index that is not is an error."""
    return F.where(F.in_range(i, size=size) >= 0, s, 0)


def _only_along(v: Any, low: Any, high: Any, interior: Any, axis: int) -> bool:
    """Whether zeros are put before and after `v` along `axis`, and nowhere else."""
    ends = [(m, n) for k, (m, n) in enumerate(zip(low, high, strict=True)) if k != axis]
    return not any(interior) and not any(map(any, ends)) and min(low[axis], high[axis]) >= 0


def _part(F: Any, x: Any, axis: int, start: int, count: int) -> Any:
    starts = [start if k == axis else 0 for k in range(len(x.shape))]
    stops = [start + count if k == axis else n for k, n in enumerate(x.shape)]
    return F.slice(x, start=tuple(starts), stop=tuple(stops), step=(1,) * len(starts))


def _is_plus_zero(value: Any) -> bool:
    return value == 0 and not isinstance(value, complex) and math.copysign(1, value) == 1


def _with(sizes: Any, axis: int, size: int) -> tuple[int, ...]:
    return (*sizes[:axis], size, *sizes[axis + 1 :])


def _running(F: Any, v: Any, b: Any, e: Any, n: Any, a: int, r: bool) -> Any:
    """Cumulated, one element among zeros is zeros up to its place and that element from there on."""
    axis = a % len(b)
    count = 1 + (b if r else e)[axis]
    low, high = (_with(b, axis, 0), e) if r else (b, _with(e, axis, 0))
    whole = F.broadcast_to(v + 0.0, shape=_with(v.shape, axis, count))  # the sum begins at +0: no -0
    interior = _with(n, axis, 0)
    return F.pad_zeros(whole, low=low, high=high, interior=interior) if any((*low, *high, *interior)) else whole


_EXAMPLE = {"z": Full((3, 16), 0.0), "i": Ints((3, 2), 16), "s": Floats((3, 2)), "a": 1}

RULES = (
    R(
        "scatter_one",
        EXACT,
        lambda F, z, i, v, a: F.scatter_add(z, i, v, axis=a),
        lambda F, z, i, v, a: F.place(i, v, axis=a, size=z.shape[a]),
        numbers="z",
        when=lambda z, i, v, a: i.shape[a] == 1 and _whole(z, i, v, a) and _is_plus_zero(number(z)),
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
    R(
        "scatter_padded",
        EXACT,
        lambda F, z, i, v, b, e, n, a: F.scatter(
            z, i, F.pad_zeros(v, low=b, high=e, interior=n), axis=a, distinct=True
        ),
        lambda F, z, i, v, b, e, n, a: F.scatter(z, _part(F, i, a, b[a], v.shape[a]), v, axis=a, distinct=True),
        numbers="z",
        when=lambda z, i, v, b, e, n, a: _only_along(v, b, e, n, a) and _is_plus_zero(number(z)),
        example={"z": Full((4,), 0.0), "i": Counted((4,)), "v": Floats((1,)), "b": (1,), "e": (2,), "n": (0,), "a": 0},
    ),
    R(  # of -0 it makes +0
        "scatter_single",
        REASSOCIATES,
        lambda F, z, i, v, a: F.scatter(z, i, v, axis=a, distinct=True),
        lambda F, z, i, v, a: F.place(i, v, axis=a, size=z.shape[a]),
        numbers="z",
        when=lambda z, i, v, a: i.shape[a] == 1 and _whole(z, i, v, a),
        example={"z": Full((3, 4), 0.0), "i": Ints((3, 1), 4), "v": Floats((3, 1)), "a": 1},
    ),
    R(
        "cumsum_of_one",
        EXACT,
        lambda F, v, b, e, n, a, r: F.cumsum(F.pad_zeros(v, low=b, high=e, interior=n), axis=a, reverse=r),
        _running,
        when=lambda v, b, e, n, a, r: floating(v) and v.shape[a] == 1 and min(b[a], e[a]) >= 0,
        example={"v": Floats((1, 4)), "b": (2, 0), "e": (3, 1), "n": (0, 0), "a": 0, "r": True},
    ),
)
