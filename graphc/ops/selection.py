"""Values chosen: the larger or the smaller, by a condition, the nearest whole number."""

from __future__ import annotations

import builtins
import math
import operator

import numpy as np

from graphc.ops import choosing, scalars
from graphc.ops.references import Each
from graphc.ops.rounding import EXACT
from graphc.ops.rules import pointwise, pointwise_no_bool, refusing_complex, where_rule
from graphc.ops.spec import Kink, Trait, either_zero, op

_ORDERED = refusing_complex(pointwise._replace(scalars=""), "{name} not implemented for complex tensors.", RuntimeError)


def _choice(name: str, does: str, better, ufunc, ref):
    """The op that keeps the `better` operand, or nan. On ties PyTorch keeps the first (it shows in the sign of zero),
    NumPy the second, XLA +0."""

    def kernel(xp, x, y):
        return xp.where(better(x, y) | (x == y) | (x != x), x, y)

    def share(F, g, mine, theirs):
        # all of the gradient to the chosen operand, half of it on a tie, all to both beside nan
        return F.where(mine == theirs, g * 0.5, F.where(better(theirs, mine), 0, g))

    return op(
        name, "input other", doc=f"The {does} of two numbers; nan if one of them is.",
        impl=kernel, numpy=lambda x, y: ufunc(y, x), ref=ref, rule=_ORDERED,
        image=lambda params, x, y: (x[0] if better(x[0], y[0]) else y[0], x[1] if better(x[1], y[1]) else y[1]),
        domain=((0.1, 1.0), (1.5, 3.0)), traits=Trait.ORDERS | Trait.MOVES, kinks=(Kink((1.0, 1.0), (0.5, 0.5)),),
        vjp=dict(input=lambda F, g, input, other: share(F, g, input, other),
                 other=lambda F, g, input, other: share(F, g, other, input)),
        slopes=dict(input=Each(scalars.extreme_slope(better, True)), other=Each(scalars.extreme_slope(better, False))),
    )  # fmt: skip


maximum = _choice("maximum", "larger", operator.gt, np.maximum, Each(scalars.larger))
minimum = _choice("minimum", "smaller", operator.lt, np.minimum, Each(scalars.smaller))


def _limit(name: str, does: str, beyond, within, better, limit, closed: bool):
    """The op behind `torch.clamp` and hard activations, of one bound: nan stays nan, a bound of nan is all there is.

    closed  whether the gradient at the bound goes to the input, and that at nan nowhere; else it is the other way round
    """

    def kernel(xp, x, bound):
        return xp.where(beyond(x, bound) | (bound != bound), bound, x)

    def passes(F, g, input, other):
        return F.where(within(input, other), g, 0) if closed else F.where(within(other, input), 0, g)

    return op(
        name, "input other", doc=f"input, at {does} `other`.", impl=kernel, numpy=limit,
        ref=Each(lambda x, bound: bound if beyond(x, bound) or bound != bound else x),
        rule=refusing_complex(pointwise, "clamp is not supported for complex types"), nearest=either_zero,
        image=lambda params, x, bound: (better(x[0], bound[0]), better(x[1], bound[1])),
        domain=((0.1, 1.0), (1.5, 3.0)) if better is builtins.min else ((1.5, 3.0), (0.1, 1.0)),
        traits=Trait.ORDERS | Trait.MOVES, kinks=(Kink((1.0, 1.0), (float(closed), 0.0)),), label="Clamp",
        vjp=dict(input=passes, other=lambda F, g, input, other: F.where(beyond(input, other), g, 0)),
        slopes=dict(input=Each(lambda g, x, bound: within(x, bound) * g if closed else (not within(bound, x)) * g),
                    other=Each(lambda g, x, bound: g if beyond(x, bound) else 0.0)),
    )  # fmt: skip


def _below(x, bound):  # a function with source: programs that stand by themselves hold it
    return x < bound


def _above(x, bound):
    return x > bound


_LOW = _below, operator.ge, builtins.max, choosing.at_least
_HIGH = _above, operator.le, builtins.min, choosing.at_most
at_least, at_most = _limit("at_least", "least", *_LOW, True), _limit("at_most", "most", *_HIGH, True)
hard_least, hard_most = _limit("hard_least", "least", *_LOW, False), _limit("hard_most", "most", *_HIGH, False)
where = op("where", "condition input other", doc="`input` where `condition` holds, else `other`.",
           impl="where", numpy=choosing.where, rule=where_rule, ref=Each(scalars.chosen),
           traits=Trait.MOVES, image=lambda params, condition, x, y: (min(x[0], y[0]), max(x[1], y[1])),
           slopes=dict(input=Each(scalars.where_slope(True)), other=Each(scalars.where_slope(False))),
           vjp=dict(input=lambda F, g, condition: F.where(condition, g, 0),
                    other=lambda F, g, condition: F.where(condition, 0, g)))  # fmt: skip

# rounding: piecewise constant, so the gradient is 0
_NO_COMPLEX = refusing_complex(pointwise_no_bool, "{name} is not supported for complex inputs")
for _name, _where, _whole, _rule in (
    ("floor", "down", math.floor, _NO_COMPLEX),
    ("ceil", "up", math.ceil, _NO_COMPLEX),
    ("trunc", "towards 0", math.trunc, _NO_COMPLEX),
    ("round", "to the nearest, halves to the even one", builtins.round, pointwise_no_bool),
):
    op(
        _name, "input", doc=f"Each number as a whole one, rounded {_where}.", impl=_name, rule=_rule, rounding=EXACT,
        cpu_name=f"{_name}_vml_cpu", traits=Trait.IDEMPOTENT | Trait.ORDERS, domain=(0.55, 0.95),
        ref=Each(scalars.rounder(_whole)), slopes=dict(input=Each(scalars.NOTHING)), vjp=dict(input=lambda F, g: g * 0),
    )  # fmt: skip
