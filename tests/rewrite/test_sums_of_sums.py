"""Sums of sums, and over what is centred: values, gradients, and what is left of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import eager as torch
import graphc
from graphc.passes import optimize

rng = np.random.default_rng(0)
X, Y = (torch.from_numpy(rng.standard_normal((7, 5, 3))) for _ in range(2))


def centred(m: Any) -> Any:
    return m - m.mean(0) - m.mean(1)[:, None] + m.mean((0, 1))


# how many elements the sums of the value read, and those of the gradient
PROGRAMS: dict[str, tuple[Callable[..., Any], int, int]] = {
    "distance covariance": (lambda x, y: (centred(x[..., 0]) * centred(y[..., 0])).mean(), 110, 185),
    "covariance of rows": (
        lambda x, y: ((x - x.mean(1, keepdim=True)) * (y - y.mean(1, keepdim=True))).sum(1),
        210,
        315,
    ),
    "a sum of means": (lambda x, y: x.sum((0, 1, 2)) * x.mean((0, 2)) - x.mean(2).sum() + y.sum(), 285, 295),
    "a mean of sums": (
        lambda x, y: x.mean() * x.sum(0, keepdim=True) + y.mean((0, 1), keepdim=True) * y.sum(0),
        240,
        285,
    ),
    "not centred": (lambda x, y: ((x - x.mean(0)) * (y - y.mean(1, keepdim=True))).sum(0), 315, 525),
}


@pytest.mark.parametrize("gradient", [False, True], ids=["value", "gradient"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_sums(name: str, gradient: bool):
    f, *most = PROGRAMS[name]
    g = torch.func.grad(lambda *xs: (f(*xs) ** 3).sum(), (0, 1)) if gradient else f
    graph = graphc.trace(g, X, Y)
    optimized = optimize(graph)
    sizes = [optimized.nodes[n.inputs[0]].size for n in optimized.nodes.values() if n.op.name in ("sum", "mean")]
    assert sum(sizes) <= most[gradient], (optimized, sum(sizes))
    arrays = X.numpy(), Y.numpy()
    for found, expected in zip(*[r if gradient else (r,) for r in (optimized(*arrays), graph(*arrays))], strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
