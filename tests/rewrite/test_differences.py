"""Sums of squared differences of all pairs: without the pairs, and as exact as with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import eager as torch
import graphc
from graphc.passes import optimize

pytestmark = pytest.mark.on_numpy

N, M, K = 40, 30, 6

PROGRAMS: dict[str, Callable[..., Any]] = {
    "all pairs": lambda x, y: ((x[:, None] - x[None]) ** 2).sum(),
    "mean of sums": lambda x, y: ((x[:, None] - y) ** 2).sum(-1).mean(),
    "of two arrays, by rows": lambda x, y: (x[:, None] - y[None]).square().sum((1, 2)),
    "of two arrays, by columns": lambda x, y: ((x[:, None] - y[None]) ** 2).sum((0,), keepdim=True),
    "of coordinates": lambda x, y: ((x[:, None] - x[None]) * (x[:, None] - x[None])).mean((0, 1)),
}


def points(center: float, spread: float) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [(center + spread * rng.standard_normal((n, K))).astype(np.float32) for n in (N, M)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_pairs_are_left_out(name: str):
    graph = optimize(graphc.trace(PROGRAMS[name], *map(torch.from_numpy, points(0, 1))))
    assert max(node.size for node in graph.nodes.values()) <= N * K, graph


@pytest.mark.parametrize(("center", "spread"), [(0.0, 1.0), (1e4, 1e-1), (1e6, 1.0)])
@pytest.mark.parametrize("name", PROGRAMS)
def test_no_digits_are_lost_of_points_far_from_the_origin(name: str, center: float, spread: float):
    arrays = points(center, spread)
    f = PROGRAMS[name]
    graph = optimize(graphc.trace(f, *map(torch.from_numpy, arrays)))
    expected = f(*[torch.from_numpy(a.astype(np.float64)) for a in arrays]).numpy()
    np.testing.assert_allclose(graph(*arrays[: len(graph.inputs)]), expected, rtol=2e-6)


@pytest.mark.parametrize("f", [
    lambda x, y: ((x[:, None] - y[None]) ** 2).sum(-1),  # a distance for each pair
    lambda x, y: ((x - x.mean(0)) ** 2).sum(),
    lambda x, y: ((x[0] - y) ** 2).sum(0),
])  # fmt: skip
def test_others_stay(f: Callable[..., Any]):
    graph = graphc.trace(f, *map(torch.from_numpy, points(0, 1)))
    names = [node.op.name for node in optimize(graph).nodes.values()]
    assert "stop_gradient" not in names


@pytest.mark.parametrize("f", [PROGRAMS["mean of sums"], lambda x, y: ((x[:, None] - y[None]).sum((0, 1)) ** 2).sum()])
def test_the_gradient_of_an_optimized_graph(f: Callable[..., Any]):
    arrays = points(0, 1)
    graph = graphc.trace(f, *map(torch.from_numpy, arrays))
    expected = graphc.gradients(graph)(*arrays)
    found = graphc.gradients(optimize(graph))(*arrays)
    assert found.keys() == expected.keys()
    for name, gradient in expected.items():
        np.testing.assert_allclose(found[name], gradient, rtol=1e-4, atol=1e-6)


WEIGHTED: dict[str, Callable[..., Any]] = {
    "sums over one": lambda x, y: ((x[:, None] - y[None]).sum(1) ** 3).sum(),
    "weights": lambda x, y: (torch.arange(1.0 * M, dtype=x.dtype)[None, :, None] * (x[:, None] - y[None])).sum(1),
    "a product": lambda x, y: torch.einsum("ijk,kl->il", x[:, None] - y[None], torch.ones(K, 2, dtype=x.dtype)),
}


@pytest.mark.parametrize("name", [*PROGRAMS, *WEIGHTED])
def test_no_digits_of_gradients_are_lost_far_from_the_origin(name: str):
    """The sum over j of x_i - y_j is not n x_i less another sum."""
    f, arrays = (PROGRAMS | WEIGHTED)[name], points(1e4, 1e-2)

    def loss(x, y):
        return f(x, y).square().sum() + 0 * y.sum()

    graph = optimize(graphc.gradients(graphc.trace(loss, *[torch.from_numpy(a).requires_grad_() for a in arrays])))
    exact = [torch.from_numpy(a.astype(np.float64)).requires_grad_() for a in arrays]
    loss(*exact).backward()
    for (_, found), tensor in zip(graph(*arrays).items(), exact, strict=True):
        expected = tensor.grad.numpy()
        np.testing.assert_allclose(found, expected, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_no_digits_of_short_numbers_are_lost(dtype: torch.dtype):
    x, y = (torch.from_numpy(a).to(dtype) for a in points(100.0, 1.0))
    f = WEIGHTED["a product"]
    expected = f(x.double(), y.double())
    found = graphc.compile(f)(x, y)
    assert (found - expected).abs().max() <= 0.02 * expected.abs().max()
