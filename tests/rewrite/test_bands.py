"""Matrices that masks leave few diagonals of: products with them, and products that they mask, cost those alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import eager as torch
import graphc
from eager.engine.language import E
from graphc.facts.bands import Band
from graphc.facts.held import Held
from graphc.facts.known import Facts
from graphc.normal.gate import multiplies
from graphc.passes.bands import split_bands
from tests.depth import one_in
from tests.normal.searches import cost

N = 80
rng = np.random.default_rng(0)


def distance(n: int = N, m: int = N) -> torch.Tensor:
    return torch.arange(m)[None, :] - torch.arange(n)[:, None]


def near(n: int = N, m: int = N) -> torch.Tensor:
    return distance(n, m).abs() <= 1


MASKS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "triangles": lambda A: torch.tril(torch.triu(A, -1), 1),
    "to one side": lambda A: torch.triu(torch.tril(A, 3), 2),
    "where": lambda A: torch.where(near(*A.shape), A, torch.zeros_like(A)),
    "where not": lambda A: torch.where(near(*A.shape), 0.0, A) * torch.tril(torch.triu(torch.ones(*A.shape), -3), 1),
    "masked_fill": lambda A: A.masked_fill(~near(*A.shape), 0.0),
    "times": lambda A: A * near(*A.shape).to(A.dtype),
    "with holes": lambda A: torch.where((distance(*A.shape) % 2 == 0) & (distance(*A.shape).abs() <= 2), A, 0.0),
    "of a function": lambda A: torch.tril(torch.triu(torch.tanh(A) * A[0] + A[:, :1], -1), 1),
    "transposed": lambda A: torch.tril(torch.triu(A, -1), 0).T,
}
READERS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "B": lambda M, B: M @ B,
    "x": lambda M, B: M @ B[:, 0],
    "on the right": lambda M, B: B.T @ M.T,
}


def given(n: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    return rng.standard_normal((n, m)), rng.standard_normal((m, N))


def products(graph: graphc.Graph) -> list[int]:
    return [id for id, node in graph.nodes.items() if multiplies(node)]


CASES = [(mask, reader, (N, N)) for mask in MASKS for reader in READERS]


@pytest.mark.parametrize(("mask", "reader", "shape"), CASES + [(mask, "B", (N + 7, N)) for mask in MASKS])
def test_no_product_is_left(mask: str, reader: str, shape: tuple[int, int]):
    arrays = given(*(shape[::-1] if mask == "transposed" else shape))
    arrays = arrays[0], rng.standard_normal((shape[1], N))
    graph = graphc.trace(lambda A, B: READERS[reader](MASKS[mask](A), B), *map(torch.from_numpy, arrays))
    better = graphc.optimize(graph)
    assert products(graph) and not products(better)
    np.testing.assert_allclose(better(*arrays), graph(*arrays), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("mask", one_in(3, MASKS))
def test_gradients(mask: str):
    arrays = given(N, N)

    def loss(A: torch.Tensor, B: torch.Tensor) -> torch.Tensor:
        return (MASKS[mask](A) @ B).square().sum()

    graph = graphc.trace(torch.func.grad(loss, (0, 1)), *map(torch.from_numpy, arrays))
    better = graphc.optimize(graph)
    if mask not in ("where not", "with holes"):  # of five diagonals, which cost what the product costs
        assert all(better.nodes[id].size <= N for id in products(better))
    for found, expected in zip(better(*arrays), graph(*arrays), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


DIAGONALS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "trace": lambda A, B: torch.trace(torch.exp(A @ B)),
    "above": lambda A, B: torch.diagonal(torch.tanh(A @ B) * A, 2),
    "below, spread": lambda A, B: torch.diag(torch.relu(A @ B + B[0] - A[:, 1:2]), -3),
    "of triangles": lambda A, B: torch.diagonal(torch.tril(torch.exp(torch.triu(A @ B, 1))), -1),
    "of a product of triangles": lambda A, B: torch.diag((A.tril() @ B.tril()).exp()),
}


@pytest.mark.parametrize("name", DIAGONALS)
def test_diagonals_of_functions_are_functions_of_diagonals(name: str):
    arrays = given(N, N)
    graph = graphc.trace(DIAGONALS[name], *map(torch.from_numpy, arrays))
    better = graphc.optimize(graph)
    assert cost(better) < 0.4 * cost(graph)
    np.testing.assert_allclose(better(*arrays), graph(*arrays), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("f", [
    lambda A, B: (lambda K: (torch.diag(K), K @ B))(torch.exp(A)),  # it is there for others
    lambda A, B: torch.exp(A).reshape(-1)[3 :: N + 2],  # no diagonal
    lambda A, B: torch.exp(A).reshape(-1)[70 :: N + 1],  # the end of one row, then on
    lambda A, B: torch.tril(A) @ B,
    lambda A, B: torch.tril(torch.triu(A, -6), 6) @ B,  # many diagonals
    lambda A, B: torch.tril(torch.triu(A, -1), 1),  # no product
    lambda A, B: (lambda M: (M @ B, M))(torch.tril(torch.triu(A, -1), 1)),  # the matrix itself is wanted
    lambda A, B: torch.where(A > 0, A, 0.0) @ B,  # nobody knows where
])  # fmt: skip
def test_others_stay(f: Callable[..., Any]):
    graph = graphc.trace(f, *map(torch.from_numpy, given(N, N)))
    assert split_bands(graph) is graph


def test_what_is_zero_everywhere_is_read():
    arrays = given(N, N)
    graph = graphc.trace(lambda A, B: torch.tril(torch.triu(A, 2), 1) @ B, *map(torch.from_numpy, arrays))
    np.testing.assert_array_equal(graphc.optimize(graph)(*arrays), np.zeros((N, N)))


def test_bands_of_masks():
    def f(A: torch.Tensor) -> tuple[torch.Tensor, ...]:
        far = distance() > 2
        return torch.where(far, 0.0, A), torch.where(far, A, 0.0), torch.where(A > 0, A, 0.0), far.to(A.dtype)

    graph = graphc.trace(f, torch.zeros(N, N))
    facts = Facts(graph.nodes)
    found = [facts.band(id) for id in graph.outputs]
    assert found == [Band(N - 1, 2), Band(-3, N - 1), Band(N - 1, N - 1), Band(-3, N - 1)]


@pytest.mark.parametrize("stack", [(2,), (3, 1)], ids=str)
def test_of_a_stack_of_matrices_nothing_is_known(stack: tuple[int, ...]):
    """What an element of it is read for is found in it, whatever the function of matrices."""

    def f(A: torch.Tensor) -> tuple[torch.Tensor, ...]:
        inverse = E.inv(torch.tril(A), checked=False, asked="inv")
        return tuple(B.reshape(-1)[:2] for B in (inverse, torch.tril(A), A @ torch.tril(A), torch.linalg.cholesky(A)))

    A = rng.standard_normal((*stack, 4, 4))
    A = A @ A.swapaxes(-1, -2) + np.eye(4)
    graph = graphc.trace(f, torch.from_numpy(A))
    facts = Facts(graph.nodes)
    assert {facts.band(id) for id, node in graph.nodes.items() if node.shape == A.shape} == {Band(3, 3)}
    for found, expected in zip(graphc.optimize(graph)(A), graph(A), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-10)


def test_what_depends_on_an_input_is_not_held():
    graph = graphc.trace(lambda x: (distance() > 2, distance() > x, torch.rand(3)), torch.zeros(()))
    held = Held(graph.nodes)
    a, b, c = graph.outputs
    np.testing.assert_array_equal(held.value(a), distance().numpy() > 2)
    assert held.value(b) is None
    assert held.value(c) is None


def test_a_shifted_diagonal_is_found(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(Facts, "band", lambda facts, id, band=Facts.band: Band(*[n - 1 for n in band(facts, id)]))
    with pytest.raises(AssertionError):
        test_no_product_is_left("triangles", "B", (N, N))


TRIANGLES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "trace of an inverse": lambda A: torch.trace(torch.linalg.inv(torch.tril(A))),
    "of a product with an inverse": lambda A: torch.diag(torch.exp(torch.linalg.inv(torch.triu(A)))).sum(),
    "mask of a product": lambda A: (torch.tril(torch.triu(A) @ -torch.triu(A.T))).square().sum(),
}


@pytest.mark.parametrize("gradient", [False, True], ids=["value", "gradient"])
@pytest.mark.parametrize("name", TRIANGLES)
def test_diagonals_of_triangles_cost_no_matrix(name: str, gradient: bool):
    A = rng.standard_normal((N, N)) / N + 3 * np.eye(N)
    f = torch.func.grad(TRIANGLES[name]) if gradient else TRIANGLES[name]
    graph = graphc.trace(f, torch.from_numpy(A))
    better = graphc.optimize(graph)
    assert not products(better) and "solve_triangular" not in {op.name for op in better.ops}, better
    np.testing.assert_allclose(better(A), graph(A), rtol=1e-9, atol=1e-9)


def test_a_singular_triangle_is_refused_though_its_diagonal_alone_is_read():
    fast = graphc.compile(TRIANGLES["trace of an inverse"])
    assert fast(torch.eye(N)) == N
    with pytest.raises(torch.linalg.LinAlgError, match=r"linalg.inv: .* singular"):
        fast(torch.diag(torch.arange(N).float()))
