"""`graphc.codegen`: files that compute what the lowering computes, where graphc cannot be imported."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections import namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphc.autodiff import gradients
from graphc.errors import GraphError, LinAlgError
from graphc.ir import Builder, Graph, Ref
from graphc.lowering import lower
from graphc.lowering.standalone import codegen
from graphc.ops import OPS, Trait
from graphc.ops.aval import Aval, results_of
from graphc.ops.dtypes import FLOAT32, INT64, bfloat16
from tests import quick
from tests.ir import graphs
from tests.ops.cases import cases_of

ALLOWED = {
    "jax",
    "numpy",
    "scipy",
    "types",
    "functools",
    "math",
    "itertools",
    "base64",
    "builtins",
    "collections",
    "__future__",
    "typing",
    "ml_dtypes",
}
ALONE = """
import sys
sys.modules.update({"graphc": None, "eager": None, "tests": None})
import numpy as np
from generated import sampled
given = np.load("given.npz")
np.savez("got.npz", **{f"r{k}": np.asarray(r) for k, r in enumerate(sampled(*(given[name] for name in given.files)))})
"""
GROUPS = 24
# `draw` runs on the host, with samplers that are eager's: it is refused
PLAIN = [o.name for o in OPS.values() if not o.structured and not o.traits & Trait.COMMUNICATES and o.name != "draw"]


def test_draws_on_the_host_are_refused():
    graph, _, _ = every_case(["draw"])
    with pytest.raises(GraphError, match="cannot be written as source that stands by itself"):
        codegen(graph)


def every_case(names: list[str]) -> tuple[Graph, list[np.ndarray], list[str]]:
    """All cases of these ops in one graph, the arrays for its inputs, and the names of its results."""
    b, rng = Builder(), np.random.default_rng(0)
    arrays: list[np.ndarray] = []
    results: list[Ref] = []
    labels: list[str] = []
    for name in names:
        for case in cases_of(OPS[name]):
            drawn = case.arrays(rng)
            inputs = [b.input(f"x{len(arrays) + k}", Aval(a.shape, a.dtype)) for k, a in enumerate(drawn)]
            arrays += drawn
            found = results_of(b.apply(case.op, inputs, case.sample.params))
            results += [Ref(symbol.id) for symbol in found]
            labels += [case.id] * len(found)
    return b.graph("sampled", results).check(), arrays, labels


def assert_stands_alone(text: str) -> None:
    for node in ast.walk(ast.parse(text)):
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        assert {name.partition(".")[0] for name in names} <= ALLOWED, names


def function_of(graph: Graph) -> Any:
    text = codegen(graph)
    assert_stands_alone(text)
    scope: dict[str, Any] = {"__name__": "generated"}
    exec(compile(text, "generated", "exec"), scope)
    return scope.get(f"{graph.name}_") or scope[graph.name]


@pytest.mark.parametrize("group", [0, *(pytest.param(k, marks=pytest.mark.deep) for k in range(1, GROUPS))])
def test_every_op_runs_without_graphc(group: int, tmp_path: Path):
    graph, arrays, labels = every_case(PLAIN[group::GROUPS])
    text = codegen(graph)
    assert_stands_alone(text)
    (tmp_path / "generated.py").write_text(text)
    np.savez(tmp_path / "given.npz", *arrays)
    settings = {**os.environ, "XLA_FLAGS": quick.FLAGS}
    command = [sys.executable, "-c", ALONE]
    done = subprocess.run(command, cwd=tmp_path, env=settings, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    got = np.load(tmp_path / "got.npz")
    for k, (label, want) in enumerate(zip(labels, lower(graph)(*arrays), strict=True)):
        result, want = got[f"r{k}"], np.asarray(want)
        assert result.dtype == want.dtype and result.shape == want.shape, label
        np.testing.assert_allclose(result, want, rtol=1e-13, atol=1e-15, err_msg=label)


def test_what_talks_to_other_processes_does_not_stand_alone():
    line = "v1: f32[3] = all_reduce(x, ranks=(0,), reduction='sum')"
    graph = Graph.parse(f"def f(x: f32[3]):\n    {line}\n    return v1\n")
    with pytest.raises(GraphError, match=r"all_reduce at .* exchanges arrays with other processes"):
        codegen(graph)


def test_results_constants_and_structure():
    graph = graphs.network()
    x, w, c = (np.random.default_rng(k).normal(size=a.shape).astype(FLOAT32) for k, a in enumerate(graph.input_avals()))
    got, want = function_of(graph)(x, w, c), graph(x, w, c)
    np.testing.assert_allclose(got["loss"], want["loss"], rtol=1e-5)
    pair = got["rest"][0]
    assert type(pair).__name__ == "Pair" and pair._fields == ("first", "second")
    np.testing.assert_allclose(pair.first, want["rest"][0].first, rtol=1e-5)
    assert repr(pair.second) == repr(want["rest"][0].second)


def test_gradients():
    graph = gradients(graphs.loss(), ("w",))
    arrays = [np.random.default_rng(k).normal(size=a.shape).astype(FLOAT32) for k, a in enumerate(graph.input_avals())]
    np.testing.assert_allclose(function_of(graph)(*arrays)["w"], graph(*arrays)["w"], rtol=1e-4, atol=1e-6)


def test_loops_and_choices():
    graph = graphs.structured()
    f, x = function_of(graph), np.arange(1, 9, dtype=FLOAT32)
    for i in (0, 1):
        np.testing.assert_allclose(f(x, np.array(i)), graph(x, np.array(i)), rtol=1e-6)
    with pytest.raises(RuntimeError, match=r"no \(at m.py:3\)"):
        f(0 * x, np.array(0))


def test_checks_raise_the_same_errors_with_the_users_line():
    b = Builder()
    x, i = b.input("x", Aval((4,), FLOAT32)), b.input("i", Aval((2,), INT64))
    b.where = "model.py:7"
    y = b.language.index(x, i, spec=(0,))
    b.where = "model.py:9"
    z = b.language.required(y, y > 0, message="must be positive")
    graph = b.graph("f", Ref(z.id))
    f = function_of(graph)
    x = np.arange(4, dtype=FLOAT32)
    np.testing.assert_array_equal(f(x, np.array([1, 3])), [1, 3])
    with pytest.raises(IndexError, match=r"index out of range in self \(at model.py:7\)"):
        f(x, np.array([0, 9]))
    with pytest.raises(RuntimeError, match=r"must be positive \(at model.py:9\)"):
        f(x, np.array([0, 1]))


def test_error_classes_of_graphc_are_written_out():
    b = Builder()
    a = b.input("a", Aval((2, 2), FLOAT32))
    graph = b.graph("f", Ref(b.language.inv(a, checked=True).id))
    with pytest.raises(RuntimeError) as caught:
        function_of(graph)(np.zeros((2, 2), FLOAT32))
    assert type(caught.value).__name__ == LinAlgError.__name__
    assert not isinstance(caught.value, LinAlgError)


def test_64_bit_types_are_on_only_for_programs_that_have_them():
    b = Builder()
    n = b.input("n", Aval((1,), INT64))
    assert int(function_of(b.graph("f", Ref((n * 3).id)))(np.array([2**40]))[0]) == 3 * 2**40


def test_bfloat16():
    b = Builder()
    x = b.input("x", Aval((2,), bfloat16()))
    y = x * b.constant(np.array([1.5, 2.0], bfloat16()))
    got = function_of(b.graph("f", Ref(y.id)))(np.array([1, 2], bfloat16()))
    assert got.dtype == bfloat16() and got.tolist() == [1.5, 4.0]


@pytest.mark.parametrize(
    "name", ["ops", "jnp", "np", "program", "compiled", "len", "k9", "outputs", "f", "special", "zip"]
)
def test_inputs_may_have_any_name(name: str):
    b = Builder()
    x, y = b.input(name, Aval((2,), FLOAT32)), b.input(f"{name}_2", Aval((2,), FLOAT32))
    z = b.language.softmax(x - y, axis=0) + b.constant(np.array([1.0, 2.0], FLOAT32))
    graph = b.graph("f", Ref(z.id))
    arrays = [np.array([1, 2], FLOAT32), np.array([0, 5], FLOAT32)]
    np.testing.assert_allclose(function_of(graph)(*arrays), graph(*arrays), rtol=1e-6)


@pytest.mark.parametrize("name", ["program", "bind", "jax", "ops", "INPUTS", "print", "zip", "lax", "outputs"])
def test_graphs_may_have_any_name(name: str):
    b = Builder()
    x = b.input("x", Aval((2,), FLOAT32))
    graph = b.graph(name, Ref(b.language.softmax(x, axis=0).id))
    np.testing.assert_allclose(function_of(graph)(np.zeros(2, FLOAT32)), [0.5, 0.5])


def test_arguments_that_do_not_fit_are_named():
    f = function_of(graphs.loss())
    with pytest.raises(ValueError, match="argument 'w' must be float32"):
        f(np.zeros((8, 3), FLOAT32), np.zeros((3, 2)))


def test_what_has_no_source_is_named(declare):
    from graphc.ops.rules import pointwise_float

    state = iter([1])
    declare("opaque_here", "x", impl=lambda xp, x: x + next(state), rule=pointwise_float)
    b = Builder()
    graph = b.graph("f", Ref(b.language.opaque_here(b.input("x", Aval((2,), FLOAT32))).id))
    with pytest.raises(GraphError, match="list_iterator"):
        codegen(graph)

    def imports_late(xp: Any, x: Any) -> Any:
        from graphc.ops.dtypes import FLOAT32

        return x.astype(FLOAT32)

    declare("importing_here", "x", impl=imports_late, rule=pointwise_float)
    b = Builder()
    graph = b.graph("f", Ref(b.language.importing_here(b.input("x", Aval((2,), FLOAT32))).id))
    with pytest.raises(GraphError, match=r"graphc\.ops\.dtypes cannot be written"):
        codegen(graph)
    unknown = namedtuple("unknown", "x")
    graph = Builder().graph("f", unknown(object()))
    with pytest.raises(GraphError, match="result holds a object"):
        codegen(graph)


def scaled(factor: float):
    def halved(x: Any, times: int) -> Any:
        return x if times == 0 else halved(x / 2, times - 1)

    def kernel(xp: Any, x: Any) -> Any:
        return halved(table["double"](x) * factor, 1)

    return kernel


table = {"double": lambda x: x + x}


def test_a_kernel_brings_what_it_refers_to(declare):
    from graphc.ops.rules import pointwise_float

    declare("scaled_here", "x", impl=scaled(3.0), rule=pointwise_float)
    b = Builder()
    graph = b.graph("f", Ref(b.language.scaled_here(b.input("x", Aval((2,), FLOAT32))).id))
    np.testing.assert_array_equal(function_of(graph)(np.array([1, 2], FLOAT32)), [3, 6])
