"""Ops that are defined by others: one kernel and one node in eager, several nodes in a graph, and the same result."""

import numpy as np

import eager as torch
import graphc
from eager.engine.language import E
from graphc.ops import OPS
from graphc.ops.interpret import F, run_kernel, with_defaults
from tests.ops.cases import Case, each_case, every_case

DEFINED = [c for c in every_case() if c.op.definition is not None]


def test_there_are_some():
    assert {"expand", "diagonal", "basic_index"} <= {op.name for op in OPS.values() if op.definition is not None}


@each_case(DEFINED)
def test_kernel_is_the_definition(case: Case, rng: np.random.Generator):
    op, params = case.op, with_defaults(case.op, case.sample.params)
    arrays = case.arrays(rng)
    np.testing.assert_allclose(run_kernel(op, arrays, params), op.definition(F, *arrays, **params), rtol=1e-10)


@each_case(DEFINED)
def test_gradient_is_the_definitions(case: Case, rng: np.random.Generator):
    op, params = case.op, with_defaults(case.op, case.sample.params)
    arrays = case.arrays(rng)
    found = []
    for run in (getattr(E, op.name), lambda *x, **p: op.definition(E, *x, **p)):
        leaves = [torch.tensor(a, requires_grad=True) for a in arrays]
        result = run(*leaves, **params)
        result.backward(torch.from_numpy(np.random.default_rng(0).standard_normal(result.shape)))
        found.append([leaf.grad.numpy() for leaf in leaves])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


@each_case(DEFINED)
def test_a_graph_holds_the_definition(case: Case, rng: np.random.Generator):
    tensors = [torch.tensor(a) for a in case.arrays(rng)]
    graph = graphc.trace(lambda *x: getattr(E, case.op.name)(*x, **case.sample.params), *tensors)
    assert case.op not in {node.op for node in graph.nodes.values()}
