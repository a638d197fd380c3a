"""Large products of triangles, and symmetric ones, in blocks: the same values, with work left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import eager as torch
import graphc
from graphc.ir import Graph
from graphc.ir.check import check
from graphc.lowering import blocks

N, K = 13, 9


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if a few rows were many."""
    monkeypatch.setattr(blocks, "LEAST", 8)
    monkeypatch.setattr(blocks, "NARROWEST", 2)


def work(graph: Graph) -> int:
    """The multiplications of matrix products."""
    nodes = graph.nodes
    return sum(n.size * nodes[n.inputs[0]].shape[1] for n in nodes.values() if n.op.name == "matmul")


def square(seed: int = 0, n: int = N) -> torch.Tensor:
    return torch.tensor(np.random.default_rng(seed).standard_normal((n, n)))


def wide(seed: int = 1) -> torch.Tensor:
    return torch.tensor(np.random.default_rng(seed).standard_normal((N, K)))


LEFT_OUT: dict[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...]]] = {
    "lower triangle": (lambda x, y: torch.tril(x) @ y, (square(), wide())),
    "upper triangle": (lambda x, y: torch.triu(x) @ y, (square(), wide())),
    "below the main diagonal": (lambda x, y: torch.tril(x, -3) @ y, (square(), wide())),
    "triangle and a few diagonals": (lambda x, y: torch.tril(x, 2) @ y, (square(), wide())),
    "triangle read transposed": (lambda x, y: torch.tril(x).T @ y, (square(), wide())),
    "triangle on the right": (lambda x, y: y.T @ torch.tril(x), (square(), wide())),
    "transposed triangle on the right": (lambda x, y: y.T @ torch.triu(x).T, (square(), wide())),
    "product of triangles": (lambda x, y: torch.tril(x) @ torch.tril(y), (square(), square(1))),
    "a chain of triangles": (lambda x, y: torch.tril(x) @ y @ torch.triu(x), (square(), square(1))),
    "rows times themselves": (lambda x: x @ x.T, (square(),)),
    "columns times themselves": (lambda x: x.T @ x, (torch.tensor(np.random.default_rng(2).random((9, N))),)),
    "far below the main diagonal": (lambda x, y: torch.tril(x, -5) @ y, (square(), wide())),
    "square of a symmetric matrix": (lambda x: (lambda s: s @ s)(torch.exp(x @ x.T)), (square(),)),
    "weighted": (lambda x, y: (x * y) @ x.T, (square(), square(3)[0])),
}
WHOLE: dict[str, tuple[Callable[..., Any], tuple[torch.Tensor, ...]]] = {
    "nothing is known": (lambda x, y: x @ y, (square(), square(1))),
    "many diagonals above": (lambda x, y: torch.tril(x, 9) @ y, (square(), wide())),
    "few rows": (lambda x, y: torch.tril(x) @ y, (square(n=5), square(1, 5))),
    "integers": (lambda x, y: torch.tril(x) @ y, (square().long(), wide().long())),
}


@pytest.mark.parametrize("name", LEFT_OUT)
def test_work_is_left_out(name: str) -> None:
    f, given = LEFT_OUT[name]
    graph = graphc.trace(f, *given)
    parted = blocks.by_blocks(graph)
    check(parted)
    assert work(parted) <= 0.8 * work(graph)
    arrays = [t.numpy() for t in given]
    np.testing.assert_allclose(np.asarray(graphc.lower(graph)(*arrays)), f(*given).numpy(), rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(parted.evaluate(*arrays)[parted.outputs[0]], f(*given).numpy(), rtol=1e-12, atol=1e-12)
    assert "concatenate" in graphc.lower(graph).source
    assert "concatenate" not in graphc.lower(graph, strict=True).source


@pytest.mark.parametrize("name", WHOLE)
def test_other_products_are_whole(name: str) -> None:
    f, given = WHOLE[name]
    graph = graphc.trace(f, *given)
    assert blocks.by_blocks(graph) is graph


def test_products_that_einsum_spells() -> None:
    x, y = square(), wide()
    for equation, operands in (("ij,jk->ik", (torch.tril(x), y)), ("ji,jk->ki", (torch.tril(x), y))):
        graph = graphc.optimize(graphc.trace(lambda t, y, e=equation: torch.einsum(e, torch.tril(t), y), x, y))
        assert blocks.by_blocks(graph) is not graph
        found = np.asarray(graphc.lower(graph)(x.numpy(), y.numpy()))
        np.testing.assert_allclose(found, torch.einsum(equation, *operands).numpy(), rtol=1e-12, atol=1e-12)


def test_a_wrong_band_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checker is a checker: with one diagonal less the values differ."""
    f, given = LEFT_OUT["triangle and a few diagonals"]
    right = blocks._Read.band
    monkeypatch.setattr(blocks._Read, "band", lambda self, facts: right(self, facts)._replace(above=1))
    parted = blocks.by_blocks(graphc.trace(f, *given))
    found = parted.evaluate(*[t.numpy() for t in given])[parted.outputs[0]]
    assert not np.allclose(found, f(*given).numpy())
