"""Scalar algebra. Each rule is an equation; `R(name, licence, left, right)`."""

from __future__ import annotations

import math

import numpy as np

from graphc.ops.aval import size_of
from graphc.ops.rules import broadcast_shapes
from graphc.ops.samples import Bools, Floats, Full
from graphc.passes.rules.operands import floating, is_normal, truth
from graphc.rewrite import EXACT, REASSOCIATES, number
from graphc.rewrite import RewriteRule as R


def _has_exact_reciprocal(x, c) -> bool:
    # a power of two, such that 1/c is a normal number in the narrowest dtype too
    value = number(c)
    return isinstance(value, float) and 2.0**-14 <= abs(value) <= 2.0**14 and abs(math.frexp(value)[0]) == 0.5


def _spread_out(x, c) -> bool:
    return c.shape == x.shape != ()


def _has_product(x, c, d) -> bool:
    # 0 * inf, or what overflows only together, is another matter
    return is_normal(x, number(c) * number(d))


def _scales(x, c, d, k) -> bool:
    # inf * 0 is nan, and inf * (0 + 1) is not
    return np.broadcast_shapes(x.shape, c.shape) == x.shape and is_normal(x, number(c))


def _sum_over_both(F, x, d, k, e, j):
    left = [axis for axis in range(len(x.shape)) if k or axis not in d]  # the axes that the outer sum is over
    both = tuple(sorted({*d, *[left[axis] for axis in e]}))
    return F.sum(x, axis=both, keepdims=j)


def _spread_by_sum(a, y, d, k) -> bool:
    # y has fewer elements than a + y, which has the shape of a
    return floating(a) and a.dtype == y.dtype and len(y.shape) <= len(a.shape) and size_of(y.shape) < size_of(
        a.shape) and broadcast_shapes([a.shape, y.shape]) == a.shape and y.shape != ()  # fmt: skip


def _sums_apart(F, a, y, d, k):
    shape = (1,) * (len(a.shape) - len(y.shape)) + y.shape
    times = math.prod([a.shape[axis] for axis in d if shape[axis] == 1])
    total = F.sum(F.reshape(y, shape=shape), axis=d, keepdims=k)
    return F.sum(a, axis=d, keepdims=k) + (total if times == 1 else total * float(times))


def _small_sum(a, x, y) -> bool:
    # x + y is smaller than a + x
    if not floating(a) or len(x.shape) > len(a.shape) or len(y.shape) > len(a.shape):
        return False
    return size_of(broadcast_shapes([x.shape, y.shape])) < size_of(a.shape)


def _covers(x, k, s, p, d, j) -> bool:
    """Whether the windows of a pool lie beside each other on all of the axes that the mean is over."""
    sizes = x.shape[len(x.shape) - len(k) :]
    axes = {*range(len(x.shape) - len(k), len(x.shape))}
    whole = all(type(n) is int and n % m == 0 for n, m in zip(sizes, k, strict=True))
    return floating(x) and k == s and not any(sum(p, ())) and axes <= {*d} and whole


def _mean_of_pool(pool: str, rank: int) -> R:
    """The mean of means of parts that are as large."""
    return R(
        f"mean_of_{pool}", REASSOCIATES,
        lambda F, x, k, s, p, d, j: F.mean(getattr(F, pool)(x, kernel=k, stride=s, padding=p), axis=d, keepdims=j),
        lambda F, x, k, s, p, d, j: F.mean(x, axis=d, keepdims=j), when=_covers,
        example={"x": Floats((2, 3, *[4] * rank)), "k": (2,) * rank, "s": (2,) * rank, "p": ((0, 0),) * rank,
                 "d": (*range(2, 2 + rank),), "j": False},
    )  # fmt: skip


_SCALED = {"c": Full((), 1.7), "d": (1,), "k": False}

