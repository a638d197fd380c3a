"""Programs as a naive user writes them, each beside the form that an expert writes for `jax.jit`.

`naive` takes the API of PyTorch and tensors, `best` that of jax.numpy and arrays. LAAB: the rows of
HPAC/LinearAlgebra-Awareness-Benchmark; the others are those of `facts` about linear algebra, partial access, structure,
solves, stacks, loops and scalar algebra.
"""

# ruff: noqa: E501  (tables of one-line programs)

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import jax.scipy.linalg as jsl
import numpy as np

import eager as torch
import graphc


class Row(NamedTuple):
    """arguments: the shape of each array as a function of n, or "spd", "orthogonal", "lower", "positive" with it."""

    group: str
    name: str
    arguments: Callable[[int], tuple[Any, ...]]
    naive: Callable[..., Any]
    best: Callable[..., Any]
    differentiable: bool = True


def arrays(row: Row, n: int) -> Iterator[np.ndarray]:
    """The arguments of a row: standard normal numbers, scaled so that products of several keep their size."""
    rng = np.random.default_rng(0)
    for what in row.arguments(n):
        kind, shape = what if isinstance(what[0], str) else ("", what)
        x = rng.standard_normal(shape)
        if len(shape) >= 2:
            x /= np.sqrt(shape[-1])
        if kind == "spd":
            x = x @ x.T + np.eye(len(x))
        elif kind == "orthogonal":
            x = np.linalg.qr(x)[0]
        elif kind == "lower":
            x = np.tril(x) + 2 * np.eye(len(x))
        elif kind == "positive":
            x = np.abs(x) + 0.1
        elif kind == "index":
            yield rng.integers(0, n, shape)
            continue
        yield x.astype(np.float32)


def _square(n: int) -> tuple[int, int]:
    return n, n


def _one(n):
    return (_square(n), (n,))


def _two(n):
    return (_square(n), _square(n))


def _three(n):
    return (_square(n), _square(n), _square(n))


def _looped(A, B, v):
    for i in range(3):
        R = A @ B + torch.outer(v[i], v[i])
    return R


def _accumulated(A, B, v):
    R = torch.zeros_like(A)
    for i in range(3):
        R = R + (A @ B) * v[i]
    return R


def _outer_products(x, z):
    G = torch.zeros(x.shape[1], z.shape[1])
    for t in range(x.shape[0]):
        G = G + torch.outer(x[t], z[t])
    return G


def _rows_times(x, W):
    return torch.stack([W @ x[t] for t in range(x.shape[0])])


def _rnn(x, W, U):
    h = torch.zeros(W.shape[0])
    for t in range(x.shape[0]):
        h = torch.tanh(W @ h + U @ x[t])
    return h


def _rnn_best(x, W, U):
    given = x @ U.T
    return jax.lax.scan(lambda h, g: (jnp.tanh(W @ h + g), None), jnp.zeros(W.shape[0]), given)[0]


def _likelihood(K, y):
    return -0.5 * y @ torch.linalg.inv(K) @ y - 0.5 * torch.logdet(K)


def _likelihood_best(K, y):
    c = jnp.linalg.cholesky(K)
    z = jsl.solve_triangular(c, y, lower=True)
    return -0.5 * z @ z - jnp.log(jnp.diagonal(c)).sum()


def _tridiagonal(lower, d, upper, B):
    padded = jnp.pad(B, ((1, 1), (0, 0)))
    low, up = jnp.pad(lower, (1, 0)), jnp.pad(upper, (0, 1))
    return low[:, None] * padded[:-2] + d[:, None] * B + up[:, None] * padded[2:]


