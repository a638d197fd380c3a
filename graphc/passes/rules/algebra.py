"""Scalar algebra. Each rule is an equation; `R(name, licence, left, right)`."""

from __future__ import annotations

import math

import numpy as np

from graphc.ops import OPS
from graphc.ops.aval import size_of
from graphc.ops.dtypes import finfo
from graphc.ops.rules import broadcast_shapes
from graphc.ops.samples import Bools, Floats, Full
from graphc.passes.rules.operands import all_floating, floating, negative, truth
from graphc.rewrite import EXACT, REASSOCIATES, number
from graphc.rewrite import RewriteRule as R


def _has_exact_reciprocal(x, c) -> bool:
    # a power of two, such that 1/c is a normal number in the narrowest dtype too
    value = number(c)
    return isinstance(value, float) and 2.0**-14 <= abs(value) <= 2.0**14 and abs(math.frexp(value)[0]) == 0.5


def _spread_out(x, c) -> bool:
    return c.shape == x.shape != ()


def _has_product(x, c, d) -> bool:
    # one that is a normal number of the dtype: 0 * inf, or what overflows only together, is another matter
    if not floating(x):
        return False
    size, limits = abs(number(c) * number(d)), finfo(x.dtype)
    return float(limits.tiny) <= size <= float(limits.max)


def _scales(x, c, d, k) -> bool:
    # not 0, inf or nan, nor what the dtype takes for one of them: inf * 0 is nan, and inf * (0 + 1) is not
    if not floating(x) or np.broadcast_shapes(x.shape, c.shape) != x.shape:
        return False
    limits = finfo(x.dtype)
    return float(limits.tiny) <= abs(number(c)) <= float(limits.max)


def _above_zero(x, c) -> bool:
    return floating(x) and number(c) > 0


def _rules_of_size(op) -> tuple[R, ...]:
    """Rules for an op whose results are nan or at least 0."""

    def size(F, x):
        return getattr(F, op.name)(x)

    above = R(f"abs_{op.name}_above_zero", EXACT, lambda F, x, c: F.abs(size(F, x) + c),
              lambda F, x, c: size(F, x) + c, numbers="c", when=_above_zero, example={"c": Full((), 1.5)})  # fmt: skip
    if np.signbit(op.kernel(np.array(-0.0))):
        return (above,)
    return (
        above,
        R(f"abs_{op.name}", EXACT, lambda F, x: F.abs(size(F, x)), lambda F, x: size(F, x), when=floating),
        R(f"{op.name}_plus_zero", EXACT, lambda F, x: size(F, x) + 0, lambda F, x: size(F, x), when=floating),
        R(f"square_sqrt_{op.name}", REASSOCIATES, lambda F, x: F.square(F.sqrt(size(F, x))),
          lambda F, x: size(F, x), when=floating),
    )  # fmt: skip


_SIZES = [op for op in OPS.values() if op.pointwise and len(op.args) == 1 and not op.params and op.image is not None
          and op.image[0] >= 0]  # fmt: skip


def _sum_over_both(F, x, d, k, e, j):
    left = [axis for axis in range(len(x.shape)) if k or axis not in d]  # the axes that the outer sum is over
    both = tuple(sorted({*d, *[left[axis] for axis in e]}))
    return F.sum(x, axis=both, keepdims=j)


def _small_sum(a, x, y) -> bool:
    # x + y is smaller than a + x
    if not floating(a) or len(x.shape) > len(a.shape) or len(y.shape) > len(a.shape):
        return False
    return size_of(broadcast_shapes([x.shape, y.shape])) < size_of(a.shape)


_SCALED = {"c": Full((), 1.7), "d": (1,), "k": False}

