"""Licences found by machine are those that are declared: of every rule, and of every pass."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import eager as torch
import graphc
from compare.judging.float64 import widen
from graphc.ir import Graph
from graphc.ops.samples import Floats, Full
from graphc.passes.pipeline import _passes
from graphc.passes.rules import ALL
from graphc.passes.rules.operands import floating
from graphc.passes.rules.tempting import TEMPTING
from graphc.passes.settings import Settings
from graphc.rewrite import ASSUMES, EXACT, REASSOCIATES, RewriteRule
from graphc.rewrite.licences import _examples, compared, contradiction, fact_for, licence_of, sides
from tests.depth import one_in

MODEST = {"square_sqrt_square"}  # sqrt(x * x) = |x| but for x whose square is denormal


def is_free(rule: RewriteRule) -> bool:
    """Whether the condition of `rule` holds whatever numbers its operands hold, but for constants."""
    return sides(rule, next(_examples(rule))[0]) is not None


def is_decided(graph: Graph) -> bool:
    """Whether a graph rounds as IEEE 754 says, each element by itself, on every machine: no sums, no functions."""
    for node in graph.operations():
        if node.op.nearest is not None:  # several results are right
            return False
        ulps = node.op.rounding.at([graph.nodes[i].type for i in node.inputs], node.params)
        if node.inputs and not node.op.view and (ulps is None or ulps > 1.0):
            return False
    return True


@pytest.mark.parametrize("rule", one_in(3, ALL, lambda rule: rule.name))
def test_licences_of_rules_are_declared(rule: RewriteRule) -> None:
    found = licence_of(rule)
    assert found.licence <= rule.licence, f"{rule.name} is no more than {found.licence.name}: {found.because}"
    both = sides(rule)
    if both is not None and all(map(is_decided, both)) and is_free(rule) and rule.name not in MODEST:
        assert found.licence == rule.licence, f"{rule.name} is {found.licence.name}, and declared {rule.licence.name}"


def test_most_exact_rules_are_decided() -> None:
    exact = [both for rule in ALL if rule.licence is EXACT and (both := sides(rule)) is not None]
    assert sum(all(map(is_decided, both)) for both in exact) > 0.7 * len(exact)


WRONG = {
    "add_zero": (EXACT, lambda F, x: x + 0, lambda F, x: x, REASSOCIATES),
    "mul_zero": (EXACT, lambda F, x: x * 0, lambda F, x: x - x, REASSOCIATES),
    "exp_log": (REASSOCIATES, lambda F, x: F.exp(F.log(x)), lambda F, x: x, ASSUMES),
    "cancelled": (REASSOCIATES, lambda F, x: x / x, lambda F, x: F.full(shape=x.shape, value=1.0, dtype=x.dtype),
                  ASSUMES),
    "multiplied out": (REASSOCIATES, lambda F, x, y: F.square(x - y),
                       lambda F, x, y: F.square(x) - x * y * 2.0 + F.square(y), ASSUMES),
    "product of sums": (REASSOCIATES, lambda F, x, y, z: (x - y) * (x - z),
                        lambda F, x, y, z: x * x - x * z - y * x + y * z, ASSUMES),
    "reassociated": (EXACT, lambda F, x, y, z: (x + y) + z, lambda F, x, y, z: x + (y + z), REASSOCIATES),
    "variance": (REASSOCIATES, lambda F, x: F.mean(F.square(x - F.mean(x, axis=(0,), keepdims=True)), axis=(0,),
                                                   keepdims=False),
                 lambda F, x: F.mean(F.square(x), axis=(0,), keepdims=False)
                 - F.square(F.mean(x, axis=(0,), keepdims=False)), ASSUMES),
    "off by a little": (REASSOCIATES, lambda F, x: x * 3.0, lambda F, x: x * 3.0001, ASSUMES),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_a_licence_that_is_too_generous_is_found(name: str) -> None:
    declared, left, right, true = WRONG[name]
    found = licence_of(RewriteRule(name, declared, left, right))
    assert found.licence == true > declared
    assert "not" in found.because


def test_a_condition_that_forgets_a_number_is_found() -> None:
    """x * c / c = x but for 0, infinity and nan: the grid has these among the numbers of constants."""
    example = {"c": Full((), 2.0)}
    wrong = RewriteRule("unscaled", REASSOCIATES, lambda F, x, c: (x * c) / c, lambda F, x, c: x, numbers="c",
                        when=floating, example=example)  # fmt: skip
    assert licence_of(wrong).licence is ASSUMES


def test_a_licence_that_is_too_modest_is_found() -> None:
    modest = RewriteRule("modest", REASSOCIATES, lambda F, x: F.neg(F.neg(x)), lambda F, x: x)
    both = sides(modest)
    assert both is not None and all(map(is_decided, both)) and licence_of(modest).licence is EXACT


FACTS = {
    "x - x = 0": "x is finite",
    "x * 0 = 0": "x is finite",
    "x + 0 = x": "x is no -0.0",
    "x / x = 1": "x is finite and not 0",
    "x * y / y = x": "y is finite and not 0",
    "exp(log(x)) = x": "x is not negative",
    "sqrt(x) * sqrt(y) = sqrt(x * y)": "x is not negative and y is not negative",
    "(x - y)^2 = x^2 - 2 x y + y^2": "",
    "(x + y) * (x - y) = x^2 - y^2": "",
}


def test_no_tempting_equation_is_one_that_could_be_a_rule() -> None:
    for rule in TEMPTING:
        assert licence_of(rule).licence is ASSUMES or contradiction(rule) or rule.name == "x + 0 = x", rule.name


@pytest.mark.parametrize("name", FACTS)
def test_what_would_have_to_be_proven(name: str) -> None:
    (rule,) = (r for r in TEMPTING if r.name == name)
    assert fact_for(rule) == FACTS[name]


# --- passes


def _programs() -> dict[str, tuple[Any, tuple[tuple[int, ...], ...]]]:
    m, v = (12, 12), (12,)
    return {
        "chain": (lambda a, b, x: a @ b @ x, (m, m, v)),
        "diagonals": (lambda d, a: torch.diag(d) @ a, (v, m)),
        "parts": (lambda a, b: (a @ b)[2:4].sum(0), (m, m)),
        "common factors": (lambda a, b, c: a @ b + a @ c, (m, m, m)),
        "like terms": (lambda x, y: x * y * x + 3.0 * x * y * x, (v, v)),
        "polynomial": (lambda x: x * x * x + 2.0 * x * x, (v,)),
        "quotients": (lambda x, y: torch.exp(x) * y / torch.exp(x), (v, v)),
        "logarithms": (lambda x: torch.log(1 + torch.exp(x)) - torch.log(torch.sigmoid(x)), (v,)),
        "twice": (lambda x, y: (x * y + x * y, -(x * -y), x * 1.0, (x + 0.0) * 2.0 * 4.0), (v, v)),
        "loop": (lambda x: _unrolled(x), (v,)),
        "pads": (lambda x: torch.cat([x[:3], x[3:]]) + torch.cat([x[1:], torch.zeros(1)]), (v,)),
        "cumulated": (lambda x: torch.cumsum(x * x, 0)[-1], (v,)),
        "sorted": (lambda x: torch.sort(x).values[0], (v,)),
        "system": (lambda a, x: torch.linalg.inv(a + 20 * torch.eye(12)) @ x, (m, v)),
        "scan": (lambda x, w: graphc.scan(lambda c, r: (torch.tanh(c + r @ w), c), x[0], x)[1], (m, m)),
    }  # fmt: skip


def _unrolled(x: Any) -> Any:
    for _ in range(6):
        x = torch.sin(x) * 2.0 + 1.0
    return x


@cache
def _traced(name: str) -> Graph:
    f, shapes = _programs()[name]
    return graphc.trace(f, *(torch.ones(*shape) for shape in shapes))


PASSES = {name: (licence, run) for name, licence, run in _passes(Settings())}


@pytest.mark.parametrize("name", PASSES)
def test_licences_of_passes_are_declared(name: str) -> None:
    declared, run = PASSES[name]
    if name == "simplify":  # of all rules, which have licences of their own
        declared = REASSOCIATES
    for program in _programs():
        graph = _traced(program)
        after = run(graph)
        if after is not graph:
            found = compared(graph, after, widen(graph))
            assert found.licence <= declared, f"{name} of {program}: {found.licence.name}, {found.because}\n{after}"


def test_a_pass_that_multiplies_out_is_found() -> None:
    x, y = torch.ones(8), torch.ones(8)
    left = graphc.trace(lambda x, y: (x - y) ** 2, x, y)
    right = graphc.trace(lambda x, y: x * x - 2 * x * y + y * y, x, y)
    assert compared(left, right, widen(left)).licence is ASSUMES


def test_each_kind_of_operand_is_tried() -> None:
    rule = RewriteRule("any", EXACT, lambda F, x: x * 1, lambda F, x: x, example={"x": Floats((0, 3))})
    assert licence_of(rule).licence is EXACT
    assert np.isnan(np.array([np.nan])).all()
