"""Elements, rows and columns that an index picks from products: in value and gradient, no product of all of it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import eager as torch
import graphc
from tests.normal.searches import cost

N, K, FEW = 96, 80, 6
rng = np.random.default_rng(0)
GIVEN = {
    "A": rng.standard_normal((N, K)), "B": rng.standard_normal((K, N)), "C": rng.standard_normal((N, K)),
    "i": rng.integers(0, N, FEW), "j": rng.integers(-N, N, FEW), "t": rng.integers(0, N, N), "p": rng.permutation(N),
}  # fmt: skip

# the names of parameters are those of GIVEN
PROGRAMS: dict[str, Callable[..., torch.Tensor]] = {
    "rows": lambda A, B, i: (A @ B)[i],
    "columns": lambda A, B, j: (A @ B)[:, j],
    "places": lambda A, B, i, j: (A @ B)[i, j],
    "index_select": lambda A, B, i: torch.index_select(A @ B, 1, i),
    "one of each row": lambda A, B, t: (A @ B).gather(1, t[:, None]).squeeze(1),
    "permutation": lambda C, p: torch.eye(N, dtype=torch.float64)[p] @ C,
    "one hot": lambda C, t: torch.nn.functional.one_hot(t, N).double() @ C,
}


@pytest.mark.parametrize("gradient", [False, True], ids=["value", "gradient"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_for_less(name: str, gradient: bool):
    f = PROGRAMS[name]
    names = f.__code__.co_varnames[: f.__code__.co_argcount]
    arrays = [GIVEN[k] for k in names]
    program = f
    if gradient:
        places = tuple(k for k, a in enumerate(arrays) if a.dtype.kind == "f")
        program = torch.func.grad(lambda *xs: (f(*xs) ** 2).sum(), places)
    graph = graphc.trace(program, *map(torch.from_numpy, arrays))
    better = graphc.optimize(graph)
    assert cost(better) < 0.4 * cost(graph)
    found, expected = better(*arrays), graph(*arrays)
    for a, b in zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]:
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("turned", [False, True])
def test_indices_that_have_been_checked_need_no_mask(turned: bool):
    def checked(C, t):
        picks = torch.nn.functional.one_hot(t, N).double()
        return picks.T @ C if turned else picks @ C

    def unchecked(C, t):
        picks = (t[:, None] == torch.arange(N)).double()
        return picks.T @ C if turned else picks @ C

    t = np.where(np.arange(N) % 3 == 0, -1, GIVEN["t"])
    for f, own, masks in ((checked, GIVEN["t"], False), (unchecked, t, True)):
        graph = graphc.trace(f, torch.from_numpy(GIVEN["C"]), torch.from_numpy(own))
        better = graphc.optimize(graph)
        names = {node.op.name for node in better.nodes.values()}
        assert not names & {"matmul", "einsum"}
        assert ("where" in names) is masks
        assert ("checks.index" in graphc.lower(better).source) is masks
        np.testing.assert_allclose(better(GIVEN["C"], own), graph(GIVEN["C"], own), rtol=1e-10, atol=1e-10)
    with pytest.raises(RuntimeError, match="Class values must be non-negative"):
        graphc.compile(checked)(torch.from_numpy(GIVEN["C"]), torch.from_numpy(t))


@pytest.mark.parametrize("name", ["places", "one of each row"])
def test_an_index_out_of_range_is_an_error(name: str):
    f = PROGRAMS[name]
    names = f.__code__.co_varnames[: f.__code__.co_argcount]
    tensors = [torch.from_numpy(GIVEN[k] if k in "AB" else np.full_like(GIVEN[k], N)) for k in names]
    for run in (f, graphc.compile(f)):
        with pytest.raises((IndexError, RuntimeError), match=r"out of (range|bounds)"):
            run(*tensors)


@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize("right", [False, True])
def test_triangles_of_ones_add_up_what_is_before(lower: bool, right: bool):
    def f(C: torch.Tensor) -> torch.Tensor:
        ones = torch.ones(N, N, dtype=torch.float64)
        triangle = torch.tril(ones) if lower else torch.triu(ones)
        return C.T @ triangle.T if right else triangle @ C

    program = torch.func.grad(lambda C: (f(C) ** 2).sum())
    for g in (f, program):
        graph = graphc.trace(g, torch.from_numpy(GIVEN["C"]))
        better = graphc.optimize(graph)
        assert cost(better) < 0.3 * cost(graph)
        np.testing.assert_allclose(better(GIVEN["C"]), graph(GIVEN["C"]), rtol=1e-10, atol=1e-10)
