"""Linear algebra of singular matrices, and of matrices with nan and infinities: the same in both modes, and soon."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import eager as torch
import graphc
from tests.depth import one_in

L = torch.linalg
FUNCTIONS: dict[str, Callable[[torch.Tensor], Any]] = {
    "inv": L.inv,
    "inv_ex": L.inv_ex,
    "solve_ex": lambda a: L.solve_ex(a, torch.ones(len(a), 2, dtype=a.dtype)),
    "det": L.det,
    "slogdet": L.slogdet,
    "lu_factor": L.lu_factor,
    "matrix_exp": torch.matrix_exp,
    "eigvals": lambda a: torch.sort(L.eigvals(a).abs())[0],
    "pinv": L.pinv,
    "svdvals": L.svdvals,
    "norm": lambda a: L.matrix_norm(a, 2),
    "cond": lambda a: L.cond(a, 1),
}
ELEMENTS = [0, 0, 0, 1, 1, -1, 2, np.nan], [0, 0, 1, 2, -1, -0.0, np.inf]


def outcome(function: Callable[[torch.Tensor], Any], a: torch.Tensor) -> list[np.ndarray] | str:
    try:
        found = function(a)
    except RuntimeError as error:
        return f"{type(error).__name__}: {error}".partition(".")[0]
    return [part.numpy() for part in (found if isinstance(found, tuple) else (found,))]


@pytest.mark.deep
@pytest.mark.parametrize("name", FUNCTIONS)
def test_both_modes_agree(name: str):
    rng = np.random.default_rng(0)
    for n in range(5):
        compiled = graphc.compile(FUNCTIONS[name])
        for k in range(40):
            a = torch.tensor(rng.choice(ELEMENTS[k % 2], (n, n)).astype(np.float32))
            ours, theirs = outcome(FUNCTIONS[name], a), outcome(compiled, a)
            if isinstance(ours, str) or isinstance(theirs, str):
                assert ours == theirs, a
                continue
            for x, y in zip(ours, theirs, strict=True):
                np.testing.assert_allclose(y, x, rtol=1e-3, atol=1e-5, err_msg=str(a))


def test_singular_values_of_infinite_matrices_are_found_in_bounded_time():
    a = torch.tensor([[np.inf, 0.4, 1.0], [0.4, -2.0, 0.1], [1.0, 0.1, 0.7]])  # OpenBLAS searches for ever
    assert L.svd(a).S.isnan().all()


@pytest.mark.on_numpy
def test_of_a_matrix_with_nan_all_is_nan():
    a = torch.tensor([[np.nan, 2.0], [3.0, 4.0]])
    for found in (L.inv(a), L.solve(a, torch.ones(2, 2)), L.det(a), L.lu_factor(a)[0], torch.matrix_exp(a)):
        assert found.isnan().all()


@pytest.mark.own_xla
@pytest.mark.parametrize("scale", one_in(3, [1e-30, 1e-13, 1e12, 1e30]))
def test_eigenvalues_and_determinants_of_large_and_small_matrices(scale: float):
    a = torch.tensor([[2.0, 1.0], [1.0, 3.0]]) * scale
    values = graphc.compile(lambda a: torch.sort(L.eigvals(a).real)[0])(a) / scale
    np.testing.assert_allclose(values.numpy(), [1.381966, 3.618034], rtol=1e-5)
    np.testing.assert_allclose(graphc.compile(torch.logdet)(a).item(), torch.logdet(a).item(), rtol=1e-5)
