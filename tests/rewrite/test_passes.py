"""What the passes that are no rules do, and what they leave alone."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from graphc.ir import Builder, Graph, Ref
from graphc.ops.aval import Aval
from graphc.ops.dtypes import FLOAT32, INT64
from graphc.passes import optimize
from graphc.passes.cse import eliminate_common_subexpressions
from graphc.passes.dce import eliminate_dead_code
from graphc.passes.fold import fold_constants
from graphc.passes.settled import settling
from graphc.rewrite.driver import DEPTH, changed


def names(graph: Graph) -> list[str]:
    return [node.op.name for node in graph.operations()]


def test_questions_to_the_data_are_not_merged():
    b = Builder()
    x, expected = b.input("x", Aval((2,), INT64)), b.input("expected", Aval((2,), INT64))
    twice = [b.language.decided(x, expected) for _ in range(2)]
    graph = b.graph("f", tuple(Ref(s.id) for s in twice))
    assert names(eliminate_common_subexpressions(graph)) == ["decided", "decided"]


def test_what_is_asked_of_the_data_is_asked_though_nothing_reads_it():
    b = Builder()
    x, expected = b.input("x", Aval((2,), INT64)), b.input("expected", Aval((2,), INT64))
    b.language.decided(x, expected)
    b.language.neg(x)
    assert names(eliminate_dead_code(b.graph("f", Ref(x.id)))) == ["decided"]


def test_an_operation_on_constants_is_its_value():
    b = Builder()
    total = b.constant(np.array([1.0, 2.0], np.float32)) + b.constant(np.array([2.0, 3.0], np.float32))
    (node,) = fold_constants(b.graph("f", Ref(total.id))).nodes[total.id].params.values()
    assert node.array.tolist() == [3.0, 5.0]


def test_what_fails_is_left_to_fail_when_the_program_runs():
    b = Builder()
    quotient = b.language.floor_divide(b.constant(np.array([1, 2])), b.constant(np.array([1, 0])))
    assert names(fold_constants(b.graph("f", Ref(quotient.id))))[-1] == "floor_divide"


@pytest.mark.parametrize(("values", "op"), [((0.0, 0.0), "full"), ((0.0, -0.0), "constant"), ((1.0, 2.0), "constant")])
def test_a_folded_value_is_one_number_only_by_bits(values: tuple[float, float], op: str):
    b = Builder()
    negative = b.language.neg(b.constant(-np.array(values, np.float32)))
    folded = fold_constants(b.graph("f", Ref(negative.id)))
    assert folded.nodes[negative.id].op.name == op
    assert np.array_equal(np.signbit(folded()), np.signbit(np.array(values, FLOAT32)))


# --- nodes that rules are asked about again


def test_rules_are_asked_again_as_far_above_a_change_as_they_look_down():
    b = Builder()
    ids = [b.input("x", Aval((2,), FLOAT32)).id]
    for _ in range(DEPTH + 3):
        ids.append(b.language.exp(b.symbol(ids[-1])).id)
    graph = b.graph("f", Ref(ids[-1]))
    first = graph.nodes[ids[1]]
    after = graph.replace({**graph.nodes, first.id: dataclasses.replace(first, where="elsewhere")}, graph.result)
    assert changed(graph, after) == {*ids[1 : DEPTH + 2]}


# --- passes that need not be asked again


def chain() -> Graph:
    b = Builder()
    x = b.input("x", Aval((2,), FLOAT32))
    return b.graph("f", Ref(b.language.tanh(b.language.exp(x)).id))


def negated(graph: Graph) -> Graph:
    """The graph with another node at its end."""
    b = Builder(graph.nodes)
    return graph.replace(b.nodes, Ref(b.language.neg(b.symbol(graph.outputs[0])).id))


def test_a_pass_is_not_asked_again_about_a_graph_in_which_it_found_nothing():
    asked: list[int] = []

    def idle(graph: Graph) -> Graph:
        asked.append(len(graph))
        return graph

    optimize(chain(), passes=[("idle", idle), ("still idle", idle), ("change", negated), ("idle", idle)])
    assert asked == [3, 4]
    assert len(optimize(chain(), passes=[("change", negated)] * 2)) == 5  # it finds something in what it has made


@pytest.mark.parametrize("run", [eliminate_common_subexpressions, eliminate_dead_code, fold_constants])
def test_passes_that_settle_find_nothing_in_what_they_have_made(run):
    b = Builder()
    x, F = b.input("x", Aval((2,), FLOAT32)), b.language
    numbers = [F.neg(F.neg(b.constant(2.0, FLOAT32))) for _ in range(2)]
    F.exp(x)
    made = run(b.graph("f", Ref((F.tanh(x + numbers[0]) * F.tanh(x + numbers[1])).id)))
    assert run(made) is made
    again = made.replace(made.nodes, made.result)  # of which nothing is known
    assert run(again) is again


def test_what_settles_is_run_once():
    calls: list[Graph] = []
    run = settling(lambda graph: calls.append(graph) or negated(graph))
    once = run(chain())
    assert run(once) is once
    assert len(calls) == 1
