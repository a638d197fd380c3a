"""Signs and sizes: minus goes outwards, where it meets another; what is never negative has no sign to take off."""

from __future__ import annotations

import math

import numpy as np

from graphc.ops import OPS, Trait
from graphc.passes.rules.operands import all_floating, floating, negative
from graphc.rewrite import EXACT
from graphc.rewrite import RewriteRule as R


def _size_plus_zero(op) -> R:
    """For an op whose results are nan or at least 0, and never -0. Facts tell the rest (`known`)."""

    def size(F, x):
        return getattr(F, op.name)(x)

    return R(f"{op.name}_plus_zero", EXACT, lambda F, x: size(F, x) + 0, lambda F, x: size(F, x), when=floating)


_SIZES = [op for op in OPS.values() if op.pointwise and len(op.args) == 1 and not op.params
          and (image := op.image_of({}, (-math.inf, math.inf))) is not None and image[0] >= 0]  # fmt: skip

RULES = (
    R("neg_neg", EXACT, lambda F, x: F.neg(F.neg(x)), lambda F, x: x),
    R("mul_minus_one", EXACT, lambda F, x: x * -1, lambda F, x: F.neg(x)),
    R("add_neg", EXACT, lambda F, x, y: x + F.neg(y), lambda F, x, y: x - y),
    R("sub_neg", EXACT, lambda F, x, y: x - F.neg(y), lambda F, x, y: x + y),
    R("div_neg_neg", EXACT, lambda F, x, y: F.neg(x) / F.neg(y), lambda F, x, y: x / y),
    *[_size_plus_zero(op) for op in _SIZES if not (op.traits & Trait.MOVES or np.signbit(op.kernel(np.array(-0.0))))],
    R("mul_neg", EXACT, lambda F, x, y: F.neg(x) * y, lambda F, x, y: F.neg(x * y)),
    R("div_by_neg", EXACT, lambda F, x, y: x / F.neg(y), lambda F, x, y: F.neg(x / y), when=floating),
    R("neg_div", EXACT, lambda F, x, y: F.neg(x) / y, lambda F, x, y: F.neg(x / y), when=floating),
    R("abs_mul_abs", EXACT, lambda F, x, y: F.abs(F.abs(x) * y), lambda F, x, y: F.abs(x * y), when=all_floating),
    R("mul_abs_abs", EXACT, lambda F, x, y: F.abs(x) * F.abs(y), lambda F, x, y: F.abs(x * y), when=all_floating),
    R("div_abs_abs", EXACT, lambda F, x, y: F.abs(x) / F.abs(y), lambda F, x, y: F.abs(x / y), when=all_floating),
    R("abs_of_abs_div", EXACT, lambda F, x, y: F.abs(F.abs(x) / y), lambda F, x, y: F.abs(x / y), when=all_floating),
    R("abs_div_by_abs", EXACT, lambda F, x, y: F.abs(x / F.abs(y)), lambda F, x, y: F.abs(x / y), when=all_floating),
    R("abs_neg", EXACT, lambda F, x: F.abs(F.neg(x)), lambda F, x: F.abs(x), when=negative),
    R("square_neg", EXACT, lambda F, x: F.square(F.neg(x)), lambda F, x: F.square(x)),
    R("square_abs", EXACT, lambda F, x: F.square(F.abs(x)), lambda F, x: F.square(x)),
)  # fmt: skip
