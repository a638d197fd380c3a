"""Gradients of naive programs cost what those of the best forms cost: forward and backward are planned together."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import eager as torch
import graphc
from graphc.ir import Graph
from graphc.passes.cse import eliminate_common_subexpressions
from graphc.passes.dce import eliminate_dead_code
from graphc.rewrite.cost import node_cost

N = 120
M, V, THIN = (N, N), (N,), (N, 6)

# naive, the form of an expert, shapes
PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "H'Hx": (lambda h, x: h.T @ h @ x, lambda h, x: (h @ x) @ h, (M, V)),
    "A'BA'By": (lambda a, b, y: a.T @ b @ a.T @ b @ y, lambda a, b, y: (b @ ((b @ y) @ a)) @ a, (M, M, V)),
    "H'yx'H": (lambda h, y, x: torch.outer(h.T @ y, x) @ h, lambda h, y, x: torch.outer(y @ h, x @ h), (M, V, V)),
    "(A'B)'A'B": (lambda a, b: (a.T @ b).T @ a.T @ b, lambda a, b: (lambda s: s.T @ s)(a.T @ b), (M, M)),
    "B'AA'B": (lambda a, b: b.T @ a @ a.T @ b, lambda a, b: (lambda s: s.T @ s)(a.T @ b), (M, M)),
    "(A - H'H)x": (lambda a, h, x: (a - h.T @ h) @ x, lambda a, h, x: a @ x - (h @ x) @ h, (M, M, V)),
    "AB + AC": (lambda a, b, c: a @ b + a @ c, lambda a, b, c: a @ (b + c), (M, M, M)),
    "diag(d)B": (lambda d, b: torch.diag(d) @ b, lambda d, b: d[:, None] * b, (V, M)),
    "(AB)[2, 2]": (lambda a, b: (a @ b)[2, 2], lambda a, b: a[2] @ b[:, 2], (M, M)),
    "diag(AB)": (lambda a, b: torch.diag(a @ b), lambda a, b: (a * b.T).sum(1), (M, M)),
    "tr(AB)": (lambda a, b: torch.trace(a @ b), lambda a, b: (a * b.T).sum(), (M, M)),
    "sum(AB)": (lambda a, b: (a @ b).sum(), lambda a, b: a.sum(0) @ b.sum(1), (M, M)),
    "tanh(AB)[2]": (lambda a, b: torch.tanh(a @ b)[2], lambda a, b: torch.tanh(a[2] @ b), (M, M)),
    "softmax(AB)[3]": (lambda a, b: torch.softmax(a @ b, 1)[3], lambda a, b: torch.softmax(a[3] @ b, 0), (M, M)),
    "QK'V": (lambda q, k, v: (q @ k.T) @ v, lambda q, k, v: q @ (k.T @ v), (THIN, THIN, THIN)),
    "||UV'||^2": (lambda u, v: ((u @ v.T) ** 2).sum(), lambda u, v: ((u.T @ u) * (v.T @ v)).sum(), (THIN, THIN)),
    "(I - 2vv')A": (
        lambda v, a: (torch.eye(N) - 2 * torch.outer(v, v)) @ a, lambda v, a: a - 2 * torch.outer(v, v @ a), (V, M),
    ),
    "rows": (lambda x, w: torch.stack([w @ x[t] for t in range(9)]), lambda x, w: x @ w.T, ((9, N), M)),
    # long chains, of which each is a sum of many products in the gradient
    "AAAAAAAAx": (
        lambda a, x: (a @ a) @ (a @ a) @ ((a @ a) @ (a @ a)) @ x, lambda a, x: functools.reduce(
            lambda y, _: a @ y, range(8), x), (M, V),
    ),
    "softmax(QK'/3)XW[-1]": (
        lambda x, q, k, w: (torch.softmax((x @ q) @ (x @ k).T / 3, -1) @ (x @ w))[-1],
        lambda x, q, k, w: (torch.softmax(x @ (k @ (x[-1] @ q)) / 3, -1) @ x) @ w, ((N, 8), (8, 8), (8, 8), (8, 8)),
    ),
    "(I + B'QB)^-1 B'QAx": (
        lambda a, q, b, x: torch.linalg.inv(torch.eye(6) + b.T @ q @ b) @ b.T @ q @ a @ x,
        lambda a, q, b, x: torch.linalg.solve(torch.eye(6) + (p := b.T @ q) @ b, p @ (a @ x)), (M, M, THIN, V),
    ),
}  # fmt: skip


def graph_of(f: Callable[..., Any], gradient: bool, given: list[Any]) -> Graph:
    if gradient:
        f = torch.func.grad(lambda *xs, f=f: (f(*xs) ** 2).sum(), tuple(range(len(given))))
    return graphc.trace(f, *given)


def cost(graph: Graph) -> float:
    return sum(node_cost(node, graph.nodes) for node in graph.nodes.values())


@pytest.mark.parametrize("gradient", [False, True], ids=["value", "gradient"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_naive_programs_cost_what_the_best_forms_cost(name: str, gradient: bool):
    naive, best, shapes = PROGRAMS[name]
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape) / np.sqrt(N) for shape in shapes]
    given = [torch.from_numpy(a.astype(np.float32)) for a in arrays]
    written = graph_of(naive, gradient, given)
    ours = graphc.optimize(written)
    theirs = eliminate_dead_code(eliminate_common_subexpressions(graph_of(best, gradient, given)))  # as jax.grad has it
    # a dot product may be a loop, in which what its operands are made of is computed
    assert cost(ours) <= 1.15 * cost(theirs) + 4 * N, f"{cost(ours)} for {cost(theirs)}\n{ours}"
    found, wanted = (graph(*[t.numpy() for t in given]) for graph in (ours, written))
    for a, b in zip(_several(found), _several(wanted), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4 * np.abs(b).max())


def _several(result: Any) -> tuple[Any, ...]:
    return tuple(result) if isinstance(result, (tuple, list)) else (result,)
