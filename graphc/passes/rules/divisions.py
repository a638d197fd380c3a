"""Quotients, exponentials and squares of each other. A division takes as long as eight products."""

from __future__ import annotations

from graphc.passes.rules.operands import all_floating, floating
from graphc.rewrite import EXACT, REASSOCIATES
from graphc.rewrite import RewriteRule as R

WORTH = 3  # operations: next to a division, a choice is nothing

RULES = (
    R("div_of_one", EXACT, lambda F, x: 1 / x, lambda F, x: F.reciprocal(x), when=floating),
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
      when=floating, worth=WORTH),
    R("reciprocal_exp", REASSOCIATES, lambda F, x: F.reciprocal(F.exp(x)), lambda F, x: F.exp(F.neg(x))),
    R("sqrt_reciprocal_square", REASSOCIATES, lambda F, x: F.sqrt(F.reciprocal(F.square(x))),
      lambda F, x: F.reciprocal(F.abs(x)), when=floating),
    R("exp_twice_log", REASSOCIATES, lambda F, x: F.exp(F.log(F.abs(x)) * 2), lambda F, x: F.square(x), when=floating),
    R("exp_neg_sub", EXACT, lambda F, x, y: F.exp(F.neg(x - y)), lambda F, x, y: F.exp(y - x), when=floating),
    R("exp_softplus", REASSOCIATES, lambda F, x: F.exp(F.softplus(x)), lambda F, x: F.exp(x) + 1, when=floating),
    R("expm1_softplus", REASSOCIATES, lambda F, x: F.expm1(F.softplus(x)), lambda F, x: F.exp(x), when=floating),
    R("expm1_plus_one", REASSOCIATES, lambda F, x: F.expm1(x) + 1, lambda F, x: F.exp(x)),
    R("exp_log", REASSOCIATES, lambda F, x: F.exp(F.log(x)), lambda F, x: F.square(F.sqrt(x)), when=floating),
)  # fmt: skip
