"""Wrong rewrite rules that apply to what other rules have made, or make what others go on with: either left out, all is
well, and only one of them is wrong."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import eager as torch
import graphc
from compare.selftest.fault import Expected, Fault, Trials
from compare.selftest.planting import wrapped
from compare.selftest.trials import numbers, program
from graphc.passes import pipeline
from graphc.rewrite import EXACT, REASSOCIATES, Licence
from graphc.rewrite import RewriteRule as R

LAYER = "rules together"


def _fault(
    name: str, left: Callable[..., Any], right: Callable[..., Any], trials: Trials, licence: Licence = EXACT,
    first: bool = True,
) -> Fault:  # fmt: skip
    """A rule before (`first`) or after those of the tables."""
    rule = R(name, licence, left, right)
    plant = wrapped(pipeline, "ALL", lambda rules: (rule, *rules) if first else (*rules, rule))
    return Fault(f"rule {name}", LAYER, plant, Expected(rule=name), trials)


_x, _y = numbers(3), numbers(3, seed=6)
_square = numbers(3, 3)

FAULTS: tuple[Fault, ...] = (
    # what a rule of the tables has made
    _fault("wrong_expm1_product", lambda F, x, y: (F.expm1(x) + 0.0) * y, lambda F, x, y: F.exp(x) * y,
           program(lambda x, y: (x.exp() - 1) * y, _x, _y), REASSOCIATES),
    _fault("wrong_difference_of_squares", lambda F, x, y: (x - y) * (x + y), lambda F, x, y: x * x + y * y,
           program(lambda x, y: (x + (-y)) * (x + y), _x, _y), REASSOCIATES),
    _fault("wrong_sine_of_difference", lambda F, x, y: F.sin(x - y), lambda F, x, y: F.cos(y - x),
           program(lambda x, y: torch.sin(x + (-y)), _x, _y)),
    _fault("wrong_sigmoid_complement", lambda F, x: F.sigmoid(F.neg(x)), lambda F, x: F.sigmoid(x),
           program(lambda x: 1 - x.sigmoid(), _x)),
    _fault("wrong_log1p_product", lambda F, x, y: (F.log1p(x) + 0.0) * y, lambda F, x, y: x * y,
           program(lambda x, y: (1 + x).log() * y, _x, _y), REASSOCIATES),
    # what a rule of the tables goes on with: its result, too, is wrong then
    _fault("wrong_tan", lambda F, x: F.sin(x) / F.cos(x), lambda F, x: F.neg(F.neg(F.sin(x))) * F.cos(x),
           program(lambda x: x.sin() / x.cos(), _x), REASSOCIATES, first=False),
    _fault("wrong_sine_of_double", lambda F, x: F.sin(x) * F.cos(x), lambda F, x: F.sin(F.neg(F.neg(x + x))),
           program(lambda x: x.sin() * x.cos(), _x), REASSOCIATES, first=False),
    _fault("wrong_product_of_abs", lambda F, x, y: F.abs(x) * F.abs(y), lambda F, x, y: F.abs(F.abs(x)) * y,
           program(lambda x, y: x.abs() * y.abs(), _x, -_y)),
    # three that are needed for it
    _fault("wrong_cosine_of_double", lambda F, x: F.cos(x * 2.0), lambda F, x: F.cos(x) * 2,
           program(lambda x: (x - (-x)).cos(), _x), REASSOCIATES),
    # inside a loop
    _fault("wrong_in_a_loop", lambda F, x, y: F.tanh(x - y), lambda F, x, y: F.tanh(x + y),
           program(lambda x: graphc.scan(lambda c, r: (torch.tanh(c + (-r)), c), x[0], x)[0], _square)),
)  # fmt: skip
