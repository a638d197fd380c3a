"""Verdicts where a gradient does not exist, or is nothing but rounding, and that wrong rules are found there, too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import compare
import eager as torch
from compare.checking.judged_gradients import SENSITIVE
from compare.judging.tolerance import Verdict
from compare.judging.yardstick import Yardstick
from compare.selftest.planting import declared, with_rule
from graphc.ir import Builder, Ref
from graphc.ops import OPS
from graphc.ops.aval import aval_of


def leaf(values: Any) -> torch.Tensor:
    return torch.tensor(values, requires_grad=True)


def repeated(values: list[float], dtype: Any = torch.float32) -> torch.Tensor:
    """A symmetric matrix with these eigenvalues, of which no two are equal once they are rounded."""
    q = torch.linalg.qr(torch.tensor(np.random.default_rng(0).normal(size=[len(values)] * 2)))[0]
    return (q @ torch.diag(torch.tensor(values, dtype=torch.float64)) @ q.mT).to(dtype).requires_grad_()


def by_eigenvectors(a: torch.Tensor) -> torch.Tensor:
    values, vectors = torch.linalg.eigh(a)
    return (vectors * values.exp()) @ vectors.mT.sum(0)


def by_singular_vectors(a: torch.Tensor) -> torch.Tensor:
    u, s, vh = torch.linalg.svd(a, full_matrices=False)
    return u.sum() + s.sum() + vh.sum()


@pytest.mark.deep
@pytest.mark.parametrize("matrix", [torch.ones(3, 3), torch.ones(3, 2), torch.ones(2, 4), torch.full((4, 4), 0.1)])
def test_gradients_of_vectors_whose_values_differ_by_rounding_only(matrix):
    assert compare.check(by_singular_vectors, matrix.clone().requires_grad_()).ok
    if matrix.shape[0] == matrix.shape[1]:
        assert compare.check(by_eigenvectors, matrix.clone().requires_grad_()).ok


def test_wrong_gradients_of_vectors_are_found_where_the_values_differ():
    rule = OPS["svd"].vjp["input"].fn
    wrong = with_rule(OPS["svd"], "input", OPS["svd"].vjp["input"]._replace(fn=lambda *a: 1.01 * rule(*a)))
    matrix = torch.tensor(np.random.default_rng(1).normal(size=(3, 3)).astype(np.float32), requires_grad=True)
    with declared(OPS["svd"], vjp=wrong):
        assert compare.check(by_singular_vectors, matrix).verdict is Verdict.BUG


def test_what_is_divided_by_rounding_may_be_anything_and_only_that():
    x, y = np.array([1.0, 1.0, 3.0], np.float32), np.array([1e-9, 0.25, 0.0], np.float32)
    builder = Builder()
    F, a, b = builder.language, builder.input("a", aval_of(x)), builder.input("b", aval_of(y))
    rest = (a + b) - a  # of 1 + 1e-9, nothing is left in float32
    graph = builder.graph("program", Ref((a / F.where(b == 0, 1, rest)).id))
    noise = Yardstick(graph, [x, y], 0).noise[graph.outputs[0]]
    assert np.isfinite(noise).tolist() == [False, True, True]


@pytest.mark.deep
def test_a_pseudoinverse_whose_singular_values_repeat():
    """JAX differentiates it by way of the singular vectors, which loses half the digits."""
    for matrix in (repeated([2.0, 2.0, 1.0]), repeated([2.0, 2.0, 1.0, 1.0])):
        report = compare.check(torch.linalg.pinv, matrix, modes=["jax.grad"])
        assert [f.detail for f in report.findings if f.mode == "jax.grad"] == [SENSITIVE]
        assert report.verdict is Verdict.WITHIN_ROUNDING


@pytest.mark.parametrize(("fn", "edge"), [(torch.xlogy, 0.0), (torch.special.xlog1py, -1.0)], ids=["xlogy", "xlog1py"])
def test_zero_times_the_logarithm_of_zero(fn, edge):
    """PyTorch's gradients are 0 and nan, JAX's are others, and there is no derivative."""
    assert compare.check(fn, leaf([0.0, 1.0, 0.0]), leaf([edge, 2.0, 3.0])).verdict is Verdict.CONVENTION


@pytest.mark.parametrize("name", ["sinc", "xlogy"])
def test_other_gradients_than_the_declared_ones_are_found_where_a_derivative_jumps(name):
    op = OPS[name]
    argument = op.args[-1]
    rule = op.vjp[argument]
    position = rule.names.index(argument)

    def wrong(F: Any, g: Any, *given: Any) -> Any:
        right = rule.fn(F, g, *given)
        return F.where(given[position - 1] == 0, 7.0, right)

    operands = {"sinc": [leaf([0.0, 0.5])], "xlogy": [torch.tensor([0.0, 1.0]), leaf([0.0, 2.0])]}[name]
    with declared(op, vjp=with_rule(op, argument, rule._replace(fn=wrong))):
        report = compare.check(getattr(torch, name), *operands)
        assert report.verdict is Verdict.BUG
        assert f"gradient rule for '{argument}' of op '{name}'" in str(report)
