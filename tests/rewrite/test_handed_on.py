"""Rows that are picked and added up in other places, as along the edges of a graph, beside products."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import eager as torch
import graphc
from tests.normal.searches import cost

NODES, EDGES, WIDE, NARROW = 9, 40, 12, 3
rng = np.random.default_rng(0)


def handed_on(x: Any, s: Any, t: Any, e: Any) -> Any:
    return torch.zeros(NODES, x.shape[1], dtype=x.dtype).index_put((t,), x[s] * e, accumulate=True)


PROGRAMS = {
    "narrowed": lambda x, w, s, t, e: handed_on(x, s, t, e) @ w,
    "widened": lambda x, w, s, t, e: handed_on(x @ w @ w.T, s, t, e),
    "turned": lambda x, w, s, t, e: handed_on(x, s, t, e).T @ x[:, :NARROW],
    "picked": lambda x, w, s, t, e: torch.tanh(x[s] @ w),
    "added up": lambda x, w, s, t, e: handed_on(x[s] @ w, torch.arange(len(s)), t[: len(s)], 1.0),
}
# one row may be spread over all edges, and one number over all rows; indices may be counted from the end
SPREAD = {"many": rng.integers(-NODES, NODES, EDGES), "one": np.array([1])}
WEIGHTS = {"none": 1.0, "each": rng.standard_normal((EDGES, 1)), "one": rng.standard_normal((1, 1))}


@pytest.mark.parametrize("gradient", [False, True], ids=["value", "gradient"])
@pytest.mark.parametrize(("name", "picks", "weights"), list(itertools.product(PROGRAMS, SPREAD, WEIGHTS)))
def test_values(name: str, picks: str, weights: str, gradient: bool):
    x, w, t = (rng.standard_normal((NODES, WIDE)), rng.standard_normal((WIDE, NARROW)), rng.integers(0, NODES, EDGES))
    given = [torch.from_numpy(a) for a in (x, w, SPREAD[picks], t, np.asarray(WEIGHTS[weights]))]
    f = PROGRAMS[name]
    if gradient:
        f = torch.func.grad(lambda *xs: (torch.sin(PROGRAMS[name](*xs)) ** 2).sum(), (0, 1))
    graph = graphc.trace(f, *given)
    found = graphc.optimize(graph)
    assert cost(found) <= cost(graph)
    arrays = [a.numpy() for a in given]
    for a, b in zip(found.outputs, graph.outputs, strict=True):
        np.testing.assert_allclose(found.evaluate(*arrays)[a], graph.evaluate(*arrays)[b], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", ["narrowed", "widened", "picked"])
def test_what_is_handed_on_is_narrow(name: str):
    x, w, e = torch.zeros(NODES, WIDE), torch.zeros(WIDE, NARROW), torch.zeros(EDGES, 1)
    s = t = torch.zeros(EDGES, dtype=torch.int64)
    found = graphc.optimize(graphc.trace(PROGRAMS[name], x, w, s, t, e))
    assert max(node.size for node in found.nodes.values()) <= EDGES * NARROW, found
