"""Wrong rewrite rules: equations that hold for some numbers, shapes and parameters, and not for all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import eager as torch
from compare.selftest.fault import Expected, Fault, Trials
from compare.selftest.planting import Plant, attribute
from compare.selftest.trials import numbers, program
from graphc.ops.dtypes import INT64
from graphc.passes import pipeline
from graphc.passes.rules import scattering
from graphc.rewrite import EXACT, REASSOCIATES, Licence
from graphc.rewrite import RewriteRule as R

LAYER = "rewrite rules"


def _fault(rule: R, trials: Trials) -> Fault:
    plant: Plant = lambda: attribute(pipeline, "ALL", (rule, *(r for r in pipeline.ALL if r.name != rule.name)))
    return Fault(f"rule {rule.name}", LAYER, plant, Expected(rule=rule.name), trials)


def _new(
    name: str, left: Callable[..., Any], right: Callable[..., Any], trials: Trials, licence: Licence = EXACT,
    **options: Any,
) -> Fault:  # fmt: skip
    """A rule that is not in the tables."""
    return _fault(R(name, licence, left, right, **options), trials)


def altered(name: str, trials: Trials, **parts: Any) -> Fault:
    """A rule of the tables with another part: `right`, `when`."""
    rule = next(r for r in pipeline.ALL if r.name == name)
    numbers_of = " ".join(v for v in rule.variables if _is_number(rule.left, v))
    given = {"right": rule.right, "when": rule.when, **parts}
    changed = R(name, rule.licence, rule.source, given["right"], when=given["when"], numbers=numbers_of)
    return _fault(changed, trials)


def _is_number(pattern: Any, name: str) -> bool:
    if getattr(pattern, "number", False):
        return pattern.name == name
    return any(_is_number(x, name) for x in getattr(pattern, "operands", ()))


_x, _y = numbers(3), numbers(3, seed=6)
_square = numbers(3, 3)
_cube = numbers(2, 2, 2)
_signed = np.array([1.0, -2.0, 0.5], np.float32)
_large = np.array([200.0, -200.0, 1.0], np.float32)


def _filled(F: Any, x: Any, value: float) -> Any:
    return F.full(shape=x.shape, value=value, dtype=x.dtype)


FAULTS: tuple[Fault, ...] = (
    altered("cumsum_of_one", program(lambda x: torch.cumsum(torch.nn.functional.pad(x[:1], (2, 3)), 0), _x),
             right=lambda F, v, b, e, n, a, r: scattering._running(F, v, e, b, n, a, r)),
    altered("scatter_padded",
             program(lambda x: torch.func.grad(lambda x: (torch.sort(x).values[1:] ** 2).sum())(x), _x),
             right=lambda F, z, i, v, b, e, n, a: F.scatter(z, scattering._part(F, i, a, 0, v.shape[a]), v, axis=a,
                                                            distinct=True)),
    # true of finite numbers only
    _new("planted_sub_self", lambda F, x: x - x, lambda F, x: _filled(F, x, 0),
         program(lambda x: x.exp() - x.exp(), _large * 10)),
    _new("planted_div_self", lambda F, x: x / x, lambda F, x: x * 0 + 1, program(lambda x: x / x, _signed * [1, 0, 1])),
    _new("planted_exp_log", lambda F, x: F.exp(F.log(x)), lambda F, x: x, program(lambda x: x.log().exp(), _signed)),
    _new("planted_sqrt_square", lambda F, x: F.sqrt(F.square(x)), lambda F, x: x,
         program(lambda x: x.square().sqrt(), _signed)),
    _new("planted_reciprocal_twice", lambda F, x: F.reciprocal(F.reciprocal(x)), lambda F, x: F.abs(x),
         program(lambda x: x.reciprocal().reciprocal(), _signed)),
    _new("planted_softplus", lambda F, x: F.log1p(F.exp(x)), lambda F, x: F.relu(x),
         program(lambda x: x.exp().log1p(), _x), REASSOCIATES),
    # wrong signs, wrong operands
    altered("add_neg", program(lambda x, y: x + (-y), _x, _y), right=lambda F, x, y: y - x),
    altered("sub_neg", program(lambda x, y: x - (-y), _x, _y), right=lambda F, x, y: x - y),
    altered("div_neg_neg", program(lambda x, y: (-x) / (-y), _x, _y), right=lambda F, x, y: F.neg(x / y)),
    altered("abs_neg", program(lambda x: (-x).abs(), _signed), right=lambda F, x: x),
    altered("relu_of_nonnegative", program(lambda x: torch.relu(x.abs()), _signed), right=lambda F, x: F.neg(x)),
    altered("where_not", program(lambda x, y: torch.where(torch.logical_not(x > y), x, y), _x, _y),
             right=lambda F, c, x, y: F.where(c, x, y)),
    altered("one_minus_sigmoid", program(lambda x: 1 - x.sigmoid(), _x), right=lambda F, x: F.sigmoid(x)),
    altered("mul_reciprocal", program(lambda x, y: x * y.reciprocal(), _x, _y), right=lambda F, x, y: x * y),
    altered("mul_mul_constants", program(lambda x: x * 1.5 * 0.7, _x), right=lambda F, x, c, d: x * c),
    altered("log_sigmoid", program(lambda x: x.sigmoid().log(), _x), right=lambda F, x: F.neg(F.softplus(x))),
    altered("expm1", program(lambda x: x.exp() - 1, _x), right=lambda F, x: F.expm1(x) + 1e-3),
    # a condition forgotten
    altered("permute_identity", program(lambda x: x.permute(1, 2, 0) * 1.5, _cube), when=None),
    altered("permute_permute", program(lambda x: x.permute(1, 2, 0).permute(0, 2, 1) * 1.5, _cube),
             right=lambda F, x, p, q: F.permute(x, dims=tuple(q[i] for i in p))),
    _new("planted_flip_flip", lambda F, x, a, b: F.flip(F.flip(x, axis=a), axis=b), lambda F, x, a, b: x,
         program(lambda x: x.flip(0).flip(1) * 1.5, _square), example={"a": (0,), "b": (1,)}),
    _new("planted_cast_cast", lambda F, x, d, e: F.cast(F.cast(x, dtype=d), dtype=e),
         lambda F, x, d, e: F.cast(x, dtype=e),
         program(lambda x: x.detach().to(torch.int32).to(torch.float32) * 1.5, _x), example={"d": INT64, "e": INT64}),
    _new("planted_sum_of_permuted", lambda F, x, p, a, k: F.sum(F.permute(x, dims=p), axis=a, keepdims=k),
         lambda F, x, p, a, k: F.sum(x, axis=a, keepdims=k), program(lambda x: x.T.sum(0), _square),
         example={"p": (1, 0), "a": (0,), "k": False}),
    _new("planted_product_of_broadcast", lambda F, x, s, a, k: F.prod(F.broadcast_to(x, shape=s), axis=a, keepdims=k),
         lambda F, x, s, a, k: x, program(lambda x: x.expand(4, 3).prod(0), _x),
         when=lambda x, s, a, k: len(s) == len(x.shape) + 1 and a == (0,) and not k,
         example={"s": (4, 3, 4), "a": (0,), "k": False}),
    _new("planted_reshape_permute", lambda F, x, p, s: F.reshape(F.permute(x, dims=p), shape=s),
         lambda F, x, p, s: F.reshape(x, shape=s), program(lambda x: x.T.reshape(9) * 1.5, _square),
         example={"p": (1, 0), "s": (12,)}),
    _new("planted_argsort_twice", lambda F, x, a, d: F.argsort(F.neg(x), axis=a, descending=d),
         lambda F, x, a, d: F.argsort(x, axis=a, descending=not d),
         program(lambda x: (-x).argsort(stable=True), np.array([1.0, 1.0, np.nan, 0.0], np.float32)),
         example={"a": 1, "d": False}),
    _new("planted_maximum_chain", lambda F, x, y: F.maximum(x, F.minimum(x, y)), lambda F, x, y: y,
         program(lambda x, y: torch.maximum(x, torch.minimum(x, y)), _x, _y)),
    _new("planted_add_zero", lambda F, x: x + 0.0, lambda F, x: x,
         program(lambda x: 1.0 / (x + 0.0), np.array([-0.0, 1.0], np.float32))),
)  # fmt: skip
