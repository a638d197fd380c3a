"""Rules that hold under a fact about their operands, which `graphc.facts` has to prove: `graphc.assume` helps.

Without the facts they are false: sqrt(x)^2 is nan for x < 0, and x - x where x is infinite.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from graphc.facts.known import Facts
from graphc.ops.dtypes import BOOL, is_floating
from graphc.ops.samples import Full
from graphc.rewrite import REASSOCIATES, number
from graphc.rewrite import RewriteRule as R


def _facts(x: Any) -> Facts:
    return Facts(x.builder.nodes)


def nonnegative(x: Any, *rest: Any) -> bool:
    """The first operand holds no number less than 0."""
    return is_floating(x.dtype) and _facts(x).nonnegative(x.id)


def finite(x: Any, *rest: Any) -> bool:
    """The first operand holds numbers that are rounded, and neither nan nor infinities."""
    return is_floating(x.dtype) and _facts(x).finite(x.id)


def positive_and_finite(x: Any) -> bool:
    """The first operand holds finite numbers greater than 0."""
    return finite(x) and _facts(x).positive(x.id)


def _is_least(x: Any, c: Any) -> bool:
    return is_floating(x.dtype) and c.shape in ((), x.shape) and _facts(x).range(x.id).low >= number(c)


def _is_largest(x: Any, c: Any) -> bool:
    return is_floating(x.dtype) and c.shape in ((), x.shape) and _facts(x).range(x.id).high <= number(c)


def _is_mirrored(x: Any, dims: Any) -> bool:
    return dims == (1, 0) and is_floating(x.dtype) and x.shape[0] == x.shape[1] and _facts(x).symmetric(x.id)


def _vanishes(x: Any, c: Any) -> bool:
    return number(c) == 0 and finite(x)


_X = {"x": Full((3, 4), 1.5)}

RULES = (
    R("abs_of_nonnegative", REASSOCIATES, lambda F, x: F.abs(x), lambda F, x: x, when=nonnegative, example=_X),  # of -0
    R("relu_of_nonnegative", REASSOCIATES, lambda F, x: F.relu(x), lambda F, x: x, when=nonnegative, example=_X),
    R("square_of_root", REASSOCIATES, lambda F, x: F.square(F.sqrt(x)), lambda F, x: x, when=nonnegative, example=_X),
    R("maximum_with_least", REASSOCIATES, lambda F, x, c: F.maximum(x, c), lambda F, x, c: x, numbers="c",
      when=_is_least, example={**_X, "c": Full((), 0.5)}),
    R("minimum_with_largest", REASSOCIATES, lambda F, x, c: F.minimum(x, c), lambda F, x, c: x, numbers="c",
      when=_is_largest, example={**_X, "c": Full((), 2.5)}),
    R("less_than_least", REASSOCIATES, lambda F, x, c: F.lt(x, c),
      lambda F, x, c: F.full(shape=x.shape, value=False, dtype=BOOL), numbers="c", when=_is_least,
      example={**_X, "c": Full((), 0.5)}),
    R("greater_than_largest", REASSOCIATES, lambda F, x, c: F.gt(x, c),
      lambda F, x, c: F.full(shape=x.shape, value=False, dtype=BOOL), numbers="c", when=_is_largest,
      example={**_X, "c": Full((), 2.5)}),
    R("transpose_of_symmetric", REASSOCIATES, lambda F, x, d: F.permute(x, dims=d), lambda F, x, d: x,
      when=_is_mirrored, example={"x": Full((4, 4), 1.5), "d": (1, 0)}),
    R("zero_times_finite", REASSOCIATES, lambda F, x, c: x * c,
      lambda F, x, c: F.full(shape=np.broadcast_shapes(x.shape, c.shape), value=0, dtype=x.dtype), numbers="c",
      when=_vanishes, example={**_X, "c": Full((), 0.0)}),
    R("finite_less_itself", REASSOCIATES, lambda F, x: x - x,
      lambda F, x: F.full(shape=x.shape, value=0, dtype=x.dtype), when=finite, example=_X),
    R("quotient_of_itself", REASSOCIATES, lambda F, x: x / x,
      lambda F, x: F.full(shape=x.shape, value=1, dtype=x.dtype), when=positive_and_finite, example=_X),
)  # fmt: skip
