"""Linear algebra and sorting, compiled: what is refused, and what a run-time check finds."""

from __future__ import annotations

import numpy as np
import pytest

import eager as torch
import graphc

SINGULAR = [[1.0, 2.0], [2.0, 4.0]]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (
            torch.linalg.inv,
            "linalg.inv: The diagonal element 2 is zero, the inversion could not be completed",
        ),
        (lambda a: torch.linalg.solve(a, torch.ones(2)), "torch.linalg.solve: The solver failed"),
        (torch.linalg.cholesky, "linalg.cholesky: The factorization could not be completed"),
    ],
)
def test_a_matrix_without_result_raises(function, message):
    fast = graphc.compile(function)
    fast(torch.tensor([[2.0, 1.0], [1.0, 3.0]]))
    with pytest.raises(torch.linalg.LinAlgError, match=message):
        fast(torch.tensor(SINGULAR))


def test_condition_of_a_singular_matrix_is_infinite():
    fast = graphc.compile(lambda a: torch.linalg.cond(a, 1))
    assert fast(torch.tensor(SINGULAR)).item() == float("inf")


def test_products_of_square_matrices_are_optimized_in_finite_time():
    a = torch.tensor(np.arange(4.0).reshape(2, 2))
    assert graphc.compile(lambda x: x @ x @ x)(a).tolist() == torch.linalg.matrix_power(a, 3).tolist()
