"""Programs beside the form that somebody writes by hand: as cheap, in value and gradient, and the same numbers."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import eager as torch
import eager.nn.functional as F
import graphc
from graphc.ir import Graph
from graphc.passes.cse import eliminate_common_subexpressions
from graphc.passes.dce import eliminate_dead_code
from graphc.passes.fold import fold_constants
from tests.normal.searches import GOAL, agree, cost

N = 96
M, V = (N, N), (N,)
D = torch.float64
inv = torch.linalg.inv


def _bfgs(H, s, y, g):
    r, one = 1 / (y @ s), torch.eye(len(s), dtype=D)
    return (one - r * torch.outer(s, y)) @ H @ (one - r * torch.outer(y, s)) @ g + r * torch.outer(s, s) @ g


def _bfgs_by_hand(H, s, y, g):
    r = 1 / (y @ s)
    z = H @ (g - y * (r * (s @ g)))
    return z + s * (r * (s @ g) - r * (y @ z))


def _precision(C, x):
    P = torch.tril(C) @ torch.tril(C).T
    return x @ P @ x - torch.logdet(P)


def _precision_by_hand(C, x):
    T = torch.tril(C)
    return ((x @ T) ** 2).sum() - 2 * torch.log(torch.diagonal(T).abs()).sum()


def _cg(A, r, p):
    return (r @ r) / (p @ A @ p) * (A @ p)


def _cg_by_hand(A, r, p):
    q = A @ p
    return (r @ r) / (p @ q) * q


def _squeezed(X, A, B):
    return (X * torch.sigmoid(torch.relu(X.mean(-1) @ A) @ B)[:, :, None]).sum(-1)


def _squeezed_by_hand(X, A, B):
    s = X.sum(-1)
    return s * torch.sigmoid(torch.relu(s / X.shape[-1] @ A) @ B)


def _pixelwise(x, a, b):
    return F.conv2d(F.conv2d(x, a), b)


def _pixelwise_by_hand(x, a, b):
    return F.conv2d(x, (b[:, :, 0, 0] @ a[:, :, 0, 0])[:, :, None, None])


def _blocks(A, C, E):
    return torch.cat([torch.cat([A, torch.zeros_like(A)], 1), torch.cat([C, E], 1)])


def _blocks_by_hand(A, C, E, b):
    x = torch.linalg.solve(A, b[:N])
    return torch.cat([x, torch.linalg.solve(E, b[N:] - C @ x)])


def _reversal():
    return torch.flip(torch.eye(N, dtype=D), [0])


def _classes(x):
    return (1000 * x.abs()).long() % N


def _blocks_of(size):
    k = torch.arange(N) // size
    return k[:, None] == k


_IMAGE = (2, 8, 12, 12)
# (as written, by hand, shapes, whether the gradient is as cheap)
PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[..., Any], Sequence[tuple[int, ...]], bool]] = {
    "quotient of an outer product": (
        lambda v, A: (torch.eye(N, dtype=D) - 2 * torch.outer(v, v) / (v @ v)) @ A,
        lambda v, A: A - torch.outer(2 / (v @ v) * v, v @ A), (V, M), True,
    ),
    "quotient by columns": (
        lambda A, p: (0.85 * (A / A.sum(0)) + 0.15 / N * torch.ones(N, N, dtype=D)) @ p,
        lambda A, p: 0.85 * (A @ (p / A.sum(0))) + 0.15 / N * p.sum(), (M, V), True,
    ),
    "products of few rows, in pairs": (
        lambda A, B: torch.diag(A @ B.T), lambda A, B: (A * B).sum(1), ((8, 10 * N), (8, 10 * N)), True,
    ),
    "quadratic forms, added": (
        lambda X, A: (X @ A * X).sum(), lambda X, A: ((X.T @ X) * A).sum(), ((20 * N, 24), (24, 24)), True,
    ),
    "quasi-Newton update": (_bfgs, _bfgs_by_hand, (M, V, V, V), False),
    "planar flow": (
        lambda u, w: torch.linalg.slogdet(torch.eye(N, dtype=D) + torch.outer(u, w))[1],
        lambda u, w: torch.log(torch.abs(1 + u @ w)), (V, V), True,
    ),
    "system beside few columns": (
        lambda U, W, b: torch.linalg.solve(torch.eye(N, dtype=D) + U @ W, b),
        lambda U, W, b: b - U @ torch.linalg.solve(torch.eye(4, dtype=D) + W @ U, W @ b), ((N, 4), (4, N), V), True,
    ),
    "step of conjugate gradients": (_cg, _cg_by_hand, (M, V, V), False),
    "a sum and a mean of one array": (_squeezed, _squeezed_by_hand, ((4, 16, 64), (16, 4), (4, 16)), True),
    "weights by an outer product": (
        lambda X, u, v: (torch.outer(u, v) * X).sum(), lambda X, u, v: u @ (X @ v), (M, V, V), True,
    ),
    "convolutions by one pixel": (_pixelwise, _pixelwise_by_hand, (_IMAGE, (24, 8, 1, 1), (6, 24, 1, 1)), True),
    "mean of a convolution by one pixel": (
        lambda x, a: F.conv2d(x, a).mean((2, 3)), lambda x, a: x.mean((2, 3)) @ a[:, :, 0, 0].T,
        (_IMAGE, (24, 8, 1, 1)), True,
    ),
    "convolution by the whole image": (
        lambda x, a: F.conv2d(x, a).sum(1), lambda x, a: F.conv2d(x, a.sum(0, keepdim=True))[:, 0],
        (_IMAGE, (24, 8, 12, 12)), True,
    ),
    "columns repeated": (
        lambda X, W: torch.repeat_interleave(X, 4, 1) @ W,
        lambda X, W: X @ W.reshape(N // 4, 4, N).sum(1), ((N, N // 4), M), True,
    ),
    "rows repeated": (
        lambda X, W: torch.repeat_interleave(X, 4, 0) @ W,
        lambda X, W: torch.repeat_interleave(X @ W, 4, 0), ((N // 4, N), M), True,
    ),
    "every third column": (
        lambda A, B: (A @ B)[:, torch.arange(0, N, 3)], lambda A, B: A @ B[:, ::3], (M, M), True,
    ),
    "reversed on both sides": (
        lambda A, x: (_reversal() @ A @ _reversal()) @ x, lambda A, x: torch.flip(A @ torch.flip(x, [0]), [0]),
        (M, V), True,
    ),
    "row of a triangle": (
        lambda A, B: torch.tril(A @ B)[10],
        lambda A, B: torch.cat([A[10] @ B[:, :11], torch.zeros(N - 11, dtype=D)]), (M, M), True,
    ),
    "block of a masked product": (
        lambda A, B: torch.where(torch.arange(N)[:, None] % 3 != torch.arange(N), A @ B, 0.0)[:8, :8],
        lambda A, B: torch.where(torch.arange(8)[:, None] % 3 != torch.arange(8), A[:8] @ B[:, :8], 0.0),
        (M, M), True,
    ),
    "blocks that a mask leaves": (
        lambda A, B, x: torch.where(_blocks_of(N // 4), A @ B, 0.0) @ x,
        lambda A, B, x: torch.einsum(
            "qin,qn->qi", A.view(4, -1, N), torch.einsum("nqk,qk->qn", B.view(N, 4, -1), x.view(4, -1))).reshape(N),
        (M, M, V), False,
    ),
    "blocks by a product with a mask": (
        lambda A, x: (A * _blocks_of(N // 2).to(D)) @ x,
        lambda A, x: torch.cat([A[:48, :48] @ x[:48], A[48:, 48:] @ x[48:]]),
        (M, V), True,
    ),
    "all products but those with itself": (
        lambda Z: (Z @ Z.T).masked_fill(torch.eye(N).bool(), 0.0).sum(1),
        lambda Z: Z @ Z.sum(0) - (Z * Z).sum(1), ((N, 16),), True,
    ),
    "relu of a part": (
        lambda A, B: torch.relu(F.pad(A[:8] @ B, (0, 0, 0, N - 8))) @ B,
        lambda A, B: F.pad(torch.relu(A[:8] @ B) @ B, (0, 0, 0, N - 8)), (M, M), True,
    ),
    "determinant of an inverse": (
        lambda A: torch.logdet(inv(A @ A.T + torch.eye(N, dtype=D))),
        lambda A: -torch.logdet(A @ A.T + torch.eye(N, dtype=D)),
        (M,), True,
    ),
    "determinant of triangles": (
        lambda A, B: torch.linalg.slogdet(torch.tril(A) @ torch.tril(B))[1],
        lambda A, B: torch.log(torch.diagonal(A).abs()).sum() + torch.log(torch.diagonal(B).abs()).sum(),
        (M, M), False,
    ),
    "sums of differences of all pairs": (
        lambda a, b: (a[:, None] - b[None, :]).sum(1),
        lambda a, b: (a - b.mean()) * len(b) - (b - b.mean()).sum(),  # which keeps the digits of small differences
        (V, V), True,
    ),
    "weighted sum of a thin product": (
        lambda U, W, A: (U @ W * A).sum(), lambda U, W, A: ((A @ W.T) * U).sum(), ((N, 8), (8, N), M), True,
    ),
    "trace of what is reversed": (lambda A: torch.trace(A.flip(0).flip(1)), torch.trace, (M,), True),
    "the other diagonal": (
        lambda A: A.flip(1).diagonal().sum(), lambda A: A.reshape(N * N)[N - 1 : N * N - 1 : N - 1].sum(), (M,), True,
    ),
    "diagonal of a function of a product": (
        lambda A, B: torch.relu(A @ B).diagonal(), lambda A, B: torch.relu((A * B.T).sum(1)), (M, M), True,
    ),
    "element of an inverse": (
        lambda A: inv(A)[3, 7], lambda A: torch.linalg.solve(A, torch.eye(N, dtype=D)[:, 7])[3], (M,), True,
    ),
    "triangle of blocks": (
        lambda A, C, E, b: torch.linalg.solve(_blocks(A, C, E), b), _blocks_by_hand, (M, M, M, (2 * N,)), True,
    ),
    "determinant of a triangle of blocks": (
        lambda A, C, E: torch.linalg.slogdet(_blocks(A, C, E).T)[1],
        lambda A, C, E: torch.linalg.slogdet(A)[1] + torch.linalg.slogdet(E)[1], (M, M, M), True,
    ),
    "determinant of a product": (
        lambda A, B: torch.linalg.slogdet(A @ B)[1],
        lambda A, B: torch.linalg.slogdet(A)[1] + torch.linalg.slogdet(B)[1], (M, M), True,
    ),
    "quadratic forms of rows": (
        lambda A, X: sum(x @ A @ x for x in X), lambda A, X: ((X @ A) * X).sum(), (M, (24, N)), True,
    ),
    "outer products of what is centered": (
        lambda X: sum(torch.outer(x - X.mean(0), x - X.mean(0)) for x in X) / len(X),
        lambda X: (X - X.mean(0)).T @ (X - X.mean(0)) / len(X), ((30, N),), True,
    ),
    "cross entropy by one hot": (
        lambda A, x: -(F.one_hot(_classes(x), N).double() * torch.log_softmax(A @ A, 1)).sum(1).mean(),
        lambda A, x: -torch.log_softmax(A @ A, 1).gather(1, _classes(x)[:, None]).mean(), (M, V), True,
    ),
    "running second moments": (
        lambda X: functools.reduce(lambda C, x: 0.9 * C + 0.1 * torch.outer(x, x), X, torch.zeros(N, N, dtype=D)),
        lambda X: X.T @ (0.1 * 0.9 ** torch.arange(23.0, -1, -1, dtype=D)[:, None] * X), ((24, N),), True,
    ),
    "products of columns": (
        lambda A, X: torch.stack([A @ X[:, k] for k in range(12)], 1), lambda A, X: A @ X, (M, (N, 12)), True,
    ),
    "precision by its triangle": (_precision, _precision_by_hand, (M, V), False),
}  # fmt: skip


def _traced(f: Callable[..., Any], given: Sequence[np.ndarray]) -> Graph:
    graph = graphc.trace(f, *map(torch.from_numpy, given))
    return eliminate_dead_code(eliminate_common_subexpressions(fold_constants(graph)))


def _arrays(shapes: Sequence[tuple[int, ...]]) -> list[np.ndarray]:
    """Random arrays; square matrices, and triangles of them, are well conditioned."""
    rng = np.random.default_rng(0)
    given = [rng.standard_normal(shape) / max(shape[-1], 1) ** 0.5 for shape in shapes]
    return [x + 2 * np.eye(N) if x.shape == M else x for x in given]


@pytest.mark.parametrize("name", PROGRAMS)
def test_values(name: str) -> None:
    written, by_hand, shapes, _ = PROGRAMS[name]
    given = _arrays(shapes)
    graph = _traced(written, given)
    optimized = graphc.optimize(graph)
    assert cost(optimized) <= GOAL * cost(_traced(by_hand, given)) + 3 * N  # what one loop over a row costs
    assert agree(optimized, graph, given)


@pytest.mark.parametrize("name", PROGRAMS)
def test_gradients(name: str) -> None:
    written, by_hand, shapes, is_as_cheap = PROGRAMS[name]
    given, every = _arrays(shapes), tuple(range(len(shapes)))
    graphs = [_traced(torch.func.grad(lambda *xs, f=f: (f(*xs) ** 2).sum(), every), given) for f in (written, by_hand)]
    optimized = graphc.optimize(graphs[0])
    assert cost(optimized) <= (GOAL if is_as_cheap else 2.5) * cost(graphs[1]) + 6 * N
    assert agree(optimized, graphs[0], given)


def test_masks_hide_what_is_infinite() -> None:
    """A sum of all that a mask leaves is no difference, where what it hides may be no number."""
    x = torch.rand(N, 4, dtype=D)

    def entropy(x):
        return torch.where(torch.eye(N).bool(), 0.0, torch.log((x[:, None] - x).abs().sum(-1))).sum(1)

    assert torch.isfinite(graphc.compile(entropy)(x)).all()
