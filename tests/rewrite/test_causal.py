"""Triangles of products through few columns: values, gradients, and that no such triangle is made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import eager as torch
import graphc
from graphc.passes import optimize
from tests.depth import one_in

N = 330  # no multiple of a chunk
rng = np.random.default_rng(0)
GIVEN = {name: rng.standard_normal(shape) for name, shape in (("q", (N, 9)), ("k", (N, 9)), ("v", (N, 6)), ("u", (N,)))}


def ones(diagonal: int = 0) -> Any:
    return torch.tril(torch.ones(N, N, dtype=torch.float64), diagonal)


PROGRAMS: dict[str, Callable[..., Any]] = {
    "causal attention": lambda q, k, v: torch.tril(q @ k.T) @ v,
    "strictly later": lambda q, k, v: torch.triu(q @ k.T / 3, 1) @ v,
    "a mask of ones": lambda q, k, v: (ones() * (q @ k.T)).T @ v,
    "a mask that fills": lambda q, k, v: (q @ k.T).masked_fill(ones() == 0, 0.0) @ v,
    "from the left": lambda q, k, v: (2 * v.T) @ (torch.tril(q @ k.T, -1) * 0.5),
    "sums": lambda q, k: torch.tril(q @ k.T).sum(1) + torch.tril(q @ k.T).sum(0) + torch.triu(q @ k.T).sum(),
    "a column times a row": lambda u, v: torch.tril(torch.outer(u, u)) @ v,
    "running means": lambda v: (ones() / torch.arange(1, N + 1)[:, None]) @ v,
    "sums so far, and before": lambda u: torch.stack([ones() @ u, ones(-1) @ u, u @ ones()]),
}

PAIRS: dict[str, Callable[..., Any]] = {  # sums over all pairs
    "interactions": lambda q, u: torch.triu((q * u[:, None]) @ (q * u[:, None]).T, 1).sum(),
    "with the diagonal": lambda q: torch.tril(q @ q.T / 2).sum() ** 2,
    "charges": lambda q, u: (torch.outer(u, u) * (q @ q.T) * ones(-1)).sum(),
    "squares": lambda q: (torch.triu(q @ q.T, 1) ** 2).sum(),
    "a product with both": lambda q, v: torch.triu(q @ q.T, 1) @ v + (v.T @ torch.triu(q @ q.T, 1)).T,
}


@pytest.mark.parametrize("gradient", one_in(2, [False, True], lambda gradient: "gradient" if gradient else "value"))
@pytest.mark.parametrize("name", [*PROGRAMS, *PAIRS])
def test_no_triangle_is_made(name: str, gradient: bool):
    f = PROGRAMS.get(name) or PAIRS[name]
    given = [torch.from_numpy(GIVEN[x]) for x in f.__code__.co_varnames[: f.__code__.co_argcount]]
    if gradient:
        f = torch.func.grad(lambda *xs, f=f: (f(*xs) ** 2).sum(), tuple(range(len(given))))
    graph = graphc.trace(f, *given)
    optimized = optimize(graph)
    if name not in PAIRS or not gradient or name not in ("charges", "a product with both"):  # in these some are left
        assert all(node.size < N * N for node in optimized.nodes.values() if not node.op.several), optimized
        assert name not in PAIRS or not {"cumsum", "tril", "triu"} & {op.name for op in optimized.ops}, optimized
    arrays = [x.numpy() for x in given]
    found, expected = optimized(*arrays), graph(*arrays)
    for a, b in zip(found, expected, strict=True) if gradient else ((found, expected),):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9 * np.abs(b).max())


@pytest.mark.parametrize("diagonal", [-2, 1, 3])
def test_other_diagonals_stay(diagonal: int):
    given = GIVEN["q"], GIVEN["v"]
    graph = graphc.trace(lambda q, v: torch.tril(q @ q.T, diagonal) @ v, *map(torch.from_numpy, given))
    np.testing.assert_allclose(optimize(graph)(*given), graph(*given), rtol=1e-9, atol=1e-9)


def test_a_column_times_a_row_is_a_running_sum():
    given = [torch.from_numpy(GIVEN[name]) for name in "uv"]
    f = lambda u, v: torch.triu(torch.outer(u, u), 1) @ v + (ones() @ u)[:, None]
    names = {op.name for op in optimize(graphc.trace(f, *given)).ops}
    assert "cumsum" in names and not names & {"matmul", "einsum", "tril", "triu"}, names
