"""Python's loops over rows, in values and gradients: whatever they read, and however far apart, passes keep it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import eager as torch
import graphc
from tests.depth import one_in

STEPS: list[Callable[..., Any]] = [
    lambda a, b, A, v: (A @ a) * b,
    lambda a, b, A, v: torch.outer(a, b) @ v,
    lambda a, b, A, v: torch.tanh(a) * b.sum(),
    lambda a, b, A, v: a * (b @ v) + b,
    lambda a, b, A, v: (a - b) ** 2 @ A,
    lambda a, b, A, v: torch.sin(a @ A) * v,
]
LATER: list[Callable[..., Any]] = [
    lambda t, v, k: t, lambda t, v, k: t * (k + 1.0), lambda t, v, k: t + v, lambda t, v, k: t - t.mean(),
]  # fmt: skip
ENDS: list[Callable[..., Any]] = [
    lambda found, v: sum(found),
    lambda found, v: torch.stack(found),
    lambda found, v: torch.cat(found),
    lambda found, v: sum(t.sum() * (t @ v) for t in found),
    lambda found, v: torch.stack(found).sum(0) + found[0] + found[-1],
]


def loop(rng: np.random.Generator) -> Callable[..., Any]:
    """A loop over rows, or pairs of rows, of X, with those of X or Y that are some rows ahead."""
    first, apart, width, lag = (int(rng.choice(n)) for n in ([0, 1], [1, 1, 2, 3], [1, 1, 2], [0, 1, 2]))
    step, later, end = (some[rng.integers(len(some))] for some in (STEPS, LATER, ENDS))
    backwards, alone = rng.random(2) < 0.3

    def f(X: Any, Y: Any, A: Any, v: Any) -> Any:
        places = range(first, len(X) - width - lag + 1, apart)
        found = []
        for k in reversed(places) if backwards else places:
            a = X[k] if width == 1 else X[k : k + width].mean(0)
            found.append(later(step(a, (X if alone else Y)[k + lag], A, v), v, k))
        return end(found, v)

    return f


def check_loop(seed: int) -> None:
    rng = np.random.default_rng(seed)
    f, rows = loop(rng), int(rng.integers(6, 12))
    given = [rng.standard_normal(shape) for shape in ((rows, 5), (rows, 5), (5, 5), (5,))]
    graph = graphc.gradients(graphc.trace(lambda *xs: (f(*xs) ** 2).sum(), *map(torch.tensor, given)), values=True)
    optimized = graphc.optimize(graph)
    for a, b in zip(optimized.outputs, graph.outputs, strict=True):
        found, expected = optimized.evaluate(*given)[a], graph.evaluate(*given)[b]
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("seed", one_in(3, range(24)))
def test_loops(seed: int) -> None:
    check_loop(seed)


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(24, 500))
def test_many_loops(seed: int) -> None:
    check_loop(seed)
