"""Graphs for other programs: StableHLO, JAX's artifact, TensorBoard's GraphDef."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

import graphc
from graphc.errors import MissingExtraError
from graphc.ir import Builder, Ref
from graphc.ops.aval import Aval
from graphc.ops.dtypes import FLOAT32, FLOAT64, INT64
from tests.ir import graphs


def test_stablehlo_has_the_graphs_types():
    text = graphc.stablehlo(graphs.loss())
    assert "@main" in text and "tensor<8x3xf32>" in text and "tensor<3x2xf32>" in text
    assert "stablehlo.dot_general" in text


def test_stablehlo_keeps_64_bits_and_unused_inputs():
    b = Builder()
    x, _ = b.input("x", Aval((2,), FLOAT64)), b.input("unused", Aval((7,), INT64))
    text = graphc.stablehlo(b.graph("f", Ref(b.language.exp(x).id)))
    assert "tensor<2xf64>" in text and "tensor<7xi64>" in text


def test_export_without_its_dependency_names_the_extra(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(__import__("sys").modules, "flatbuffers", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'graphc\[export\]'"):
        graphc.export(graphs.loss())


@pytest.mark.skipif(importlib.util.find_spec("flatbuffers") is None, reason="flatbuffers is not installed")
def test_exported_graphs_run():
    from jax import export

    graph = graphs.loss()
    x, w = np.ones((8, 3), FLOAT32), np.ones((3, 2), FLOAT32)
    (got,) = export.deserialize(graphc.export(graph)).call(x, w)
    np.testing.assert_allclose(got, graph(x, w), rtol=1e-6)


def test_graphdef_has_scopes_shapes_and_lines():
    pytest.importorskip("tensorboard")
    made = graphc.to_graphdef(graphs.deep(2, 6))
    nodes = {node.name: node for node in made.node}
    tanh = [node for node in made.node if node.op == "tanh"]
    assert tanh and all(node.name.startswith("encoder/") for node in tanh)
    assert [d.size for d in tanh[0].attr["_output_shapes"].list.shape[0].dim] == [4, 8]
    assert tanh[0].attr["where"].s.startswith(b"model.py:")
    assert all(name in nodes for node in made.node for name in node.input)


def test_graphdef_has_what_loops_run_as_groups():
    pytest.importorskip("tensorboard")
    made = graphc.to_graphdef(graphs.structured())
    names = {node.name for node in made.node}
    assert len(names) == len(made.node)
    assert any(name.startswith("a/b/scan_v3/add_") for name in names)
    assert all(name in names for node in made.node for name in node.input)
