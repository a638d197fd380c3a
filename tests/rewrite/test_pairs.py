"""Sums over the pairs that constant indices pick: values, gradients, and that nothing is gathered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import eager as torch
import graphc
from graphc.passes import optimize

N = 30
X = np.random.default_rng(0).standard_normal((N, 4))


def pairs(m: Any, lower: bool = False, offset: int = 1) -> Any:
    return m[tuple((torch.tril_indices if lower else torch.triu_indices)(N, N, offset))]


def distances(x: Any) -> Any:
    return ((x[:, None] - x[None]) ** 2).sum(-1)


PROGRAMS: dict[str, Callable[..., Any]] = {
    "products": lambda x: pairs(x @ x.T).sum(),
    "a mean, below": lambda x: pairs((x @ x.T) * 2 + 1, True, -1).mean(),
    "with the diagonal": lambda x: (pairs(x @ x.T, False, 0) * x[0, 0]).square().sum(),
    "energies": lambda x: (1 / torch.sqrt(pairs(distances(x))) - torch.exp(-pairs(distances(x)))).sum(),
}


@pytest.mark.parametrize("gradient", [False, True], ids=["value", "gradient"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_pairs(name: str, gradient: bool):
    f = PROGRAMS[name]
    graph = graphc.trace(torch.func.grad(lambda x: f(x) ** 2) if gradient else f, torch.from_numpy(X))
    optimized = optimize(graph)
    gathers = {op.name for op in optimized.ops} & {"index", "index_put"}
    assert bool(gathers) == (gradient and name == "energies"), optimized
    np.testing.assert_allclose(optimized(X), graph(X), rtol=1e-9, atol=1e-9)


OTHERS: dict[str, Callable[..., Any]] = {
    "what is read besides": lambda x: (lambda p: (p.sum(), p.cumsum(0)))(pairs(x @ x.T)),
    "another triangle": lambda x: (pairs(x @ x.T, False, 2).sum(), pairs(x @ x.T, True, 1).sum()),
    "a pair twice": lambda x: (x @ x.T)[torch.tensor([0, 0, 1] * 5), torch.tensor([1, 1, 2] * 5)].sum(),
    "two matrices": lambda x: (pairs(x @ x.T) * pairs(torch.exp(x @ x.T / 9), True, -1)).sum(),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_places_stay_right(name: str):
    graph = graphc.trace(OTHERS[name], torch.from_numpy(X))
    found, expected = optimize(graph)(X), graph(X)
    for a, b in zip(*[r if isinstance(r, tuple) else (r,) for r in (found, expected)], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)
