"""One factorization for solutions, inverses and determinants: whatever the matrix is, and whatever is known of it."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import eager as torch
import graphc
from graphc.lowering import factors
from tests.depth import one_in
from tests.quick import OPTIONS

N = 70
rng = np.random.default_rng(3)


def _general(*batch: int) -> np.ndarray:
    return rng.standard_normal((*batch, N, N)) / np.sqrt(N) + np.roll(np.eye(N), 1, 0)


def _definite(*batch: int) -> np.ndarray:
    x = _general(*batch)
    return x @ x.swapaxes(-1, -2) + np.eye(N)


def _indefinite(*batch: int) -> np.ndarray:
    x = _general(*batch)
    return x + x.swapaxes(-1, -2)


def _nearly(*batch: int) -> np.ndarray:
    x = _definite(*batch)
    x[..., 5, 40] += 1.0
    return x


MATRICES = {"general": _general, "definite": _definite, "indefinite": _indefinite, "nearly symmetric": _nearly}

KNOWN = {"definite": ("symmetric", "definite"), "indefinite": ("symmetric",)}


@pytest.mark.parametrize("batch", one_in(2, [(3,), ()], lambda batch: "three" if batch else "one"))
@pytest.mark.parametrize("name", MATRICES)
@pytest.mark.parametrize("complex", [False, True], ids=["real", "complex"])
def test_factors_of_any_matrix(name: str, batch: tuple[int, ...], complex: bool):
    x = MATRICES[name](*batch)
    x = x + 1j * np.swapaxes(x, -1, -2) if complex else x
    _check_factors(x, "", *KNOWN.get(name, ()))


def test_factors_of_few_rows():
    _check_factors(_definite(2)[..., :5, :5], "", "definite")


def _check_factors(x: np.ndarray, *whatever_is_known: str) -> None:
    y = rng.standard_normal((*x.shape[:-1], 2)).astype(x.dtype)
    for known in whatever_is_known:
        with jax.enable_x64(True):
            results = jax.jit(_all_of, static_argnums=2, compiler_options=dict(OPTIONS))(x, y, known)
        solutions, inverses, signs, logs, determinants, regular = results
        for turned, a in enumerate((x, np.swapaxes(x, -1, -2))):
            np.testing.assert_allclose(solutions[turned], np.linalg.solve(a, y), rtol=1e-9)
            np.testing.assert_allclose(inverses[turned], np.linalg.inv(a), atol=1e-9)
        expected = np.linalg.slogdet(x)
        np.testing.assert_allclose(signs, expected[0], rtol=1e-9)
        np.testing.assert_allclose(logs, expected[1], rtol=1e-9)
        np.testing.assert_allclose(determinants, np.linalg.det(x), rtol=1e-9)
        assert regular


def _all_of(x: jax.Array, y: jax.Array, known: str) -> Any:
    found = factors.factorize(x, known)
    solutions = [factors.solve_factored(found, y, turned) for turned in (False, True)]
    inverses = [factors.invert_factored(found, turned) for turned in (False, True)]
    determinant, regular = factors.determinant_of_factors(found), factors.regular_factors(found)
    return solutions, inverses, *factors.logs_of_factors(found), determinant, regular


def test_a_program_factorizes_each_matrix_once():
    def likelihood(K: Any, y: Any) -> Any:
        return y @ torch.linalg.solve(K, y) + torch.logdet(K) + (torch.linalg.inv(K.T) * K).sum()

    K, y = torch.from_numpy(_definite()), torch.from_numpy(rng.standard_normal(N))
    program = graphc.lower(graphc.optimize(graphc.trace(torch.func.grad(likelihood, (0, 1)), K, y)))
    assert program.source.count("factorize(") == 1
    assert "known=''" in program.source


def test_what_is_known_to_be_symmetric_is_not_asked():
    X, y = torch.from_numpy(_general()), torch.from_numpy(rng.standard_normal(N))

    def ridge(X: Any, y: Any) -> Any:
        return torch.linalg.solve(X.T @ X + torch.eye(N, dtype=X.dtype), X.T @ y)

    program = graphc.lower(graphc.optimize(graphc.trace(ridge, X, y)))
    assert "known='symmetric'" in program.source
    x = X.numpy()
    np.testing.assert_allclose(program(X, y), np.linalg.solve(x.T @ x + np.eye(N), x.T @ y.numpy()), rtol=1e-9)


@pytest.mark.parametrize("function", [torch.linalg.inv, lambda a: torch.linalg.solve(a, a)], ids=["inv", "solve"])
@pytest.mark.parametrize("symmetric", [False, True], ids=["general", "symmetric"])
def test_large_singular_matrices_raise(function: Any, symmetric: bool):
    fast = graphc.compile(function)
    fast(torch.from_numpy(_definite()))
    x = np.diag([0.0, *range(1, N)])
    if not symmetric:
        x[3, 8] = 1.0
    with pytest.raises(torch.linalg.LinAlgError, match="singular"):
        fast(torch.from_numpy(x))


def test_nan_is_no_error():
    fast = graphc.compile(lambda a: torch.linalg.solve(a, a[:, 0]))
    x = _definite()
    fast(torch.from_numpy(x))
    x[4, 4] = np.nan
    assert torch.isnan(fast(torch.from_numpy(x))).all()


@pytest.mark.parametrize("name", ["at_first", "fail_x", "factors_0", "k1", "ok2", "jnp", "ops", "v_jnp"])
def test_arguments_may_have_names_that_programs_use(name: str):
    scope: dict[str, Any] = {}
    exec(f"def f({name}, jnp_=None): return {name} * 2", scope)
    assert graphc.compile(scope["f"], backend="jax")(torch.ones(2)).tolist() == [2.0, 2.0]


@pytest.mark.parametrize("n", [1, 5, N])
def test_cofactors_by_factors_and_of_what_is_nearly_singular(n: int):
    x = rng.standard_normal((3, n, n))
    x[1, -1] = x[1, 0] + 1e-11 * x[1, -1]  # its inverse is known to few digits
    for turned in (False, True):
        gradient = torch.func.grad(lambda a, t=turned: torch.linalg.det(a.mT if t else a).sum())
        given = torch.from_numpy(x)
        np.testing.assert_allclose(graphc.compile(gradient)(given), gradient(given), rtol=1e-7, atol=1e-9)
