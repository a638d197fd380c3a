"""Programs that ask, when they run, whether a diagonal is positive, and of elements of about one size."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

import eager as torch
import graphc
from graphc.ir import Graph, Node
from graphc.ir.structure import SWITCH, bodies
from graphc.passes import versions
from graphc.rewrite.cost import node_cost

N, K = 96, 6


def likelihood(d: Any, U: Any, y: Any) -> Any:
    C = torch.diag(d) + U @ U.T
    return y @ torch.linalg.solve(C, y) + torch.linalg.slogdet(C)[1]


def given() -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.uniform(0.5, 2, N), rng.standard_normal((N, K)), rng.standard_normal(N)]


def gradient(*arrays: Any) -> Any:
    return torch.func.grad(likelihood, (0, 1))(*arrays)


@functools.cache
def graphs(of: Any = likelihood) -> tuple[Graph, Graph]:
    """As written, and optimized."""
    graph = graphc.trace(of, *map(torch.from_numpy, given()))
    return graph, graphc.optimize(graph)


def asks(graph: Graph) -> list[Node]:
    return [node for node in graph.nodes.values() if node.op is SWITCH]


def negative(d: np.ndarray) -> None:
    d[3] = -1


def zeros(d: np.ndarray) -> None:
    d[:2] = 0


def infinite(d: np.ndarray) -> None:
    d[3] = np.inf


def undefined(d: np.ndarray) -> None:
    d[3] = np.nan


def small(d: np.ndarray) -> None:
    d[:K] = 1e-13  # D^-1 would lose all digits, where the matrix is regular


CHANGES = (lambda d: None, negative, zeros, infinite, undefined, small)


def check(of: Any, change: Any) -> None:
    arrays = given()
    change(arrays[0])
    graph, fast = graphs(of)
    assert asks(fast)
    wanted, found = graph.evaluate(*arrays), fast.evaluate(*arrays)
    for a, b in zip(graph.outputs, fast.outputs, strict=True):
        np.testing.assert_allclose(found[b], wanted[a], rtol=1e-7, atol=1e-7, equal_nan=True)


@pytest.mark.parametrize("change", CHANGES)
def test_all_that_a_diagonal_may_be(change: Any):
    check(likelihood, change)


@pytest.mark.deep
@pytest.mark.parametrize("change", CHANGES)
def test_gradients_for_all_that_a_diagonal_may_be(change: Any):
    check(gradient, change)


def test_the_version_of_what_is_positive_costs_little():
    (switch,) = asks(graphs()[1])
    written, cheap = [sum(node_cost(n, body.nodes) for n in body.nodes.values()) for body in bodies(switch)]
    assert 8 * cheap < written


def test_who_explains_is_told_what_is_asked():
    assert "if the diagonal of the matrix at" in str(graphc.explain(graphs()[1]))


@pytest.mark.parametrize("of", [
    lambda d, U, y: torch.linalg.solve(torch.diag(torch.sigmoid(d) + 1) + U @ U.T, y),  # is between 1 and 2
    lambda d, U, y: torch.linalg.solve(torch.diag(d) + U @ torch.cos(U).T, y),  # no half of it is the other
])  # fmt: skip
def test_nothing_is_asked_without_need(of: Any):
    assert not asks(graphs(of)[1])


def test_a_diagonal_between_known_numbers_is_enough():
    graph = graphs(lambda d, U, y: likelihood(torch.sigmoid(d) + 1, U, y))[1]
    assert all(node.size < N * N for node in graph.nodes.values()), graph


@pytest.mark.parametrize("change", [small, zeros])
def test_a_positive_diagonal_of_unlike_elements_is_asked_for(change: Any):
    """Whether all are positive is known; with some of 1e-12, eleven digits would be lost."""
    check(lambda d, U, y: likelihood(d * d + 1e-12, U, y), change)


@pytest.mark.parametrize("V", [lambda U: U, torch.cos], ids=["symmetric", "not"])
def test_inverses_of_unlike_diagonals_keep_their_digits(V: Any):
    f = lambda d, U, y: torch.linalg.inv(torch.diag(d * d + 1e-12) + U @ V(U).T)
    arrays = given()
    arrays[0][:2] = 0
    graph = graphc.trace(f, *map(torch.from_numpy, arrays))
    found, matrix = graphc.optimize(graph)(*arrays), np.diag(arrays[0] ** 2 + 1e-12)
    other = V(torch.from_numpy(arrays[1])).numpy()
    np.testing.assert_allclose(found @ (matrix + arrays[1] @ other.T), np.eye(N), atol=1e-9)


def test_a_program_that_refuses_nothing_says_nothing():
    """Each flag that a call reads costs it time."""
    f = lambda U, y: torch.linalg.solve(torch.eye(N, dtype=U.dtype) + U @ U.T, y)
    _, *arrays = map(torch.from_numpy, given())
    assert not graphc.lower(graphc.optimize(graphc.trace(f, *arrays))).fails


def test_a_planted_fault_is_caught(monkeypatch: pytest.MonkeyPatch):
    """Without the question how the elements of the diagonal compare, digits are lost."""
    monkeypatch.setattr(versions, "SPREAD", np.inf)
    with pytest.raises(AssertionError):
        check(lambda d, U, y: likelihood(d, U, y), small)
