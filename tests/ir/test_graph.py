"""The graph as a value: text round trip, networkx, checker, drawing."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

import eager as torch
import graphc
from graphc.errors import GraphError, ParseError
from graphc.ir import Builder, Graph, Node, Ref
from graphc.ir import builder as builder_module
from graphc.ops import OPS, Literal
from graphc.ops.aval import Aval, results_of
from graphc.ops.dtypes import FLOAT32, FLOAT64, SHORT_NAMES
from tests.ops.cases import Case, each_case, every_case

F32 = FLOAT32


def small() -> Graph:
    b = Builder()
    x, w = b.input("x", Aval((3, 4), F32)), b.input("w", Aval((4,), F32))
    b.where, b.scope = "model.py:12", "head"
    y = b.language.tanh(x @ w + 1.5)
    total = b.language.sum(y * y, axis=(0,), keepdims=False)
    return b.graph("small", {"loss": Ref(total.id), "aux": (Ref(y.id), None, 2.5, "text", [True])}).check()


@each_case(every_case())
def test_every_op_prints_and_reads_back(case: Case, rng):
    b = Builder()
    inputs = [b.input(f"x{i}", Aval(a.shape, a.dtype)) for i, a in enumerate(case.arrays(rng))]
    results = results_of(b.apply(case.op, inputs, case.sample.params))
    graph = b.graph("f", tuple(Ref(s.id) for s in results)).check()
    assert Graph.parse(str(graph)) == graph
    assert str(Graph.parse(str(graph))) == str(graph)


def test_text_keeps_locations_results_and_names():
    graph = small()
    read = Graph.parse(str(graph))
    assert read == graph
    assert str(read) == str(graph)
    assert read.result == graph.result
    assert [n.where for n in read.operations()] == [n.where for n in graph.operations()]
    assert next(read.operations()).scope == "head"


@pytest.mark.parametrize("dtype", list(SHORT_NAMES), ids=str)
def test_constants_round_trip_by_bits(dtype):
    values = np.array([0, 1, 3]).astype(dtype)
    if dtype.kind == "f":
        values = np.array([0.1, -0.0, np.inf, -np.inf, np.nan, 1e-8], dtype)
    b = Builder()
    s = b.constant(values)
    graph = b.graph("k", Ref(s.id))
    read = Graph.parse(str(graph))
    assert read.nodes[read.outputs[0]].params["value"] == Literal(values)


def test_constant_with_a_nan_payload_round_trips():
    odd = np.array([0x7FC00123], np.uint32).view(np.float32)
    b = Builder()
    graph = b.graph("k", Ref(b.constant(odd).id))
    read = Graph.parse(str(graph))
    assert read.nodes[read.outputs[0]].params["value"].array.tobytes() == odd.tobytes()


def test_literals_compare_by_bits():
    assert Literal(np.array(0.0)) != Literal(np.array(-0.0))
    assert Literal(np.array(1)) != Literal(np.array(True))
    assert Literal(np.array(np.nan)) == Literal(np.array(np.nan))


def test_nx_is_an_acyclic_digraph_on_which_algorithms_run():
    graph = small()
    assert isinstance(graph.nx, nx.DiGraph)
    assert nx.is_directed_acyclic_graph(graph.nx)
    assert list(nx.topological_sort(graph.nx))
    loss = graph.outputs[0]
    assert set(graph.inputs) <= nx.ancestors(graph.nx, loss)
    assert nx.dag_longest_path(graph.nx)[-1] == loss
    assert graph.nx.nodes[loss]["node"] is graph.nodes[loss]
    with pytest.raises(nx.NetworkXError):
        graph.nx.add_edge(0, 1)


def test_repeated_operands_survive_the_digraph():
    graph = graphc.trace(lambda x: x * x, torch.zeros(3))
    node = graph.nodes[graph.outputs[0]]
    assert node.inputs == (0, 0)
    assert list(graph.nx.edges) == [(0, node.id)]


def test_equality_ignores_ids_and_locations_only():
    graph = small()
    renumbered = Graph.parse(str(graph).replace("v2", "v92").replace("model.py:12", "other.py:1"))
    assert renumbered == graph and hash(renumbered) == hash(graph)
    assert Graph.parse(str(graph).replace("tanh", "sin")) != graph


def test_node_is_frozen():
    node = next(small().operations())
    with pytest.raises(AttributeError):
        node.op = OPS["add"]  # type: ignore[misc]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "single 'def'"),
        ("x = 1", "single 'def'"),
        ("def f(x: f32[2]):\n    return y\n", "not a value"),
        ("def f(x: f99[2]):\n    return x\n", "expected a type"),
        ("def f(x: f32[2]):\n    v1: f32[2] = explode(x)\n    return v1\n", "unknown op 'explode'"),
        ("def f(x: f32[2]):\n    v1: f32[3] = exp(x)\n    return v1\n", "operands give f32[2]"),
        ("def f(x: f32[2]):\n    v1: f32[2] = add(x)\n    return v1\n", "1 operands"),
        ("def f(x: f32[2]):\n    v1: f32[2] = add(x, v2)\n    v2: f32[2] = exp(x)\n    return v1\n", "earlier value"),
        ("def f(x: f32[2]):\n    v1: f32[2] = exp(x)\n    v1: f32[2] = exp(x)\n    return v1\n", "assigned twice"),
        ("def f(x: f32[2], y: f64[2]):\n    v2: f64[2] = add(x, y)\n    return v2\n", "not promoted"),
        (
            "def f(x: f32[2], i: i64[2]):\n    v2: f32[2] = index(x, i, i, spec=(0, 1))\n    return v2\n",
            "too many indices for tensor of dimension 1",
        ),
        ("def f(x: f32[2]):\n    v1: f32 = sum(x)\n    return v1\n", "takes parameters"),
        ("def f(x: f32[2]):\n    __import__('os').system('true')\n    return x\n", "expected 'name: type"),
        ("def f(x: f32[2]):\n    v1: f32[2] = constant(value='####')\n    return v1\n", "not the bytes"),
    ],
)
def test_texts_that_are_no_graph_are_refused(text, message):
    with pytest.raises(ParseError, match=message.replace("[", r"\[").replace("(", r"\(")):
        Graph.parse(text)


def test_checker_names_the_node_that_is_wrong():
    graph = small()
    bad = dict(graph.nodes)
    victim = next(n for n in bad.values() if n.op.name == "tanh")
    bad[victim.id] = Node(victim.id, victim.op, victim.inputs, victim.params, (Aval((3,), FLOAT64),), victim.where)
    with pytest.raises(GraphError, match=r"tanh \(v\d+, model.py:12\) is recorded as f64\[3\]"):
        graph.replace(bad, graph.result).check()


def test_graph_runs_on_numpy_and_checks_its_arguments():
    graph = small()
    x, w = np.ones((3, 4), F32), np.ones(4, F32)
    y = np.tanh(x @ w + F32.type(1.5))
    np.testing.assert_allclose(graph(x, w)["loss"], (y * y).sum(), rtol=1e-6)
    with pytest.raises(ValueError, match=r"argument 'w' must be f32\[4\], got f64\[4\]"):
        graph(x, w.astype(np.float64))
    with pytest.raises(TypeError, match="takes 2 arrays"):
        graph(x)


def test_errors_on_numpy_name_the_node_and_the_users_line(declare):
    from graphc.ops.rules import pointwise_float

    def fail(x):
        raise ArithmeticError("no")

    declare("failing_here", "x", impl=lambda xp, x: fail(x), numpy=fail, rule=pointwise_float)
    b = Builder()
    x, i = b.input("x", Aval((2,), F32)), b.input("i", Aval((1,), np.dtype(np.int64)))
    b.where = "model.py:7"
    y = b.language.index(x, i, spec=(0,))
    b.where = "model.py:8"
    graph = b.graph("f", Ref(b.language.failing_here(y).id))
    with pytest.raises(IndexError, match=r"index out of range in self \(at model.py:7\)"):
        graph(np.zeros(2, F32), np.array([5]))
    with pytest.raises(ArithmeticError, match="no") as caught:
        graph(np.zeros(2, F32), np.array([1]))
    assert caught.value.__notes__ == ["in f(), f32[1] = failing_here (v3) at model.py:8"]


def test_drawing_is_svg_that_names_every_operation():
    import xml.etree.ElementTree as ElementTree

    svg = small().to_svg()
    root = ElementTree.fromstring(svg)
    assert root.tag.endswith("svg")
    for name in ("matmul", "tanh", "sum", "model.py:12"):
        assert name in svg


def test_large_constants_are_left_out_of_what_people_read():
    def with_constant(n: int) -> Graph:
        builder = Builder()
        x = builder.input("x", Aval((n,), np.dtype(np.float32)))
        return builder.graph("f", Ref((x + builder.constant(np.arange(n, dtype=np.float32))).id))

    graph, small = with_constant(2000), with_constant(20)
    assert "'<8,000 bytes>'" in str(graph)
    assert len(str(graph)) < 300
    assert Graph.parse(graph.text()) == graph
    with pytest.raises(ParseError, match=r"leaves out.*graph\.text\(\)"):
        Graph.parse(str(graph))
    assert str(small) == small.text()
    assert Graph.parse(str(small)) == small


def test_an_append_that_is_interrupted_can_be_rolled_back(monkeypatch: pytest.MonkeyPatch):
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    builder = Builder()
    x = builder.input("x", Aval((2,), np.dtype(np.float32)))
    with monkeypatch.context() as during:
        during.setattr(builder_module, "Node", interrupted)
        with pytest.raises(KeyboardInterrupt):
            x + x
    builder.rollback(x.id + 1)
    assert [*builder.nodes] == [x.id]
