"""`lobpcg`: some of the eigenpairs, in each of its forms."""

from __future__ import annotations

import numpy as np
import pytest

import eager as torch


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("general", [False, True])
def test_pairs_solve_the_problem(largest: bool, general: bool, rng: np.random.Generator):
    x, y = rng.standard_normal((2, 9, 9))
    a, b = torch.tensor(x @ x.T), torch.tensor(np.eye(9) + 0.1 * y @ y.T) if general else None
    values, vectors = torch.lobpcg(a, 3, b, largest=largest)
    right = np.linalg.solve(np.eye(9) if b is None else b.numpy(), a.numpy())
    every = np.sort(np.linalg.eigvals(right).real)
    np.testing.assert_allclose(values.numpy(), every[::-1][:3] if largest else every[:3], rtol=1e-8, atol=1e-9)
    turned = vectors if b is None else b @ vectors
    np.testing.assert_allclose((a @ vectors).numpy(), (turned * values).numpy(), atol=1e-7)


def test_too_many_pairs_are_refused_as_by_pytorch():
    with pytest.raises(ValueError, match="not applicable when the number of A rows"):
        torch.lobpcg(torch.eye(5), 2)