RULES = (
    R("neg_neg", EXACT, lambda F, x: F.neg(F.neg(x)), lambda F, x: x),
    R("mul_one", EXACT, lambda F, x: x * 1, lambda F, x: x),
    R("div_one", EXACT, lambda F, x: x / 1, lambda F, x: x),
    R("sub_zero", EXACT, lambda F, x: x - 0, lambda F, x: x),  # -0.0 - 0.0 is -0.0
    R("add_minus_zero", EXACT, lambda F, x: x + -0.0, lambda F, x: x, when=floating),  # x + 0.0 would lose -0.0
    R("mul_minus_one", EXACT, lambda F, x: x * -1, lambda F, x: F.neg(x)),
    R("add_neg", EXACT, lambda F, x, y: x + F.neg(y), lambda F, x, y: x - y),
    R("sub_neg", EXACT, lambda F, x, y: x - F.neg(y), lambda F, x, y: x + y),
    R("mul_neg_neg", EXACT, lambda F, x, y: F.neg(x) * F.neg(y), lambda F, x, y: x * y),
    R("div_neg_neg", EXACT, lambda F, x, y: F.neg(x) / F.neg(y), lambda F, x, y: x / y),
    R("add_self", EXACT, lambda F, x: x + x, lambda F, x: x * 2, when=floating),
    R("div_of_one", EXACT, lambda F, x: 1 / x, lambda F, x: F.reciprocal(x), when=floating),
    R("mul_self", EXACT, lambda F, x: x * x, lambda F, x: F.square(x), when=floating),
    *[rule for op in _SIZES for rule in _rules_of_size(op)],
    # signs go outwards, where they meet
    R("mul_neg", EXACT, lambda F, x, y: F.neg(x) * y, lambda F, x, y: F.neg(x * y)),
    R("div_by_neg", EXACT, lambda F, x, y: x / F.neg(y), lambda F, x, y: F.neg(x / y), when=floating),
    R("neg_div", EXACT, lambda F, x, y: F.neg(x) / y, lambda F, x, y: F.neg(x / y), when=floating),
    R("reciprocal_neg", EXACT, lambda F, x: F.reciprocal(F.neg(x)), lambda F, x: F.neg(F.reciprocal(x)),
      when=floating),
    R("abs_mul_abs", EXACT, lambda F, x, y: F.abs(F.abs(x) * y), lambda F, x, y: F.abs(x * y), when=all_floating),
    R("mul_abs_abs", EXACT, lambda F, x, y: F.abs(x) * F.abs(y), lambda F, x, y: F.abs(x * y), when=all_floating),
    R("div_abs_abs", EXACT, lambda F, x, y: F.abs(x) / F.abs(y), lambda F, x, y: F.abs(x / y), when=all_floating),
    R("abs_of_abs_div", EXACT, lambda F, x, y: F.abs(F.abs(x) / y), lambda F, x, y: F.abs(x / y), when=all_floating),
    R("abs_div_by_abs", EXACT, lambda F, x, y: F.abs(x / F.abs(y)), lambda F, x, y: F.abs(x / y), when=all_floating),
    R("abs_reciprocal", EXACT, lambda F, x: F.abs(F.reciprocal(x)), lambda F, x: F.reciprocal(F.abs(x)),
      when=floating),
    R("abs_neg", EXACT, lambda F, x: F.abs(F.neg(x)), lambda F, x: F.abs(x), when=negative),
    R("square_neg", EXACT, lambda F, x: F.square(F.neg(x)), lambda F, x: F.square(x)),
    R("square_abs", EXACT, lambda F, x: F.square(F.abs(x)), lambda F, x: F.square(x)),
    R("relu_relu", EXACT, lambda F, x: F.relu(F.relu(x)), lambda F, x: F.relu(x)),
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
      _sum_over_both, when=lambda x, d, k, e, j: k == j and floating(x), example={"d": (1,), "k": False, "e": (0,), "j": False}),
    R("sum_scaled", REASSOCIATES, lambda F, x, c, d, k: F.sum(x * c, axis=d, keepdims=k),
      lambda F, x, c, d, k: F.sum(x, axis=d, keepdims=k) * number(c), numbers="c", when=_scales, example=_SCALED),
    R("mean_scaled", REASSOCIATES, lambda F, x, c, d, k: F.mean(x * c, axis=d, keepdims=k),
      lambda F, x, c, d, k: F.mean(x, axis=d, keepdims=k) * number(c), numbers="c", when=_scales, example=_SCALED),
    R("add_small", REASSOCIATES, lambda F, a, x, y: (a + x) + y, lambda F, a, x, y: a + (x + y), when=_small_sum,
      example={"a": Floats((8, 8)), "x": Floats((8,)), "y": Floats((8,))}),
    # quotients: a division takes as long as eight products
    R("mul_reciprocal", REASSOCIATES, lambda F, x, y: x * F.reciprocal(y), lambda F, x, y: x / y),
    R("div_reciprocal", REASSOCIATES, lambda F, x, y: x / F.reciprocal(y), lambda F, x, y: x * y),
    R("reciprocal_reciprocal", REASSOCIATES, lambda F, x: F.reciprocal(F.reciprocal(x)), lambda F, x: x, when=floating),
    R("reciprocal_div", REASSOCIATES, lambda F, x, y: F.reciprocal(x / y), lambda F, x, y: y / x),
    R("div_div", REASSOCIATES, lambda F, x, y, z: x / (y / z), lambda F, x, y, z: x * (z / y)),
    R("reciprocal_by", REASSOCIATES, lambda F, x, y: F.reciprocal(x) / y, lambda F, x, y: F.reciprocal(x * y)),
    R("square_reciprocal", REASSOCIATES, lambda F, x: F.square(F.reciprocal(x)),
      lambda F, x: F.reciprocal(F.square(x)), when=floating),
    R("reciprocal_square_div", REASSOCIATES, lambda F, x, y: F.reciprocal(F.square(x / y)),
      lambda F, x, y: F.square(y / x), when=all_floating),
    R("reciprocal_abs_div", REASSOCIATES, lambda F, x, y: F.reciprocal(F.abs(x / y)),
      lambda F, x, y: F.abs(y / x), when=all_floating),
    R("mul_squares", REASSOCIATES, lambda F, x, y: F.square(x) * F.square(y), lambda F, x, y: F.square(x * y)),
    R("div_squares", REASSOCIATES, lambda F, x, y: F.square(x) / F.square(y), lambda F, x, y: F.square(x / y)),
    R("div_self", EXACT, lambda F, x: x / x, lambda F, x: F.where(x == 0, float("nan"), 1 - (x - x)),
      when=floating, worth=3),
    R("reciprocal_exp", REASSOCIATES, lambda F, x: F.reciprocal(F.exp(x)), lambda F, x: F.exp(F.neg(x))),
    R("sqrt_reciprocal_square", REASSOCIATES, lambda F, x: F.sqrt(F.reciprocal(F.square(x))),
      lambda F, x: F.reciprocal(F.abs(x)), when=floating),
    R("exp_twice_log", REASSOCIATES, lambda F, x: F.exp(F.log(F.abs(x)) * 2), lambda F, x: F.square(x), when=floating),
    R("exp_neg_sub", EXACT, lambda F, x, y: F.exp(F.neg(x - y)), lambda F, x, y: F.exp(y - x), when=floating),
    R("exp_log", REASSOCIATES, lambda F, x: F.exp(F.log(x)), lambda F, x: F.square(F.sqrt(x)), when=floating),
)  # fmt: skip
