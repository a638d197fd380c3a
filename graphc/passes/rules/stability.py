"""Numerically stable forms: the same real function, right where the written form overflows or loses its digits.

XLA and Inductor leave most of these as written. The licence is REASSOCIATES: the error level never rises. `+ 0.0` is
there for zeros, which are +0 in the form on the left.

What has no rule, and why: exp(log(x)) and sqrt(x) sqrt(x) are nan for x < 0, x / x and x / y * y at 0, exp(x) exp(y)
is 0 * inf where x + y is finite; sqrt(sum(x * x)) without overflow takes a second pass, or float64, which is 3 times
slower.
"""

from __future__ import annotations

from typing import Any

from graphc.ops.samples import Full
from graphc.passes.rules.operands import floating, is_normal
from graphc.rewrite import REASSOCIATES, number
from graphc.rewrite import RewriteRule as R

CHEAP = 3  # operations: next to an exponential or a logarithm, a multiplication is nothing


def _has_quotient(x: Any, c: Any, d: Any) -> bool:
    return bool(number(c) and number(d)) and is_normal(x, number(c) / number(d))


def _one_line(x: Any, a: tuple[int, ...], k: bool) -> bool:
    """Whether sums along `a` meet `x` again line by line."""
    return floating(x) and len(a) == 1 and (k or len(x.shape) == 1)


RULES = (
    # before log1p: exp(x) is no -0. exp overflows
    R("log_of_one_and_exp", REASSOCIATES, lambda F, x: F.log(F.exp(x) + 1), lambda F, x: F.softplus(x), when=floating),
    R("log1p", REASSOCIATES, lambda F, x: F.log(x + 1), lambda F, x: F.log1p(x) + 0.0),  # log(1 + x) loses x below eps
    R("expm1", REASSOCIATES, lambda F, x: F.exp(x) - 1, lambda F, x: F.expm1(x) + 0.0),
    R("softplus", REASSOCIATES, lambda F, x: F.log1p(F.exp(x)), lambda F, x: F.softplus(x), when=floating),
    R(
        "log_sigmoid",
        REASSOCIATES,
        lambda F, x: F.log(F.sigmoid(x)),
        lambda F, x: F.neg(F.softplus(F.neg(x))),
        when=floating,
    ),
    R("one_minus_sigmoid", REASSOCIATES, lambda F, x: 1 - F.sigmoid(x), lambda F, x: F.sigmoid(F.neg(x))),
    R(
        "log_softmax",
        REASSOCIATES,
        lambda F, x, a: F.log(F.softmax(x, axis=a)),
        lambda F, x, a: F.log_softmax(x, axis=a),
        when=floating,  # a logarithm of complex numbers has many branches
        example={"a": 1},
    ),
    R(  # what the gradient of log_softmax holds
        "softmax",
        REASSOCIATES,
        lambda F, x, a: F.exp(F.log_softmax(x, axis=a)),
        lambda F, x, a: F.softmax(x, axis=a),
        example={"a": 1},
    ),
    R(
        "logsumexp",
        REASSOCIATES,
        lambda F, x, a, k: F.log(F.sum(F.exp(x), axis=a, keepdims=k)),
        lambda F, x, a, k: F.logsumexp(x, axis=a, keepdims=k),
        example={"a": (1,), "k": False},
    ),
    # x * x overflows, and is 0 below 1e-23 in float32
    R("log_of_square", REASSOCIATES, lambda F, x: F.log(F.square(x)), lambda F, x: F.log(F.abs(x)) * 2, when=floating,
      worth=CHEAP),
    R("log_of_root", REASSOCIATES, lambda F, x: F.log(F.sqrt(x)), lambda F, x: F.log(x) * 0.5, when=floating),
    R("log_of_exp", REASSOCIATES, lambda F, x: F.log(F.exp(x)), lambda F, x: x, when=floating),
    R("root_of_square", REASSOCIATES, lambda F, x: F.sqrt(F.square(x)), lambda F, x: F.abs(x), when=floating),
    R("log_of_one_minus_exp", REASSOCIATES, lambda F, x: F.log(1 - F.exp(x)),
      lambda F, x: F.log(F.neg(F.expm1(x))), when=floating, example={"x": Full((3, 4), -0.7)}),
    R("logistic", REASSOCIATES, lambda F, x: F.reciprocal(F.exp(x) + 1), lambda F, x: F.sigmoid(F.neg(x)),
      when=floating),
    R("softmax_as_written", REASSOCIATES, lambda F, x, a, k: F.exp(x) / F.sum(F.exp(x), axis=a, keepdims=k),
      lambda F, x, a, k: F.softmax(x, axis=a[0]), when=_one_line, example={"a": (1,), "k": True}),
    # the gradient of log(softmax(x)): softmax(x) may be 0
    R("slope_of_log_softmax", REASSOCIATES,
      lambda F, x, g, t, a: F.softmax(x, axis=a) * (g / F.softmax(x, axis=a) - t),
      lambda F, x, g, t, a: g - F.softmax(x, axis=a) * t, when=floating, example={"a": 1}),
    R("slope_of_log_softmax_of_one", REASSOCIATES,
      lambda F, x, t, a: F.softmax(x, axis=a) * (F.reciprocal(F.softmax(x, axis=a)) - t),
      lambda F, x, t, a: 1 - F.softmax(x, axis=a) * t, when=floating, example={"a": 1}),
    # x * c overflows where x * (c / d) does not
    R("mul_div_constants", REASSOCIATES, lambda F, x, c, d: (x * c) / d,
      lambda F, x, c, d: x * (number(c) / number(d)), numbers="c d", when=_has_quotient,
      example={"c": Full((), 1.5), "d": Full((), 0.7)}),
    R("div_mul_constants", REASSOCIATES, lambda F, x, c, d: (x / d) * c,
      lambda F, x, c, d: x * (number(c) / number(d)), numbers="c d", when=_has_quotient,
      example={"c": Full((), 1.5), "d": Full((), 0.7)}),
)  # fmt: skip
