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
