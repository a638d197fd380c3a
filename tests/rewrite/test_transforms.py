"""Products with Toeplitz matrices, circulant ones and waves: by transforms, values and gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import eager as torch
import graphc

rng = np.random.default_rng(0)
N = 150  # no power of two
C, X = (torch.from_numpy(rng.standard_normal(N)) for _ in range(2))
TURN = 2 * np.pi / N


def between() -> Any:  # made in each program: what it finds there is an input
    return torch.arange(N)[:, None] - torch.arange(N)


def products(row: float = 0, column: float = 0) -> Any:
    return torch.outer(torch.arange(N).double() + row, torch.arange(N).double() + column)


PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {
    "Toeplitz": lambda c, x: c[between().abs()] @ x,
    "a column": lambda c, x: torch.exp(-0.1 * between().abs().double()).T @ (c * x)[:, None],
    "rows and columns": lambda c, x: torch.cat([c[(between() + N)[:140, :130] % 97] @ x[:130], x @ c[between() % 7]]),
    "circulant": lambda c, x: x @ c[between() % N] + c[between() % N] @ x,
    "powers": lambda c, x: (c[3].abs() ** between().abs()) @ x,
    "Fourier": lambda c, x: (torch.cos(TURN * products()) @ x) ** 2 + (torch.sin(TURN * products()) @ x) ** 2,
    "cosines": lambda c, x: torch.cos(TURN / 2 * products(0, 0.5)) @ x + x @ torch.cos(TURN / 2 * products(0.5, 0.5)),
    "sines": lambda c, x: torch.sin(-np.pi / (N + 1) * products(1, 1)).T @ torch.stack([c, x], 1),
    "even": lambda c, x: torch.where(between() % 3 == 0, 2.0, -0.5).double() @ (c * x),
    "complex": lambda c, x: (torch.exp(-1j * TURN * products()) @ torch.complex(x, c)).abs(),
}


WAVES = ("Fourier", "cosines", "sines", "complex", "even")


@pytest.mark.on_numpy
@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_gradients(name: str):
    program = PROGRAMS[name]

    def both(c: Any, x: Any) -> Any:
        y = program(c, x)
        return y, torch.func.grad(lambda c, x: (program(c, x) ** 2).sum(), (0, 1))(c, x)

    graph = graphc.optimize(graphc.trace(both, C, X), level=2 if name in WAVES else 3)
    names = {op.name for op in graph.ops}
    assert names.isdisjoint(("matmul", "einsum"))
    assert not names.isdisjoint(("rfft", "fft"))
    found, expected = graphc.lower(graph)(C, X), both(C, X)
    for a, b in zip((found[0], *found[1]), (expected[0], *expected[1]), strict=True):
        np.testing.assert_allclose(a, b, atol=1e-10 * float(np.abs(b).max() + 1))


@pytest.mark.parametrize("name", ["few", "bent", "strict", "Toeplitz", "powers", "a column"])
def test_what_stays_a_product(name: str):
    programs: dict[str, Callable[[Any, Any], Any]] = {
        "few": lambda c, x: c[between()[:40, :40]] @ x[:40],
        "bent": lambda c, x: torch.cos(0.1 * products() ** 2) @ x,
        "strict": PROGRAMS["Fourier"],
    }
    program = programs.get(name) or PROGRAMS[name]  # a transform would lose the small ones of uneven numbers
    graph = graphc.optimize(graphc.trace(program, C, X), strict=name == "strict")
    assert {op.name for op in graph.ops}.isdisjoint(("rfft", "fft"))
