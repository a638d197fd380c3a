"""Equations of real numbers that are none of floats: what textbooks simplify, and the optimizer leaves as it is.

They are never applied. `graphc.explain` tells where a program has such a form, and why it was kept; the reason, numbers
and what would have to be proven, is found by machine (graphc.rewrite.licences).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from graphc.ops.samples import Floats
from graphc.passes.rules.operands import floating
from graphc.rewrite import ASSUMES
from graphc.rewrite import RewriteRule as R


def _alike(x: Any, y: Any) -> bool:
    return floating(x) and x.shape == y.shape


def _zeros(F: Any, x: Any) -> Any:
    return F.full(shape=x.shape, value=0.0, dtype=x.dtype)


def _ones(F: Any, x: Any) -> Any:
    return F.full(shape=x.shape, value=1.0, dtype=x.dtype)


def _tempting(
    name: str, left: Callable[..., Any], right: Callable[..., Any], when: Callable[..., bool] = floating
) -> R:  # fmt: skip
    return R(name, ASSUMES, left, right, when=when, example={"x": Floats((4,)), "y": Floats((4,))})


TEMPTING = (
    _tempting("x - x = 0", lambda F, x: x - x, _zeros),
    _tempting("x * 0 = 0", lambda F, x: x * 0, _zeros),
    _tempting("x + 0 = x", lambda F, x: x + 0, lambda F, x: x),
    _tempting("x / x = 1", lambda F, x: x / x, _ones),
    _tempting("x * y / y = x", lambda F, x, y: (x * y) / y, lambda F, x, y: x, _alike),
    _tempting("x / y * y = x", lambda F, x, y: (x / y) * y, lambda F, x, y: x, _alike),
    _tempting("x + y - y = x", lambda F, x, y: (x + y) - y, lambda F, x, y: x, _alike),
    _tempting("x - y + y = x", lambda F, x, y: (x - y) + y, lambda F, x, y: x, _alike),
    _tempting("exp(log(x)) = x", lambda F, x: F.exp(F.log(x)), lambda F, x: x),
    _tempting("exp(x) * exp(y) = exp(x + y)", lambda F, x, y: F.exp(x) * F.exp(y), lambda F, x, y: F.exp(x + y)),
    _tempting("log(x) + log(y) = log(x * y)", lambda F, x, y: F.log(x) + F.log(y), lambda F, x, y: F.log(x * y)),
    _tempting("log(x) - log(y) = log(x / y)", lambda F, x, y: F.log(x) - F.log(y), lambda F, x, y: F.log(x / y)),
    _tempting("sqrt(x)^2 = x", lambda F, x: F.square(F.sqrt(x)), lambda F, x: x),
    _tempting("sqrt(x) * sqrt(x) = x", lambda F, x: F.sqrt(x) * F.sqrt(x), lambda F, x: x),
    _tempting("sqrt(x) * sqrt(y) = sqrt(x * y)", lambda F, x, y: F.sqrt(x) * F.sqrt(y), lambda F, x, y: F.sqrt(x * y)),
    _tempting("x / sqrt(x) = sqrt(x)", lambda F, x: x / F.sqrt(x), lambda F, x: F.sqrt(x)),
    _tempting("(x - y)^2 = x^2 - 2 x y + y^2", lambda F, x, y: F.square(x - y),
              lambda F, x, y: F.square(x) - x * y * 2.0 + F.square(y)),
    _tempting("(x + y) * (x - y) = x^2 - y^2", lambda F, x, y: (x + y) * (x - y),
              lambda F, x, y: F.square(x) - F.square(y)),
)  # fmt: skip
