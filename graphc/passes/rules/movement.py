"""Movement of elements: compositions that are one movement, or none. All exact."""

from __future__ import annotations

from typing import Any

from graphc.ops import OPS
from graphc.ops.aval import size_of
from graphc.ops.dtypes import FLOAT64
from graphc.ops.rules import broadcast_shapes
from graphc.ops.samples import Floats, Full
from graphc.rewrite import EXACT, number
from graphc.rewrite import RewriteRule as R

_CUBE = Floats((2, 3, 4))


def _swapped(sizes: Any, others: Any, axes: Any) -> tuple[int, ...]:
    return tuple([m if k in axes else n for k, (n, m) in enumerate(zip(sizes, others, strict=True))])


def _spreads(op: Any) -> R:
    """Arithmetic spreads its operands by itself."""

    def left(F: Any, x: Any, y: Any, s: Any) -> Any:
        return getattr(F, op.name)(x, F.broadcast_to(y, shape=s))

    return R(f"{op.name}_spread", EXACT, left, lambda F, x, y, s: getattr(F, op.name)(x, y),
             when=lambda x, y, s: x.shape == s and x.dtype == y.dtype,
             example={"y": Floats((4,)), "s": (3, 4)})  # fmt: skip


def _before_spread(op: Any) -> R:
    """Arithmetic on what is not spread yet takes fewer operations."""

    def left(F: Any, x: Any, y: Any, s: Any) -> Any:
        return getattr(F, op.name)(F.broadcast_to(x, shape=s), y)

    def smaller(x: Any, y: Any, s: Any) -> bool:
        if x.dtype != y.dtype or len(y.shape) > len(s):
            return False
        together = broadcast_shapes([x.shape, y.shape])
        return size_of(together) < size_of(s) and broadcast_shapes([together, s]) == s

    return R(f"{op.name}_before_spread", EXACT, left,
             lambda F, x, y, s: F.broadcast_to(getattr(F, op.name)(x, y), shape=s), when=smaller,
             example={"x": Floats((3, 1)), "y": Floats((3, 1)), "s": (3, 4)})  # fmt: skip


_ARITHMETIC = [op for op in OPS.values() if op.pointwise and len(op.args) == 2 and op.lifting is not None]
RULES = (
    *map(_spreads, _ARITHMETIC),
    *map(_before_spread, _ARITHMETIC),
    R(
        "permute_permute",
        EXACT,
        lambda F, x, p, q: F.permute(F.permute(x, dims=p), dims=q),
        lambda F, x, p, q: F.permute(x, dims=tuple(p[i] for i in q)),
        example={"x": _CUBE, "p": (1, 2, 0), "q": (0, 2, 1)},
    ),
    R(
        "permute_identity",
        EXACT,
        lambda F, x, p: F.permute(x, dims=p),
        lambda F, x, p: x,
        when=lambda x, p: p == tuple(range(len(p))),
        example={"x": _CUBE, "p": (0, 1, 2)},
    ),
    R(
        "reshape_reshape",
        EXACT,
        lambda F, x, s, t: F.reshape(F.reshape(x, shape=s), shape=t),
        lambda F, x, s, t: F.reshape(x, shape=t),
        example={"s": (2, 6), "t": (12,)},
    ),
    R(
        "reshape_same",
        EXACT,
        lambda F, x, s: F.reshape(x, shape=s),
        lambda F, x, s: x,
        when=lambda x, s: x.shape == s,
        example={"s": (3, 4)},
    ),
    R(
        "broadcast_same",
        EXACT,
        lambda F, x, s: F.broadcast_to(x, shape=s),
        lambda F, x, s: x,
        when=lambda x, s: x.shape == s,
        example={"s": (3, 4)},
    ),
    R(
        "broadcast_broadcast",
        EXACT,
        lambda F, x, s, t: F.broadcast_to(F.broadcast_to(x, shape=s), shape=t),
        lambda F, x, s, t: F.broadcast_to(x, shape=t),
        example={"x": Floats((4,)), "s": (3, 4), "t": (2, 3, 4)},
    ),
    R(
        "broadcast_constant",
        EXACT,
        lambda F, c, s: F.broadcast_to(c, shape=s),
        lambda F, c, s: F.full(shape=s, value=number(c), dtype=c.dtype),
        numbers="c",
        example={"c": Full((), 2.5), "s": (3, 4)},
    ),
    R(
        "cast_same",
        EXACT,
        lambda F, x, d: F.cast(x, dtype=d),
        lambda F, x, d: x,
        when=lambda x, d: x.dtype == d,
        example={"d": FLOAT64},
    ),
    R("cat_one", EXACT, lambda F, x, a: F.cat(x, axis=a), lambda F, x, a: x, example={"a": 0}),
    R("flip_flip", EXACT, lambda F, x, a: F.flip(F.flip(x, axis=a), axis=a), lambda F, x, a: x, example={"a": (0,)}),
    R("stop_stop", EXACT, lambda F, x: F.stop_gradient(F.stop_gradient(x)), lambda F, x: F.stop_gradient(x)),
    R(
        "pad_nothing",
        EXACT,
        lambda F, x, b, e, n: F.pad_zeros(x, low=b, high=e, interior=n),
        lambda F, x, b, e, n: x,
        when=lambda x, b, e, n: not any((*b, *e, *n)),
        example={"b": (0, 0), "e": (0, 0), "n": (0, 0)},
    ),
    R(
        "flip_pad",
        EXACT,
        lambda F, x, b, e, n, a: F.flip(F.pad_zeros(x, low=b, high=e, interior=n), axis=a),
        lambda F, x, b, e, n, a: F.pad_zeros(
            F.flip(x, axis=a), low=_swapped(b, e, a), high=_swapped(e, b, a), interior=n
        ),
        example={"b": (1, 0), "e": (0, 2), "n": (0, 1), "a": (1,)},
    ),
)
