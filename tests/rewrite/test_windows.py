"""Sums over windows that overlap: values, gradients, and that nothing large is added to anything large."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import eager as torch
import graphc
from graphc.passes import optimize

N, M = 90, 83
U = np.random.default_rng(0).standard_normal((N, M))


def laplacian(u: Any) -> Any:
    return u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1]


PROGRAMS: dict[str, Callable[..., Any]] = {
    "columns of a Laplacian": lambda u: laplacian(u).sum(0),
    "rows of a Laplacian": lambda u: laplacian(u.T).mean(0),
    "all of a Laplacian": lambda u: laplacian(u).sum(),
    "trapezoids": lambda u: ((u[1:] + u[:-1]) / 2).sum(0),
    "differences": lambda u: (u[1:] - u[:-1]).sum(0),
    "windows far apart": lambda u: (u[:60] - 2 * u[25:85] + u[30:]).sum(0),
    "a moving mean": lambda u: sum(u[:, k : M - 4 + k] * (0.1 * k + 0.2) for k in range(5)).sum(1),
}


@pytest.mark.parametrize("gradient", [False, True], ids=["value", "gradient"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_windows(name: str, gradient: bool):
    f = PROGRAMS[name]
    graph = graphc.trace(torch.func.grad(lambda u: (f(u) ** 3).sum()) if gradient else f, torch.from_numpy(U))
    optimized = optimize(graph)
    assert all(n.size < 9 * max(N, M) for n in optimized.nodes.values() if n.op.name in ("add", "sub")), optimized
    found, expected = optimized(U), graph(U)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-11 * np.abs(expected).max() + 1e-12)


OTHERS: dict[str, Callable[..., Any]] = {
    "windows that hardly overlap": lambda u: (u[:40] + u[N - 40 :]).sum(0),
    "windows of two arrays": lambda u: (u[1:] + torch.exp(u)[:-1]).sum(0),
    "one array only": lambda u: (u[2:5] + u[3:6] + 1).sum(0),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_sums_stay_right(name: str):
    graph = graphc.trace(torch.func.grad(lambda u: (OTHERS[name](u) ** 3).sum()), torch.from_numpy(U))
    np.testing.assert_allclose(optimize(graph)(U), graph(U), rtol=1e-9, atol=1e-9)