def _blocks(L, B):
    n, k = len(L), 6
    at = [n * i // k for i in range(k + 1)]
    return jnp.concatenate([jnp.tril(L)[a:b, :b] @ B[:b] for a, b in itertools.pairwise(at)])


ROWS = (
    Row("LAAB", "A'B", _two, lambda A, B: A.T @ B, lambda A, B: A.T @ B),
    Row("LAAB", "A'B + A'B", _two, lambda A, B: A.T @ B + A.T @ B, lambda A, B: 2 * (A.T @ B)),
    Row("LAAB", "(A'B)'(A'B)", _two, lambda A, B: (A.T @ B).T @ (A.T @ B), lambda A, B: (lambda S: S.T @ S)(A.T @ B)),
    Row("LAAB", "(A'B)'A'B", _two, lambda A, B: (A.T @ B).T @ A.T @ B, lambda A, B: (lambda S: S.T @ S)(A.T @ B)),
    Row("LAAB", "A'BA'By", lambda n: (*_two(n), (n,)), lambda A, B, y: A.T @ B @ A.T @ B @ y, lambda A, B, y: (B @ ((B @ y) @ A)) @ A),
    Row("LAAB", "H'Hx", _one, lambda H, x: H.T @ H @ x, lambda H, x: (H @ x) @ H),
    Row("LAAB", "y'H'H", _one, lambda H, y: y @ H.T @ H, lambda H, y: (H @ y) @ H),
    Row("LAAB", "H'yx'H", lambda n: (*_one(n), (n,)), lambda H, y, x: H.T @ y[:, None] @ x[None] @ H, lambda H, y, x: jnp.outer(y @ H, x @ H)),
    Row("LAAB", "tril(L) B", _two, lambda L, B: torch.tril(L) @ B, _blocks),
    Row("LAAB", "AA'", lambda n: (_square(n),), lambda A: A @ A.T, lambda A: A @ A.T),
    Row("LAAB", "tridiagonal B", lambda n: ((n - 1,), (n,), (n - 1,), _square(n)), lambda a, d, c, B: (torch.diag(a, -1) + torch.diag(d) + torch.diag(c, 1)) @ B, _tridiagonal),
    Row("LAAB", "diag(d) B", lambda n: ((n,), _square(n)), lambda d, B: torch.diag(d) @ B, lambda d, B: d[:, None] * B),
    Row("LAAB", "AB + AC", _three, lambda A, B, C: A @ B + A @ C, lambda A, B, C: A @ (B + C)),
    Row("LAAB", "(A - H'H)x", lambda n: (*_two(n), (n,)), lambda A, H, x: (A - H.T @ H) @ x, lambda A, H, x: A @ x - (H @ x) @ H),
    Row("LAAB", "B'AA'B", _two, lambda A, B: B.T @ A @ A.T @ B, lambda A, B: (lambda S: S.T @ S)(A.T @ B)),
    Row("LAAB", "blkdiag(A, B) C", lambda n: ((n // 2, n // 2), (n // 2, n // 2), (n // 2 * 2, n)), lambda A, B, C: torch.block_diag(A, B) @ C, lambda A, B, C: jnp.concatenate([A @ C[: len(A)], B @ C[len(A) :]])),
    Row("LAAB", "loop: AB + vv'", lambda n: (*_two(n), (3, n)), _looped, lambda A, B, v: A @ B + jnp.outer(v[2], v[2])),
    Row("LAAB", "loop: R += (AB)v", lambda n: (*_two(n), (3, n)), _accumulated, lambda A, B, v: (A @ B) * v.sum(0)),
    Row("LAAB", "(A + B)[2, 2]", _two, lambda A, B: (A + B)[2, 2], lambda A, B: A[2, 2] + B[2, 2]),
    Row("LAAB", "(AB)[2, 2]", _two, lambda A, B: (A @ B)[2, 2], lambda A, B: A[2] @ B[:, 2]),
    Row("chains", "ABCD", lambda n: (_square(n), (n, n // 5), (n // 5, n), _square(n)), lambda A, B, C, D: A @ B @ C @ D, lambda A, B, C, D: (A @ B) @ (C @ D)),
    Row("chains", "AAAA", lambda n: (_square(n),), lambda A: A @ A @ A @ A, lambda A: (lambda S: S @ S)(A @ A)),
    Row("chains", "A'x", _one, lambda A, x: A.T @ x, lambda A, x: x @ A),
    Row("chains", "x'Ay B", lambda n: (*_two(n), (n,), (n,)), lambda A, B, x, y: (x @ A @ y) * B, lambda A, B, x, y: (x @ (A @ y)) * B),
    Row("chains", "(xy')A(xy')", lambda n: (_square(n), (n,), (n,)), lambda A, x, y: torch.outer(x, y) @ A @ torch.outer(x, y), lambda A, x, y: jnp.outer(x * (y @ (A @ x)), y)),
    Row("chains", "batched (AB)x", lambda n: ((8, n // 2, n // 2), (8, n // 2, n // 2), (8, n // 2, 1)), lambda A, B, x: A @ B @ x, lambda A, B, x: A @ (B @ x)),
    Row("chains", "einsum ij,jk,kl,l", lambda n: (*_three(n), (n,)), lambda A, B, C, x: torch.einsum("ij,jk->ik", A, B) @ torch.einsum("kl,l->k", C, x), lambda A, B, C, x: A @ (B @ (C @ x))),
    Row("chains", "QK'V, linear attention", lambda n: ((4 * n, 32), (4 * n, 32), (4 * n, 32)), lambda Q, K, V: (Q @ K.T) @ V, lambda Q, K, V: Q @ (K.T @ V)),
    Row("distributes", "(A + uv')x", lambda n: (_square(n), (n,), (n,), (n,)), lambda A, u, v, x: (A + torch.outer(u, v)) @ x, lambda A, u, v, x: A @ x + u * (v @ x)),
    Row("distributes", "(cA)x", _one, lambda A, x: (3.0 * A) @ x, lambda A, x: 3.0 * (A @ x)),
    Row("distributes", "(A + 2I)x", _one, lambda A, x: (A + 2 * torch.eye(A.shape[0])) @ x, lambda A, x: A @ x + 2 * x),
    Row("distributes", "(I - 2vv')A", lambda n: ((n,), _square(n)), lambda v, A: (torch.eye(v.shape[0]) - 2 * torch.outer(v, v)) @ A, lambda v, A: A - 2 * jnp.outer(v, v @ A)),
    Row("distributes", "AB + CB", _three, lambda A, B, C: A @ B + C @ B, lambda A, B, C: (A + C) @ B),
    Row("distributes", "x'Ax + x'Bx", lambda n: (*_two(n), (n,)), lambda A, B, x: x @ A @ x + x @ B @ x, lambda A, B, x: x @ ((A + B) @ x)),
    Row("partial", "(AB)[:, 2]", _two, lambda A, B: (A @ B)[:, 2], lambda A, B: A @ B[:, 2]),
    Row("partial", "diag(AB)", _two, lambda A, B: torch.diag(A @ B), lambda A, B: (A * B.T).sum(1)),
    Row("partial", "(AB)[index]", lambda n: (*_two(n), ("index", (32,))), lambda A, B, i: (A @ B)[i], lambda A, B, i: A[i] @ B, False),
    Row("partial", "tr(AB)", _two, lambda A, B: torch.trace(A @ B), lambda A, B: (A * B.T).sum()),
    Row("partial", "tr(ABC)", lambda n: (_square(n), (n, 20), (20, n)), lambda A, B, C: torch.trace(A @ B @ C), lambda A, B, C: ((A @ B) * C.T).sum()),
    Row("partial", "sum(AB)", _two, lambda A, B: (A @ B).sum(), lambda A, B: A.sum(0) @ B.sum(1)),
    Row("partial", "sum(AB, 1)", _two, lambda A, B: (A @ B).sum(1), lambda A, B: A @ B.sum(1)),
    Row("partial", "mean(AB, 0)", _two, lambda A, B: (A @ B).mean(0), lambda A, B: A.mean(0) @ B),
    Row("partial", "(concat(A, B) C)[:n]", _three, lambda A, B, C: (torch.cat([A, B]) @ C)[: A.shape[0]], lambda A, B, C: A @ C),
    Row("partial", "tanh(AB)[2]", _two, lambda A, B: torch.tanh(A @ B)[2], lambda A, B: jnp.tanh(A[2] @ B)),
    Row("partial", "softmax(AB)[3]", _two, lambda A, B: torch.softmax(A @ B, -1)[3], lambda A, B: jax.nn.softmax(A[3] @ B)),
    Row("partial", "cumsum(A)[-1]", lambda n: (_square(n),), lambda A: torch.cumsum(A, 0)[-1], lambda A: A.sum(0)),
    Row("partial", "sort(x)[0]", lambda n: ((n * n,),), lambda x: torch.sort(x).values[0], lambda x: x.min()),
    Row("partial", "argmax(softmax(A))", lambda n: (_square(n),), lambda A: torch.argmax(torch.softmax(A, 1), 1), lambda A: jnp.argmax(A, 1), False),
    Row("structure", "A I", lambda n: (_square(n),), lambda A: A @ torch.eye(A.shape[0]), lambda A: A + 0),
    Row("structure", "diag(d) A diag(e)", lambda n: ((n,), _square(n), (n,)), lambda d, A, e: torch.diag(d) @ A @ torch.diag(e), lambda d, A, e: d[:, None] * A * e),
    Row("structure", "ones B'", lambda n: (_square(n),), lambda B: torch.ones(B.shape[0], B.shape[0]) @ B.T, lambda B: jnp.broadcast_to(B.sum(1), B.shape)),
    Row("structure", "one_hot(i) W", lambda n: (("index", (256,)), _square(n)), lambda i, W: torch.nn.functional.one_hot(i, W.shape[0]).float() @ W, lambda i, W: W[i], False),
    Row("structure", "kron(A, B)x", lambda n: ((36, 36), (36, 36), (36 * 36,)), lambda A, B, x: torch.kron(A, B) @ x, lambda A, B, x: (A @ x.reshape(36, 36) @ B.T).reshape(-1)),
    Row("structure", "A P, P a permutation", lambda n: (_square(n),), lambda A: A @ torch.eye(A.shape[0]).flip(0), lambda A: A[:, ::-1]),
    Row("structure", "pad(A) B", lambda n: ((n, n // 2), _square(n)), lambda A, B: torch.nn.functional.pad(A, (0, B.shape[0] - A.shape[1])) @ B, lambda A, B: A @ B[: A.shape[1]]),
    Row("structure", "||UV'||^2", lambda n: ((n, 32), (n, 32)), lambda U, V: ((U @ V.T) ** 2).sum(), lambda U, V: ((U.T @ U) * (V.T @ V)).sum()),
    Row("structure", "sum of outer products", lambda n: ((64, n // 2), (64, n // 2)), lambda E, X: (E[:, :, None] * X[:, None, :]).sum(0), lambda E, X: E.T @ X),
    Row("structure", "(x * A).sum(1)", _one, lambda A, x: (A * x).sum(1), lambda A, x: A @ x),
    Row("structure", "broadcast W", lambda n: ((16, 8, n), (n, n // 4)), lambda x, W: x @ W.expand(16, *W.shape), lambda x, W: x @ W),
    Row("structure", "[Ax, Ay]", lambda n: (_square(n), (n,), (n,)), lambda A, x, y: (A @ x, A @ y), lambda A, x, y: tuple((A @ jnp.stack([x, y], 1)).T)),
    Row("structure", "A x_t stacked", lambda n: ((24, n), _square(n)), _rows_times, lambda x, W: x @ W.T),
    Row("structure", "sum of x_t z_t'", lambda n: ((24, n // 2), (24, n // 2)), _outer_products, lambda x, z: x.T @ z),
    Row("solves", "inv(A) b", _one, lambda A, b: torch.linalg.inv(A) @ b, lambda A, b: jnp.linalg.solve(A, b)),
    Row("solves", "inv(A) B", lambda n: (_square(n), (n, n // 6)), lambda A, B: torch.linalg.inv(A) @ B, lambda A, B: jnp.linalg.solve(A, B)),
    Row("solves", "solve(X'X + I, B)", lambda n: (_square(n), (n, n // 6)), lambda X, B: torch.linalg.solve(X.T @ X + torch.eye(X.shape[0]), B), lambda X, B: jsl.cho_solve(jsl.cho_factor(X.T @ X + jnp.eye(len(X))), B)),
    Row("solves", "solve(tril(L), B)", lambda n: (("lower", _square(n)), (n, n // 6)), lambda L, B: torch.linalg.solve(torch.tril(L), B), lambda L, B: jsl.solve_triangular(L, B, lower=True)),
    Row("solves", "solve(diag(d), B)", lambda n: (("positive", (n,)), (n, n // 6)), lambda d, B: torch.linalg.solve(torch.diag(d), B), lambda d, B: B / d[:, None]),
    Row("solves", "solve(blkdiag, B)", lambda n: (("spd", (n // 2, n // 2)), ("spd", (n // 2, n // 2)), (n // 2 * 2, n // 6)), lambda A, C, B: torch.linalg.solve(torch.block_diag(A, C), B), lambda A, C, B: jnp.concatenate([jnp.linalg.solve(A, B[: len(A)]), jnp.linalg.solve(C, B[len(A) :])])),
    Row("solves", "two solves", lambda n: (_square(n), (n,), (n,)), lambda A, b, c: torch.linalg.solve(A, b) + torch.linalg.solve(A, c), lambda A, b, c: jnp.linalg.solve(A, b + c)),
    Row("solves", "logdet(LL')", lambda n: (("lower", _square(n)),), lambda L: torch.logdet(torch.tril(L) @ torch.tril(L).T), lambda L: 2 * jnp.log(jnp.abs(jnp.diagonal(L))).sum()),
    Row("solves", "logdet(tril(L))", lambda n: (("lower", _square(n)),), lambda L: torch.logdet(torch.tril(L)), lambda L: jnp.log(jnp.diagonal(L)).sum()),
    Row("solves", "Gaussian likelihood", lambda n: (("spd", _square(n)), (n,)), _likelihood, _likelihood_best),
    Row("solves", "Gaussian likelihood, K assumed spd", lambda n: (("spd", _square(n)), (n,)), lambda K, y: _likelihood(graphc.assume(K, "spd"), y), _likelihood_best),
    Row("solves", "solve(Q, b), Q assumed orthogonal", lambda n: (("orthogonal", _square(n)), (n,)), lambda Q, b: torch.linalg.solve(graphc.assume(Q, "orthogonal"), b), lambda Q, b: b @ Q),
    Row("solves", "solve(L, B), L assumed lower", lambda n: (("lower", _square(n)), (n, n // 6)), lambda L, B: torch.linalg.solve(graphc.assume(L, "lower"), B), lambda L, B: jsl.solve_triangular(L, B, lower=True)),
    Row("solves", "solve(kron(A, B), x)", lambda n: (("spd", (36, 36)), ("spd", (36, 36)), (36 * 36,)), lambda A, B, x: torch.linalg.solve(torch.kron(A, B), x), lambda A, B, x: jnp.linalg.solve(A, jnp.linalg.solve(B, x.reshape(36, 36).T).T).reshape(-1)),
    Row("solves", "logdet(kron(A, B))", lambda n: (("spd", (36, 36)), ("spd", (36, 36))), lambda A, B: torch.logdet(torch.kron(A, B)), lambda A, B: 36 * (jnp.linalg.slogdet(A)[1] + jnp.linalg.slogdet(B)[1])),
    Row("solves", "solve(I + UU', b)", lambda n: ((n, 32), (n,)), lambda U, b: torch.linalg.solve(torch.eye(U.shape[0]) + U @ U.T, b), lambda U, b: b - U @ jsl.cho_solve(jsl.cho_factor(jnp.eye(U.shape[1]) + U.T @ U), U.T @ b)),
    Row("solves", "det(A) det(B)", _two, lambda A, B: torch.linalg.det(A @ B), lambda A, B: jnp.linalg.det(A) * jnp.linalg.det(B), False),
    Row("solves", "inv(inv(A))", lambda n: (_square(n),), lambda A: torch.linalg.inv(torch.linalg.inv(A)), lambda A: A + 0),
    Row("loops", "recurrent cell", lambda n: ((48, n // 8), (n // 8, n // 8), (n // 8, n // 8)), _rnn, _rnn_best),
    Row("scalars", "x ** 4", lambda n: ((n * n,),), lambda x: x**4, lambda x: (x * x) * (x * x)),
    Row("scalars", "exp(x) exp(y)", lambda n: ((n * n,), (n * n,)), lambda x, y: torch.exp(x) * torch.exp(y), lambda x, y: jnp.exp(x + y)),
    Row("scalars", "log(x) + log(y)", lambda n: (("positive", (n * n,)), ("positive", (n * n,))), lambda x, y: torch.log(x) + torch.log(y), lambda x, y: jnp.log(x) + jnp.log(y)),
    Row("scalars", "x / y * y", lambda n: ((n * n,),), lambda x: x / x.sum() * 3.0, lambda x: x * (3.0 / x.sum())),
    Row("scalars", "x*x*x + 2*x*x", lambda n: ((n * n,),), lambda x: x * x * x + 2 * x * x, lambda x: x * x * (x + 2)),
    Row("scalars", "x*y*y*x", lambda n: ((n * n,), (n * n,)), lambda x, y: x * y * y * x + 3 * (y * x * x * y), lambda x, y: 4 * (x * y) ** 2),
    Row("scalars", "x a + x b", lambda n: ((n * n,), (n * n,)), lambda x, y: x * torch.sin(y) + x * torch.cos(y), lambda x, y: x * (jnp.sin(y) + jnp.cos(y))),
    Row("scalars", "mean(2x) + mean(3x)", lambda n: ((n * n,),), lambda x: (2 * x).mean() + (3 * x).mean(), lambda x: 5 * x.mean()),
    Row("partial", "sort(x)[-1]", lambda n: ((n * n,),), lambda x: torch.sort(x).values[-1], lambda x: x.max()),
    Row("partial", "cumsum(A)[3]", lambda n: (_square(n),), lambda A: torch.cumsum(A, 0)[3], lambda A: A[:4].sum(0)),
    Row("scalars", "sum(a x + b x)", lambda n: ((n * n,), (n * n,)), lambda x, y: (3.0 * x).sum() + (x * 2.0).sum() + (y * 0.5).sum(), lambda x, y: 5.0 * x.sum() + 0.5 * y.sum()),
)  # fmt: skip
