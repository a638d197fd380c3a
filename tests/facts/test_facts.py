"""What is said of values holds for values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import eager as torch
import graphc
from graphc.facts.known import Facts
from graphc.ir import Graph

N = 7


def traced(f: Callable[..., Any], *shapes: tuple[int, ...]) -> tuple[Graph, list[np.ndarray]]:
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape) for shape in shapes]
    return graphc.trace(f, *[torch.from_numpy(a) for a in arrays]), arrays


def eye() -> Any:
    return torch.eye(N, dtype=torch.float64)


M, V, THIN = (N, N), (N,), (N, 3)
BANDS: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...], tuple[int, int]]] = {
    "lower": (lambda a: torch.tril(a), (M,), (N - 1, 0)),
    "above the diagonal": (lambda a: torch.triu(a, 2), (M,), (-2, N - 1)),
    "diagonal": (lambda d: torch.diag(d) * 2 + eye(), (V,), (0, 0)),
    "three diagonals": (lambda d: torch.diag(d[1:], 1) + torch.diag(d) + torch.diag(d[:-1], -1), (V,), (1, 1)),
    "product of triangles": (lambda a, b: torch.tril(a) @ torch.tril(b, -1), (M, M), (N - 1, -1)),
    "product of bands": (lambda a, b: torch.triu(torch.tril(a, 1), -1) @ torch.tril(torch.triu(b), 2), (M, M), (1, 3)),
    "parts of triangles": (lambda a, b: torch.tril(a)[2:, :4] @ torch.tril(b)[:4, 1:], (M, M), (4, 1)),
    "transposed": (lambda a: torch.tril(a).T, (M,), (0, N - 1)),
    "blocks": (lambda a, b: torch.block_diag(torch.tril(a), torch.tril(b)), (M, M), (N - 1, 0)),
    "shifted": (lambda a: torch.nn.functional.pad(torch.tril(a), (0, 1, 1, 0)), (M,), (N, -1)),
    "inverse": (lambda a: torch.linalg.inv(torch.tril(a) + 4 * eye()), (M,), (N - 1, 0)),
    "full": (lambda a: torch.tril(a) + torch.triu(a), (M,), (N - 1, N - 1)),
    "lower times full": (lambda a, b: torch.tril(a) @ b, (M, M), (N - 1, N - 1)),
    "cholesky": (lambda a: torch.linalg.cholesky(a @ a.T + eye()).T, (M,), (0, N - 1)),
    "elementwise": (lambda a, b: torch.tril(a) * torch.triu(b), (M, M), (0, 0)),
}  # fmt: skip


@pytest.mark.parametrize("name", BANDS)
def test_bands(name: str):
    f, shapes, expected = BANDS[name]
    graph, arrays = traced(f, *shapes)
    below, above = Facts(graph.nodes).band(graph.outputs[0])
    assert (below, above) == expected
    value = graph(*arrays)
    rows, columns = np.nonzero(np.abs(value) > 1e-12)
    assert (columns - rows <= above).all()
    assert (rows - columns <= below).all()


SYMMETRIC: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "A'A": (lambda a: a.T @ a, (M,)),
    "A + A'": (lambda a: a + a.T, (M,)),
    "U diag(d) U'": (lambda u, d: (u * d[:3]) @ u.T, (THIN, V)),
    "A S A'": (lambda a, b: a @ (b + b.T) @ a.T, (M, M)),
    "exp of symmetric": (lambda u: torch.exp(-torch.sqrt((u @ u.T) ** 2 + 1)), (THIN,)),
    "inverse": (lambda a: torch.linalg.inv(a @ a.T + eye()) + eye(), (M,)),
    "kernel": (lambda u: torch.exp(-(torch.cdist(u, u) ** 2)), (THIN,)),
    "A'BB'A": (lambda a, b: a.T @ b @ b.T @ a, (M, M)),
    "outer": (lambda v: torch.outer(v, v) - 3 * eye(), (V,)),
}
LOPSIDED: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "A": (lambda a: a + eye(), (M,)),
    "AA": (lambda a: a @ a, (M,)),
    "A'B": (lambda a, b: a.T @ b, (M, M)),
    "A - A'": (lambda a: a - a.T, (M,)),
    "uv'": (lambda u, v: torch.outer(u, v), (V, V)),
    "A S B'": (lambda a, b: a @ (a + a.T) @ b.T, (M, M)),
    "exp": (lambda a: torch.exp(a), (M,)),
    "row": (lambda a, v: (a + a.T) * v, (M, V)),
}


@pytest.mark.parametrize("name", SYMMETRIC)
def test_symmetric(name: str):
    graph, arrays = traced(*[SYMMETRIC[name][0], *SYMMETRIC[name][1]])
    assert Facts(graph.nodes).symmetric(graph.outputs[0])
    value = graph(*arrays)
    np.testing.assert_allclose(value, value.T, atol=1e-12)


@pytest.mark.parametrize("name", LOPSIDED)
def test_not_symmetric(name: str):
    graph, _ = traced(*[LOPSIDED[name][0], *LOPSIDED[name][1]])
    assert not Facts(graph.nodes).symmetric(graph.outputs[0])


SEMIDEFINITE: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "A'A": (lambda a: a.T @ a, (M,)),
    "A'BB'A": (lambda a, b: a.T @ b @ b.T @ a, (M, M)),
    "U diag(d^2) U'": (lambda u, d: (u * d[:3] ** 2) @ u.T, (THIN, V)),
    "A S A'": (lambda a, u: a @ (u @ u.T) @ a.T, (M, THIN)),
    "sums": (lambda a, u: 2 * a @ a.T + 0.5 * u @ u.T, (M, THIN)),
    "outer": (lambda v: torch.outer(v, v), (V,)),
    "diagonal": (lambda v: torch.diag(v * v), (V,)),
    "Kronecker's product": (lambda a, u: torch.kron(a @ a.T, u @ u.T), (M, THIN)),
    "Schur's product": (lambda a, u: (a @ a.T) * (u @ u.T), (M, THIN)),
    "ones": (lambda a: torch.ones_like(a), (M,)),
    "of a part": (lambda a: torch.nn.functional.pad((a @ a.T)[:3, :3], (1, 2, 1, 2)), (M,)),
    "assumed": (lambda a: a.T @ graphc.assume(a @ a.T + 0, "psd") @ a, (M,)),
}
INDEFINITE: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "A + A'": (lambda a: a + a.T, (M,)),
    "AA": (lambda a: a @ a, (M,)),
    "A'A - BB'": (lambda a, b: a.T @ a - b @ b.T, (M, M)),
    "U diag(d) U'": (lambda u, d: (u * d[:3]) @ u.T, (THIN, V)),
    "A S A'": (lambda a, b: a @ (b + b.T) @ a.T, (M, M)),
    "M o M'": (lambda a, b: (a @ b.T) * (b @ a.T), (M, M)),  # symmetric, with all factors in pairs
    "diagonal": (lambda v: torch.diag(v), (V,)),
    "beside the diagonal": (lambda a: torch.nn.functional.pad((a @ a.T)[:3, :3], (1, 2, 2, 1)), (M,)),
    "A'B": (lambda a, b: a.T @ b, (M, M)),
    "negative": (lambda a: -a @ a.T, (M,)),
    "Kronecker's product": (lambda a, u: torch.kron(a + a.T, u @ u.T), (M, THIN)),
}
DEFINITE: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "A'A + 1": (lambda a: a.T @ a + eye(), (M,)),
    "A'A + d^2 + c": (lambda a, d: a.T @ a + torch.diag(d * d + 0.1), (M, V)),
    "inverse": (lambda a: torch.linalg.inv(a.T @ a + 0.1 * eye()), (M,)),
    "transposed": (lambda a, u: (a @ a.T + eye()).T + u @ u.T, (M, THIN)),
    "Kronecker's product": (lambda a: torch.kron(graphc.assume(a @ a.T + 1, "spd"), eye()), (M,)),
    "of what is assumed": (lambda a, s: graphc.assume(a @ a.T + a.T @ a + 0 * s[0], "spd") + s[0] ** 2 * eye(), (M, V)),
}
NOT_DEFINITE: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "A'A": (lambda a: a.T @ a, (M,)),
    "A'A + d^2": (lambda a, d: a.T @ a + torch.diag(d * d), (M, V)),
    "A'A - 1": (lambda a: a.T @ a - eye(), (M,)),
    "a part of the diagonal": (lambda a: a.T @ a + torch.diag(torch.cat([torch.ones(3), torch.zeros(N - 3)])), (M,)),
    "beside the diagonal": (lambda a: a.T @ a + torch.diag(torch.ones(N - 1), 1), (M,)),
    "Kronecker's product": (lambda a: torch.kron(a @ a.T, eye()), (M,)),
    "exp": (lambda v: torch.diag(torch.exp(v)), (V,)),  # which may underflow
}


@pytest.mark.parametrize("name", SEMIDEFINITE)
def test_semidefinite(name: str):
    graph, arrays = traced(*[SEMIDEFINITE[name][0], *SEMIDEFINITE[name][1]])
    facts = Facts(graph.nodes)
    assert facts.semidefinite(graph.outputs[0])
    assert facts.symmetric(graph.outputs[0])
    assert np.linalg.eigvalsh(graph(*arrays)).min() > -1e-9


@pytest.mark.parametrize("name", INDEFINITE)
def test_not_semidefinite(name: str):
    graph, _ = traced(*[INDEFINITE[name][0], *INDEFINITE[name][1]])
    assert not Facts(graph.nodes).semidefinite(graph.outputs[0])


@pytest.mark.parametrize("name", DEFINITE)
def test_definite(name: str):
    graph, arrays = traced(*[DEFINITE[name][0], *DEFINITE[name][1]])
    assert Facts(graph.nodes).definite(graph.outputs[0])
    assert np.linalg.eigvalsh(graph(*arrays)).min() > 0


@pytest.mark.parametrize("name", NOT_DEFINITE)
def test_not_definite(name: str):
    graph, _ = traced(*[NOT_DEFINITE[name][0], *NOT_DEFINITE[name][1]])
    assert not Facts(graph.nodes).definite(graph.outputs[0])


def test_orthogonal():
    graph, _ = traced(lambda a: torch.linalg.qr(a), M)
    facts = Facts(graph.nodes)
    assert [facts.orthogonal(id) for id in graph.outputs] == [True, False]
    assert facts.band(graph.outputs[1]) == (0, N - 1)


RANGES: dict[str, tuple[Callable[..., Any], tuple[float, float]]] = {
    "sigmoid": (lambda v: torch.sigmoid(v), (0, 1)),
    "tanh": (lambda v: torch.tanh(v), (-1, 1)),
    "1 - sigmoid": (lambda v: 1 - torch.sigmoid(v), (0, 1)),
    "softmax": (lambda v: 3 * torch.softmax(v, 0) - 1, (-1, 2)),
    "exp": (lambda v: -torch.exp(v), (-np.inf, 0)),
    "relu": (lambda v: torch.relu(torch.tanh(v)), (0, 1)),
    "square": (lambda v: torch.tanh(v) ** 2 + 1, (1, 2)),
    "of what is not near 0": (lambda v: (torch.tanh(v) + 3) ** 2, (4, 16)),
    "cube": (lambda v: torch.tanh(v) * torch.tanh(v) * torch.tanh(v), (-1, 1)),
    "sum": (lambda v: torch.sigmoid(v).sum(), (0, N)),
    "product": (lambda v: torch.tanh(v) * torch.sigmoid(v), (-1, 1)),
    "padded": (lambda v: torch.nn.functional.pad(torch.sigmoid(v) + 1, (0, 2)), (0, 2)),
    "diagonal": (lambda v: torch.diag(torch.sigmoid(v) + 1), (0, 2)),
    "matrix": (lambda v: torch.outer(torch.sigmoid(v), torch.sigmoid(v)) @ torch.sigmoid(v), (0, N)),
    "maximum": (lambda v: torch.maximum(v, torch.sigmoid(v)), (0, np.inf)),
    "minimum": (lambda v: torch.minimum(torch.tanh(v), torch.sigmoid(v)), (-1, 1)),
    "where": (lambda v: torch.where(v > 0, torch.tanh(v), 2 * torch.sigmoid(v)), (-1, 2)),
    "constants": (lambda v: torch.tensor([2.0, -1.0, 5.0], dtype=v.dtype) * torch.sigmoid(v)[:3], (-1, 5)),
    "assumed": (lambda v: graphc.assume(v, (-3.0, 3.0)) * 2 + 1, (-5, 7)),
    "anything": (lambda v: torch.sin(v) + v, (-np.inf, np.inf)),
}


@pytest.mark.parametrize("name", RANGES)
def test_ranges(name: str):
    f, (low, high) = RANGES[name]
    graph, arrays = traced(f, V)
    found = Facts(graph.nodes).range(graph.outputs[0])
    assert found.low <= low  # no more than is so
    assert found.high >= high
    assert (found.low > -np.inf) is (low > -np.inf)
    assert (found.high < np.inf) is (high < np.inf)
    for scale in (0.1, 1, 100):
        value = graph(*[np.clip(scale * a, -3, 3) for a in arrays])
        assert found.low <= value.min()
        assert value.max() <= found.high


@pytest.mark.parametrize(
    ("f", "finite"),
    [
        (lambda v: graphc.assume(v, "finite").T[1:], True),
        (lambda v: torch.sigmoid(graphc.assume(v, "finite")), True),
        (lambda v: torch.sigmoid(v), False),  # of nan
        (lambda v: graphc.assume(v, (0, 2)), True),
        (lambda v: graphc.assume(v, "nonnegative"), False),
        (lambda v: graphc.assume(v, "finite") ** 2, False),  # which may overflow
        (lambda v: torch.tensor([1.0, float("inf")]), False),
        (lambda v: torch.tensor([1.0, 2.0]), True),
    ],
)
def test_finite(f: Any, finite: bool):
    graph, _ = traced(f, V)
    assert Facts(graph.nodes).finite(graph.outputs[0]) is finite


@pytest.mark.parametrize(
    ("f", "nonnegative", "positive"),
    [
        (lambda v: torch.exp(v), True, False),  # which may underflow
        (lambda v: torch.exp(v) + 0.1, True, True),
        (lambda v: v * v + 1, True, True),
        (lambda v: v * v * v, False, False),
        (lambda v: v**2 - 1, False, False),
        (lambda v: 3 * torch.abs(v) + torch.relu(v), True, False),
        (lambda v: -torch.abs(v) + 2, False, False),
        (lambda v: torch.sigmoid(v) * torch.exp(v) + 1e-3, True, True),
        (lambda v: torch.cat([torch.ones(1, dtype=torch.float64), v * v]), True, False),
    ],
)
def test_signs(f: Any, nonnegative: bool, positive: bool):
    graph, _ = traced(f, V)
    facts = Facts(graph.nodes)
    assert (facts.nonnegative(graph.outputs[0]), facts.positive(graph.outputs[0])) == (nonnegative, positive)