RULES = (
    R("mul_one", EXACT, lambda F, x: x * 1, lambda F, x: x),
    R("div_one", EXACT, lambda F, x: x / 1, lambda F, x: x),
    R("sub_zero", EXACT, lambda F, x: x - 0, lambda F, x: x),  # -0.0 - 0.0 is -0.0
    R("add_minus_zero", EXACT, lambda F, x: x + -0.0, lambda F, x: x, when=floating),  # x + 0.0 would lose -0.0
    R("add_self", EXACT, lambda F, x: x + x, lambda F, x: x * 2, when=floating),
    R("mul_self", EXACT, lambda F, x: x * x, lambda F, x: F.square(x), when=floating),
    R("maximum_self", EXACT, lambda F, x: F.maximum(x, x), lambda F, x: x),
    R("minimum_self", EXACT, lambda F, x: F.minimum(x, x), lambda F, x: x),
    R("not_not", EXACT, lambda F, x: F.logical_not(F.logical_not(x)), lambda F, x: x, example={"x": Bools((3, 4))}),
    R("where_same", EXACT, lambda F, c, x: F.where(c, x, x), lambda F, c, x: x, example={"c": Bools((3, 4))}),
    R("where_not", EXACT, lambda F, c, x, y: F.where(F.logical_not(c), x, y), lambda F, c, x, y: F.where(c, y, x),
      when=truth, example={"c": Bools((3, 4))}),
    R("div_power_of_two", EXACT, lambda F, x, c: x / c, lambda F, x, c: x * (1.0 / number(c)),
      numbers="c", when=_has_exact_reciprocal, example={"c": Full((), 4.0)}),
    R("where_constant", EXACT, lambda F, c, x, y: F.where(c, x, y), lambda F, c, x, y: F.broadcast_to(
        x if number(c) else y, shape=np.broadcast_shapes(c.shape, x.shape, y.shape)),
      numbers="c", example={"c": Full((), False), "x": Full((), 1.5)}),
    # a number needs no array: the other operand gives the shape
    R("mul_full", EXACT, lambda F, x, c: x * c, lambda F, x, c: x * number(c), numbers="c",
      when=_spread_out, example={"c": Full((3, 4), 1.7)}),
    R("add_full", EXACT, lambda F, x, c: x + c, lambda F, x, c: x + number(c), numbers="c",
      when=_spread_out, example={"c": Full((3, 4), 1.7)}),
    # the same real number, rounded in another place
    R("mul_mul_constants", REASSOCIATES, lambda F, x, c, d: (x * c) * d,
      lambda F, x, c, d: x * (number(c) * number(d)), numbers="c d", when=_has_product,
      example={"c": Full((), 1.5), "d": Full((), 0.7)}),
    R("sum_sum", REASSOCIATES, lambda F, x, d, k, e, j: F.sum(F.sum(x, axis=d, keepdims=k), axis=e, keepdims=j),
      _sum_over_both, when=lambda x, d, k, e, j: k == j and floating(x),
      example={"d": (1,), "k": False, "e": (0,), "j": False}),
    R("sum_spread", REASSOCIATES, lambda F, a, y, d, k: F.sum(a + y, axis=d, keepdims=k), _sums_apart,
      when=_spread_by_sum, example={"a": Floats((9, 8)), "y": Floats((8,)), "d": (1,), "k": False}),
    R("sum_scaled", REASSOCIATES, lambda F, x, c, d, k: F.sum(x * c, axis=d, keepdims=k),
      lambda F, x, c, d, k: F.sum(x, axis=d, keepdims=k) * number(c), numbers="c", when=_scales, example=_SCALED),
    R("mean_scaled", REASSOCIATES, lambda F, x, c, d, k: F.mean(x * c, axis=d, keepdims=k),
      lambda F, x, c, d, k: F.mean(x, axis=d, keepdims=k) * number(c), numbers="c", when=_scales, example=_SCALED),
    *[_mean_of_pool(pool, n) for n, pool in enumerate(("avg_pool1d", "avg_pool2d", "avg_pool3d"), 1)],
    R("add_small", REASSOCIATES, lambda F, a, x, y: (a + x) + y, lambda F, a, x, y: a + (x + y), when=_small_sum,
      example={"a": Floats((8, 8)), "x": Floats((8,)), "y": Floats((8,))}),
)  # fmt: skip
