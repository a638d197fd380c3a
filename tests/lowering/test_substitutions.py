"""Triangular equations read their operands transposed, and are what they are without that."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import eager as torch
import graphc
from eager import Tensor
from tests.depth import one_in


def program(a: Tensor, b: Tensor, turned: bool, left: bool, upper: bool, unit: bool) -> Tensor:
    a = a.mT if turned else a
    return torch.linalg.solve_triangular(a, b, upper=upper, left=left, unitriangular=unit)


@pytest.mark.parametrize("batch", one_in(2, [(), (2,), (2, 3)]))
@pytest.mark.parametrize("dtype", [torch.float32, torch.complex128])
def test_every_way_to_turn(batch: tuple[int, ...], dtype: torch.dtype):
    torch.manual_seed(0)
    a, b = torch.randn(*batch, 4, 4, dtype=dtype) + 3 * torch.eye(4), torch.randn(*batch, 4, 4, dtype=dtype)
    for ways in itertools.product([False, True], repeat=4):
        executable = graphc.lower(graphc.trace(lambda a, b, ways=ways: program(a, b, *ways), a, b))
        turned, left, *_ = ways
        assert ("lax.linalg.triangular_solve" in executable.source) == (turned or not left)
        np.testing.assert_allclose(np.asarray(executable(a, b)), program(a, b, *ways).numpy(), rtol=1e-4, atol=1e-5)


def test_what_is_read_twice_is_solved_once():
    def both(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        x = torch.linalg.solve_triangular(a, b.mT, upper=True)
        return x, x.mT

    a, b = torch.eye(3) + torch.ones(3, 3), torch.ones(3, 3)
    assert graphc.lower(graphc.trace(both, a, b)).source.count("solve") == 1


def test_a_factor_serves_determinant_solution_and_gradients():
    def likelihood(covariance: Tensor, y: Tensor) -> Tensor:
        factor = torch.linalg.cholesky(covariance)
        return y @ torch.cholesky_solve(y[:, None], factor)[:, 0] + 2 * factor.diagonal().log().sum()

    x = torch.randn(5, 5)
    graph = graphc.gradients(graphc.trace(likelihood, x @ x.T + 5 * torch.eye(5), torch.ones(5)))
    ops = [node.op.name for node in graphc.optimize(graph).operations()]
    assert ops.count("cholesky") == 1
    assert "solve" not in ops
    assert ops.count("solve_triangular") <= 6
