"""What rewriting leaves undone: rules that undo each other end, keys that decide nothing are not made."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from graphc.ir import Builder, Graph, Node, Ref
from graphc.ops.aval import Aval
from graphc.ops.dtypes import FLOAT32, INT64
from graphc.passes import optimize
from graphc.passes.cse import eliminate_common_subexpressions
from graphc.passes.rules import ALL
from graphc.rewrite import EXACT, RewriteRule, RuleIndex, driver, rewrite
from graphc.rewrite.driver import FORMS
from graphc.rewrite.match import match
from tests.work import lines_run

X = Aval((4,), FLOAT32)
LINES = 450  # of Python, for each node of a graph, that all passes together may run


def fired(value: object, rules: list[RewriteRule]) -> set[str]:
    """The rules that fire at a product by a constant `value`."""
    builder = Builder()
    product = builder.input("x", X) * builder.constant(value, FLOAT32)
    _, firings = rewrite(builder.graph("f", Ref(product.id)), RuleIndex(rules))
    return {firing.rule for firing in firings}


ONE = [rule for rule in ALL if rule.name in ("mul_one", "mul_minus_one")]


@pytest.mark.parametrize(("value", "names"), [(1.0, {"mul_one"}), (-1.0, {"mul_minus_one"}), (1.5, set()),
                                               (np.array([1, 1, 1, 2]), set())])  # fmt: skip
def test_rules_that_ask_for_a_number_fire_for_that_number_only(value: object, names: set[str]):
    assert fired(value, ONE) == names


@pytest.mark.parametrize(("number", "fires"), [(-0.0, True), (0.0, False), (1.0, False)])
def test_signs_of_zeros_are_told_apart(number: float, fires: bool):
    builder = Builder()
    total = builder.input("x", X) + number
    _, firings = rewrite(builder.graph("f", Ref(total.id)), RuleIndex(ALL))
    assert ("add_minus_zero" in [f.rule for f in firings]) == fires


# --- the index of rules


@pytest.mark.parametrize("seed", range(20))
def test_the_index_leaves_out_no_rule_that_matches(seed: int):
    draw = random.Random(seed)
    builder = Builder()
    F = builder.language
    values = [
        builder.input("x", X),
        builder.input("y", X),
        builder.constant(1.0, FLOAT32),
        builder.constant(-0.0, FLOAT32),
    ]
    values.append(F.broadcast_to(values[2], shape=X.shape))
    for _ in range(200):
        op = draw.choice((F.add, F.sub, F.mul, F.div, F.maximum, F.neg, F.abs, F.exp, F.log, F.square, F.reciprocal))
        count = 1 if op in (F.neg, F.abs, F.exp, F.log, F.square, F.reciprocal) else 2
        values.append(op(*(draw.choice(values[-8:]) for _ in range(count))))
    index = RuleIndex(ALL)
    matches = 0
    for node in builder.nodes.values():
        found = index.candidates(node, builder.nodes)
        matching = [rule for rule in ALL if match(rule.left, builder, node.id, {}) is not None]
        assert [rule for rule in found if rule in matching] == matching
        matches += len(matching)
    assert matches > 5


def test_rules_are_tried_only_where_the_operands_may_match(monkeypatch: pytest.MonkeyPatch):
    builder = Builder()
    x, y = builder.input("x", X), builder.input("y", X)
    for _ in range(50):
        x = builder.language.tanh(x * y) - y
    monkeypatch.setattr(driver, "applies", None)  # which nobody calls
    assert rewrite(builder.graph("f", Ref(x.id)), RuleIndex(ALL))[1] == []


# --- rules that undo each other or themselves


def rule(name: str, left: Callable[..., Any], right: Callable[..., Any]) -> RewriteRule:
    return RewriteRule(name, EXACT, left, right)


@pytest.mark.parametrize("rules", [
    [rule("turn", lambda F, x, y: F.sub(x, y), lambda F, x, y: F.sub(y, x))],
    [rule("below", lambda F, x, y: F.sin(F.sub(x, y)), lambda F, x, y: F.sin(F.sub(y, x)))],
    [rule("deep", lambda F, x, y: F.exp(F.sin(F.sub(x, y))), lambda F, x, y: F.exp(F.sin(F.sub(y, x))))],
    [rule("there", lambda F, x: F.sin(F.neg(x)), lambda F, x: F.cos(F.abs(x))),
     rule("back", lambda F, x: F.cos(F.abs(x)), lambda F, x: F.sin(F.neg(x)))],
    [rule("further", lambda F, x, y: F.sub(x, y), lambda F, x, y: F.sub(y, F.reshape(x, shape=(4,))))],
], ids=lambda rules: rules[-1].name)  # fmt: skip
def test_they_come_to_an_end(rules: list[RewriteRule]):
    builder = Builder()
    F = builder.language
    x, y = builder.input("x", X), builder.input("y", X)
    graph = builder.graph("f", Ref(F.add(F.exp(F.sin(x - y)), F.sin(F.neg(x))).id))
    _, firings = rewrite(graph, RuleIndex(rules))
    assert 1 <= len(firings) <= 2 * FORMS


# --- constants


def test_equal_scalars_share_a_constant_and_others_do_not():
    builder = Builder()
    groups = [[1, 1], [1.0, 1.0], [True], [0.0, 0.0], [-0.0], [1.5], [-1.5], [complex(1, 0.0)], [complex(1, -0.0)]]
    ids = [{builder.number(value, np.dtype(np.complex64)).id for value in group} for group in groups[7:]]
    assert all(len(found) == 1 for found in ids) and len(set.union(*ids)) == 2
    by_group = [{builder.number(value, FLOAT32).id for value in group} for group in groups[:7]]
    assert all(len(found) == 1 for found in by_group)
    # 1, 1.0 and True are the same bits in float32, and different ones in what they are cast from
    assert len(set.union(*by_group)) == 5
    assert builder.number(1, INT64).id not in set.union(*by_group)


def test_scalars_of_an_attempt_that_is_taken_back_are_made_anew():
    builder = Builder()
    mark = builder.next_id
    builder.number(2.5, FLOAT32)
    builder.rollback(mark)
    symbol = builder.number(2.5, FLOAT32)
    assert builder.nodes[symbol.id].params["value"].number == 2.5


# --- common subexpressions


def slices(n: int) -> Graph:
    """Two times `n` slices of one tensor, all different within each half."""
    builder = Builder()
    x = builder.input("x", Aval((n + 1,), FLOAT32))
    F = builder.language
    parts = [F.slice(x, start=(k % n,), stop=(k % n + 1,), step=(1,)) for k in range(2 * n)]
    return builder.graph("f", tuple(Ref(s.id) for s in parts))


def test_operations_on_the_same_operands_are_told_apart_by_their_parameters():
    found = eliminate_common_subexpressions(slices(10))
    assert len(found) == 1 + 10
    assert found.outputs[:10] == found.outputs[10:]


def test_many_operations_on_one_operand_take_linear_work():
    few, many = slices(100), slices(800)
    lines = lines_run(lambda: eliminate_common_subexpressions(few))
    assert lines_run(lambda: eliminate_common_subexpressions(many)) < 9 * lines


def test_keys_are_made_only_of_operations_that_have_the_same_operands(monkeypatch: pytest.MonkeyPatch):
    builder = Builder()
    x = builder.input("x", X)
    for _ in range(50):
        x = builder.language.tanh(x)
    graph = builder.graph("f", Ref(x.id))

    def key(*_):
        raise AssertionError("asked for a key")

    monkeypatch.setattr(Node, "key", key)
    assert eliminate_common_subexpressions(graph) is graph


# --- all passes


def straight(n: int) -> Graph:
    """`n` operations on random ones of the latest values: nothing repeats, and little is to be found."""
    draw = random.Random(0)
    builder = Builder()
    F = builder.language
    values = [builder.input("x", X), builder.input("y", X)]
    for _ in range(n):
        a, b = draw.sample(values[-20:], 2)
        values.append(draw.choice((F.add, F.sub, F.mul, lambda a, b: F.tanh(a), lambda a, b: a * 0.5))(a, b))
    return builder.graph("f", tuple(Ref(s.id) for s in values[-8:]))


def test_passes_take_linear_work():
    few, many = straight(250), straight(1_000)
    optimize(few)  # which looks rules up
    lines = {graph: lines_run(lambda graph=graph: optimize(graph)) for graph in (few, many)}
    assert lines[few] < LINES * len(few)
    assert lines[many] < 5 * lines[few]
