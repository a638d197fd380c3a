"""Ops that are defined by others: one kernel and one node in eager, several nodes in a graph, and the same result."""

import numpy as np
import pytest

import eager as torch
import graphc
from eager.engine.language import E
from graphc.ops import OPS
from graphc.ops.interpret import F, run_kernel, with_defaults
from graphc.ops.references import Each
from tests.ops.cases import Case, each_case, every_case

DEFINED = [c for c in every_case() if c.op.definition is not None]


def test_there_are_some():
    assert {"expand", "diagonal", "basic_index"} <= {op.name for op in OPS.values() if op.definition is not None}


@each_case(DEFINED)
def test_kernel_is_the_definition(case: Case, rng: np.random.Generator):
    op, params = case.op, with_defaults(case.op, case.sample.params)
    arrays = case.arrays(rng)
    np.testing.assert_allclose(run_kernel(op, arrays, params), op.definition(F, *arrays, **params), rtol=1e-10)


def gradients(case: Case, arrays: list[np.ndarray]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The gradients of the operands by the op's own rules, and by those of its definition."""
    op, params, found = case.op, with_defaults(case.op, case.sample.params), []
    for run in (getattr(E, op.name), lambda *x, **p: op.definition(E, *x, **p)):
        leaves = [torch.tensor(a, requires_grad=True) for a in arrays]
        result = run(*leaves, **params)
        result.backward(torch.from_numpy(np.random.default_rng(0).standard_normal(result.shape)))
        found.append([leaf.grad.numpy() for leaf in leaves])
    return found[0], found[1]


@each_case(DEFINED)
def test_gradient_is_the_definitions(case: Case, rng: np.random.Generator):
    for ours, theirs in zip(*gradients(case, case.arrays(rng)), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@each_case(c for c in DEFINED if isinstance(c.op.ref, Each))
def test_gradient_is_the_definitions_at_special_values(case: Case, rng: np.random.Generator):
    # without -0 and -inf: of which side a pole is, is the convention of each op
    values = np.array([0.0, np.inf, np.nan, 1e300, -1e300, 1e-310, 88.0, -88.0])
    for ours, theirs in zip(*gradients(case, [values for _ in case.arrays(rng)]), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


@each_case(DEFINED)
def test_a_graph_holds_the_definition(case: Case, rng: np.random.Generator):
    tensors = [torch.tensor(a) for a in case.arrays(rng)]
    graph = graphc.trace(lambda *x: getattr(E, case.op.name)(*x, **case.sample.params), *tensors)
    assert case.op not in {node.op for node in graph.nodes.values()}
