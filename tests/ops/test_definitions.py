"""Ops that are defined by others: one kernel and one node in eager, several nodes in a graph, and the same result."""

import functools

import numpy as np
import pytest

import eager as torch
import graphc
from eager.engine.language import E
from graphc.ops import OPS
from graphc.ops.interpret import F, run_kernel, with_defaults
from graphc.ops.references import Each
from graphc.ops.spec import Trait
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


@each_case([c for c in DEFINED if not c.op.traits & Trait.ORDERS or c.op.vjp])
def test_gradient_is_the_definitions(case: Case, rng: np.random.Generator):
    for ours, theirs in zip(*gradients(case, case.arrays(rng)), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 3.0, -3.0, -4.0, 1e300, -1e300]
COTANGENTS = [1.0, 0.0, -0.0, np.inf, -np.inf, np.nan]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_all_modes_use_the_rule_of_the_op_at_special_values():
    cases = [c for c in DEFINED if isinstance(c.op.ref, Each)]
    x, g = (torch.tensor(a.ravel(), dtype=torch.float64) for a in np.meshgrid(SPECIAL, COTANGENTS))

    def rules(x: torch.Tensor, g: torch.Tensor) -> list[torch.Tensor]:
        functions = [functools.partial(getattr(E, c.op.name), **c.sample.params) for c in cases]
        return [torch.func.vjp(function, x)[1](g)[0] for function in functions]

    ours = rules(x, g)
    for found in (graphc.compile(rules)(x, g), torch.vmap(rules)(x, g)):
        for case, expected, gradient in zip(cases, ours, found, strict=True):
            a, b = expected.numpy(), gradient.numpy()
            np.testing.assert_allclose(b, a, rtol=1e-12, err_msg=case.label)
            np.testing.assert_array_equal(np.signbit(b) | np.isnan(a), np.signbit(a) | np.isnan(a), case.label)


@each_case(DEFINED)
def test_a_graph_holds_the_op_until_its_gradients_are_made(case: Case, rng: np.random.Generator):
    tensors = [torch.tensor(a) for a in case.arrays(rng)]
    graph = graphc.trace(lambda *x: getattr(E, case.op.name)(*x, **case.sample.params), *tensors)
    assert (case.op in graph.ops) == case.op.whole
    assert case.op not in graphc.optimize(graph).ops
