"""What the passes that are no rules do, and what they leave alone."""

from __future__ import annotations

import numpy as np
import pytest

from graphc.ir import Builder, Graph, Ref
from graphc.ops.aval import Aval
from graphc.ops.dtypes import FLOAT32, INT64
from graphc.passes.cse import eliminate_common_subexpressions
from graphc.passes.fold import fold_constants


def names(graph: Graph) -> list[str]:
    return [node.op.name for node in graph.operations()]


def test_questions_to_the_data_are_not_merged():
    b = Builder()
    x, expected = b.input("x", Aval((2,), INT64)), b.input("expected", Aval((2,), INT64))
    twice = [b.language.decided(x, expected) for _ in range(2)]
    graph = b.graph("f", tuple(Ref(s.id) for s in twice))
    assert names(eliminate_common_subexpressions(graph)) == ["decided", "decided"]


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
