"""Rows that are picked of what is computed row by row, and extremes alone: values, gradients, and what is computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import eager as torch
import graphc
from graphc.passes import optimize

N = 40
rng = np.random.default_rng(0)
X, W, B = rng.standard_normal((N, 6)), rng.standard_normal((6, 7)), rng.standard_normal(7)
PLACES = np.array([3, 5, 5, 9])
GIVEN = X, W, B, PLACES

# what is computed of all rows: nothing
PROGRAMS: dict[str, Callable[..., Any]] = {
    "a layer": lambda x, w, b, i: torch.tanh(x @ w + b)[i],
    "scaled rows": lambda x, w, b, i: (torch.exp(x) * x.sum(1, keepdim=True))[i] @ w,
    "sums of rows": lambda x, w, b, i: torch.exp(x @ w).sum(1)[i] * b[:4],
    "single elements": lambda x, w, b, i: torch.tanh(x @ w)[i, i - 3] * b[:4],
    "rows of a stack": lambda x, w, b, i: torch.tanh((x * b[:2, None, None]) @ w)[:, i],
    "some of a stack": lambda x, w, b, i: torch.tanh(x[:, :, None] @ w[None, :, :][:, :1])[i],
    "rows of triangles": lambda x, w, b, i: (torch.tril(torch.exp(x @ w), -1) * b)[i - 7] @ w.T,
    "columns of triangles": lambda x, w, b, i: torch.triu(torch.exp(w.T @ x.T), 2)[:, i - 12],
    "columns": lambda x, w, b, i: torch.sigmoid(x.T + x.T.sum(0))[:, i],
}
VALUES = PROGRAMS | {
    "an embedding": lambda x, w, b, i: torch.nn.functional.embedding(i, torch.relu(x) * 2),
    "probabilities": lambda x, w, b, i: torch.softmax(x @ w + b, 1)[i],
    "the same rows twice": lambda x, w, b, i: torch.tanh(x @ w)[i] + torch.tanh(x @ w)[i] ** 2,
}


@pytest.mark.parametrize("name", [*VALUES, *[f"gradient of {name}" for name in PROGRAMS]])
def test_only_rows_that_are_picked_are_computed(name: str):
    f = VALUES[name.removeprefix("gradient of ")]
    g = torch.func.grad(lambda *xs: (f(*xs) ** 2).sum(), (0, 1, 2)) if name not in VALUES else f
    graph = graphc.trace(g, *map(torch.from_numpy, GIVEN))
    optimized = optimize(graph)
    dear = [n for n in optimized.nodes.values() if n.op.name in ("tanh", "exp", "sigmoid", "relu", "softmax", "matmul")]
    assert all(N not in n.shape for n in dear), optimized
    for a, b in zip(*[r if isinstance(r, tuple) else (r,) for r in (optimized(*GIVEN), graph(*GIVEN))], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def test_other_places_stay_right():
    def f(x: Any, w: Any, i: Any) -> Any:
        stack, j = x[:36].reshape(6, 6, 6).exp(), i[:2]
        return (
            (w[:, 0] @ stack)[j - 3], (w[:, 0] @ stack)[:, j - 4], (stack @ stack)[:, j, j - 9],
            (stack @ stack)[j, j, j], torch.tril(stack)[:, j], torch.tril(stack)[j - 9].sum(0),
            torch.triu(stack)[:, :, j], stack.sum(1)[j],
            (torch.zeros(40, dtype=torch.bool).index_put((i,), torch.ones(4, dtype=torch.bool), True) * 1).sum(),
        )  # fmt: skip

    given = X, W, PLACES
    graph = graphc.trace(f, *map(torch.from_numpy, given))
    for a, b in zip(optimize(graph)(*given), graph(*given), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def attended(x: Any, i: Any) -> Any:
    later = ~torch.tril(torch.ones(N, N, dtype=torch.bool))
    return (torch.softmax((x @ x.T / 3).masked_fill(later, -torch.inf), 1) @ x)[i]


@pytest.mark.parametrize("f", [attended, torch.func.grad(lambda x, i: attended(x, i).square().sum())])
def test_no_matrix_is_made_for_a_few_rows_of_causal_attention(f: Callable[..., Any]):
    graph = graphc.trace(f, torch.from_numpy(X), torch.from_numpy(PLACES))
    optimized = optimize(graph)
    assert all(node.shape != (N, N) for node in optimized.nodes.values()), optimized
    np.testing.assert_allclose(optimized(X, PLACES), graph(X, PLACES), rtol=1e-9, atol=1e-12)


def test_rows_of_a_mask_out_of_range_are_an_error():
    mask = graphc.compile(lambda i: torch.tril(torch.ones(N, N))[i] * 2)
    assert mask(torch.tensor([2, -1])).sum(1).tolist() == [6, 2 * N]
    with pytest.raises(IndexError, match="out of"):
        mask(torch.tensor([2, N]))


def test_what_is_read_elsewhere_is_computed_as_a_whole():
    def f(x: Any, i: Any, j: Any) -> Any:
        y = torch.tanh(x)
        return y[i].sum() + y[j].sum() * torch.exp(y).sum(), torch.softmax(x, 0)[i], torch.tanh(x.T)[:, i[:30]]

    given = X, np.arange(30), np.array([1, 2])
    graph = graphc.trace(f, *map(torch.from_numpy, given))
    for a, b in zip(optimize(graph)(*given), graph(*given), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_extremes_whose_places_nobody_reads():
    def f(x: Any) -> Any:
        return x.max(1).values, x.min(0, keepdim=True)[0], x.max(0).indices, *x.min(1)

    x = np.where(X > 1, np.nan, X)
    graph = graphc.trace(f, torch.from_numpy(x))
    optimized = optimize(graph)
    assert [op.name for op in optimized.ops if op.several] == ["min_dim"]
    for a, b in zip(optimized(x), graph(x), strict=True):
        np.testing.assert_array_equal(a, b)


def test_rows_that_are_needed_as_they_are_put_are_not_put_again():
    """As by an optimizer with moments, which reads the gradient of a table several times."""

    def moments(rows: torch.Tensor, where: torch.Tensor, first: torch.Tensor, second: torch.Tensor) -> Any:
        grad = torch.zeros(500, 4, dtype=torch.float64).index_add(0, where, rows)
        return first.lerp(grad, 0.1), second * 0.99 + grad * grad * 0.01

    arrays = [np.ones((5, 4)), np.arange(5), np.ones((500, 4)), np.ones((500, 4))]
    graph = graphc.optimize(graphc.trace(moments, *map(torch.from_numpy, arrays)))
    assert [node.op.name for node in graph.nodes.values()].count("index_put") == 1
