"""Numerically stable forms: the same real function, right where the written form overflows or loses its digits.

XLA and Inductor leave these as written. The licence is REASSOCIATES: the error level never rises. `+ 0.0` is there for
zeros, which are +0 in the form on the left.
"""

from __future__ import annotations

from graphc.passes.rules.operands import floating
from graphc.rewrite import REASSOCIATES
from graphc.rewrite import RewriteRule as R

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
)
