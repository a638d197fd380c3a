"""Matrices that are written into constants and multiplied with: what is written is multiplied, not the matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import eager as torch
import graphc
from graphc.ops import OPS
from tests.normal.searches import cost

N = 60
rng = np.random.default_rng(0)
GIVEN = {"A": rng.standard_normal((N, N)) + 9 * np.eye(N), "x": rng.standard_normal(N), "t": np.array(0.3)}


def eye() -> Any:
    return torch.eye(N, dtype=torch.float64)


def rotation(t: Any) -> Any:
    G, c, s = eye(), torch.cos(t), torch.sin(t)
    G[3, 3], G[7, 7], G[3, 7], G[7, 3] = c, c, -s, s
    return G


def reflection(x: Any, k: int) -> Any:
    v, H = x[k:] / torch.linalg.norm(x[k:]), eye()
    H[k:, k:] -= 2 * torch.outer(v, v)
    return H


def elimination(A: Any) -> Any:
    L = eye()
    L[1:, 0] = -A[1:, 0] / A[0, 0]
    return L @ A


def companion(x: Any) -> Any:
    C = torch.zeros(N, N, dtype=torch.float64)
    C[1:, :-1] = torch.eye(N - 1, dtype=torch.float64)
    C[:, -1] = x
    return C @ (2 * x)


def swapped(A: Any) -> Any:
    P = eye()
    P[[2, 5]] = P[[5, 2]]
    return P @ A


def one_written(M: Any, at: Any, value: Any) -> Any:
    M[at] = value
    return M


# the names of their parameters are those of GIVEN
LESS: dict[str, Callable[..., Any]] = {
    "a rotation": lambda A, t: rotation(t) @ A,
    "from both sides": lambda A, t: rotation(t).T @ A @ rotation(t),
    "a reflection": lambda A, x: reflection(x, 4) @ A,
    "an elimination": elimination,
    "a row times a number": lambda A, t: one_written(eye(), (4, 4), t) @ A,
    "a row added": lambda A, t: A @ one_written(eye(), (4, 2), t),
    "what is written twice": lambda A, t: one_written(one_written(eye(), (4, 2), t), (slice(3, 6), 2), A[0, :3]) @ A,
    "a companion matrix": companion,
    "rows that are swapped": swapped,
}
WHOLE: dict[str, Callable[..., Any]] = {
    "overlapping": lambda A, x: one_written(one_written(eye(), (slice(3), 2), x[:3]), (1, slice(4)), x[:4]) @ A,
    "every second row": lambda A, x: one_written(eye(), (slice(None, None, 2), 1), x[::2]) @ A,
    "not multiplied": lambda x: one_written(eye(), 1, x) * 2,
    "no constant": lambda A, x: one_written(A.clone(), 1, x) @ A,
}  # fmt: skip


def traced(f: Callable[..., Any], gradient: bool) -> tuple[Any, list[Any]]:
    given = [torch.from_numpy(GIVEN[name].copy()) for name in f.__code__.co_varnames[: f.__code__.co_argcount]]
    if gradient:
        f = torch.func.grad(lambda *xs, f=f: (torch.sin(f(*xs)) ** 2).sum(), tuple(range(len(given))))
    return graphc.trace(f, *given), given


@pytest.mark.parametrize("gradient", [False, True], ids=["value", "gradient"])
@pytest.mark.parametrize("name", [*LESS, *WHOLE])
def test_written_matrices(name: str, gradient: bool):
    graph, given = traced({**LESS, **WHOLE}[name], gradient)
    found = graphc.optimize(graph)
    if name in LESS:
        assert cost(found) < (0.6 if gradient else 0.35) * cost(graph), found
        if not gradient:
            assert OPS["matmul"] not in found.ops, found
    arrays = [x.numpy() for x in given]
    for a, b in zip(found.outputs, graph.outputs, strict=True):
        wanted = graph.evaluate(*arrays)[b]
        np.testing.assert_allclose(found.evaluate(*arrays)[a], wanted, rtol=1e-9, atol=1e-10 * np.abs(wanted).max())


def test_what_is_written_keeps_its_digits():
    graph, (A, _) = traced(LESS["a row times a number"], False)
    small = np.array(1e-25)
    found = graphc.optimize(graph)
    np.testing.assert_allclose(found(A.numpy(), small)[4], small * GIVEN["A"][4], rtol=1e-15)


def test_a_strict_program_multiplies_the_matrix():
    graph, _ = traced(LESS["a rotation"], False)
    assert OPS["matmul"] in graphc.optimize(graph, strict=True).ops
    assert cost(graphc.optimize(graph, without="writes into constants")) > 0.9 * cost(graph)
