"""Signs and sizes: minus goes outwards, where it meets another; what is never negative has no sign to take off."""

from __future__ import annotations

import math

import numpy as np

from graphc.ops import OPS, Trait
from graphc.ops.samples import Full
from graphc.passes.rules.operands import all_floating, floating, negative
from graphc.rewrite import EXACT, REASSOCIATES, number
from graphc.rewrite import RewriteRule as R


def _above_zero(x, c) -> bool:
    return floating(x) and number(c) > 0


def _rules_of_size(op) -> tuple[R, ...]:
    """Rules for an op whose results are nan or at least 0."""

    def size(F, x):
        return getattr(F, op.name)(x)

    above = R(f"abs_{op.name}_above_zero", EXACT, lambda F, x, c: F.abs(size(F, x) + c),
              lambda F, x, c: size(F, x) + c, numbers="c", when=_above_zero, example={"c": Full((), 1.5)})  # fmt: skip
    relu = R(f"relu_{op.name}", EXACT, lambda F, x: F.relu(size(F, x)), lambda F, x: size(F, x), when=floating)
    if op.traits & Trait.MOVES or np.signbit(op.kernel(np.array(-0.0))):
        return above, relu  # -0 may be a result
    return (
        above,
        relu,
        R(f"abs_{op.name}", EXACT, lambda F, x: F.abs(size(F, x)), lambda F, x: size(F, x), when=floating),
        R(f"{op.name}_plus_zero", EXACT, lambda F, x: size(F, x) + 0, lambda F, x: size(F, x), when=floating),
        R(f"square_sqrt_{op.name}", REASSOCIATES, lambda F, x: F.square(F.sqrt(size(F, x))),
          lambda F, x: size(F, x), when=floating),
    )  # fmt: skip


_SIZES = [op for op in OPS.values() if op.pointwise and len(op.args) == 1 and not op.params
          and (image := op.image_of({}, (-math.inf, math.inf))) is not None and image[0] >= 0]  # fmt: skip

RULES = (
    R("neg_neg", EXACT, lambda F, x: F.neg(F.neg(x)), lambda F, x: x),
    R("mul_minus_one", EXACT, lambda F, x: x * -1, lambda F, x: F.neg(x)),
    R("add_neg", EXACT, lambda F, x, y: x + F.neg(y), lambda F, x, y: x - y),
    R("sub_neg", EXACT, lambda F, x, y: x - F.neg(y), lambda F, x, y: x + y),
    R("mul_neg_neg", EXACT, lambda F, x, y: F.neg(x) * F.neg(y), lambda F, x, y: x * y),
    R("div_neg_neg", EXACT, lambda F, x, y: F.neg(x) / F.neg(y), lambda F, x, y: x / y),
    *[rule for op in _SIZES for rule in _rules_of_size(op)],
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
)  # fmt: skip
