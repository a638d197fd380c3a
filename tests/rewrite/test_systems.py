"""Systems of equations by the structure of their matrices: values, gradients, what is computed, what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import eager as torch
import graphc
from eager import block_diag, logdet
from eager.engine.language import E
from eager.linalg import det, eigh, eigvalsh, inv, slogdet, solve
from graphc.passes import optimize
from graphc.passes.solves import solve_systems
from tests.depth import one_in

N = 66  # large enough for shared factorizations
rng = np.random.default_rng(0)


def _matrix(*shape: int) -> np.ndarray:
    return rng.standard_normal(shape) / np.sqrt(shape[-1])


def one(n: int = N) -> Any:
    return torch.eye(n, dtype=torch.float64)


def spd(S: Any) -> Any:
    return graphc.assume(S, "spd")


_S = _matrix(N, N)
GIVEN: dict[str, np.ndarray] = {
    "A": _matrix(N, N) + 2 * np.eye(N), "B": _matrix(N, N), "b": _matrix(N), "L": _matrix(N, N) + 3 * np.eye(N),
    "U": _matrix(N, 5), "X": _matrix(N, 7), "d": rng.uniform(0.5, 2, N), "S": _S @ _S.T + np.eye(N),
    "s": np.array(1.7),
}  # fmt: skip

# the names of its parameters are those of GIVEN
PROGRAMS: dict[str, Callable[..., Any]] = {
    "inv b": lambda A,b: inv(A)@b,
    "b inv": lambda A,b: b@inv(A),
    "B inv": lambda A,B: B@inv(A),
    "inv T": lambda A,B: inv(A).T@B,
    "inv+C x": lambda A,B,b: (inv(A)+B)@b,
    "chain": lambda A,B,b: inv(A)@B@inv(A)@b,
    "inv prod": lambda A,B,b: inv(A@(B+3*one()))@b,
    "scaled": lambda A,s,b: inv(s*A)@b,
    "scaled2": lambda A,b: inv(-2.5*A)@b,
    "neg": lambda A,b: inv(-A)@b,
    "logdet inv": lambda A: slogdet(inv(A))[1],
    "sign inv": lambda A,b: slogdet(inv(A))[0]*(inv(A)@b),
    "invinv": lambda A,b: inv(inv(A))@b,
    "diag": lambda d,B: solve(torch.diag(d),B),
    "diag+c": lambda d,B: solve(torch.diag(d)+2*one(),B),
    "tril": lambda L,B: solve(torch.tril(L),B),
    "triu": lambda L,B: inv(torch.triu(L))@B,
    "tril prod": lambda L,A,B: solve(torch.tril(L)@torch.tril(A),B),
    "LLt": lambda L,B: solve(torch.tril(L)@torch.tril(L).T,B),
    "blk": lambda S,X,b: solve(block_diag(S,X.T@X+one(7)),torch.cat([b,b[:7]])),
    "blkdiagdet": lambda S,X: logdet(block_diag(S,X.T@X+one(7))),
    "low": lambda X,b: solve(one()+X@X.T,b),
    "low s": lambda X,b,s: solve(s**2*one()+X@X.T,b),
    "low d": lambda X,b,d: solve(torch.diag(torch.exp(d)+.1)+3*X@X.T,b),
    "low2": lambda X,U,b: solve(2*one()+X@X.T+U@U.T,b),
    "low ld": lambda X,s: logdet(s**2*one()+X@X.T),
    "low 1": lambda d,b: solve(2*one()+3*torch.outer(d,d),b),
    "low 1+1": lambda d,b: solve(one()+torch.outer(d,d)+torch.outer(b,b),b),
    "low 1 ld": lambda d: logdet(one()+d[:,None]*d),
    "low pushed": lambda X,b: solve(one()*.5+X@X.T,X@b[:7]),
    "low pushed c": lambda X,b,s: 3*solve(s**2*one()+.1*X@X.T,X)@b[:7]+inv(s**2*one()+.1*X@X.T)@X@b[:7],
    "low pushed d": lambda X,b,d: solve(torch.diag(torch.exp(d))+3*X@X.T,2*(X@b[:7])),
    "low pushed left": lambda X,B,b: B[:4,:7]@X.T@inv(2*one()+.5*(X.T).T@X.T)+b[:7]@X.T@inv(2*one()+.5*X@X.T),
    "low pushed beside": lambda X,U,b: solve(2*one()+X@X.T+U@U.T,X@b[:7])+solve(one()+U@U.T,X@b[:7]),
    "low weighed": lambda X,U,b,d,s: (lambda V: b@solve(V,b)+logdet(V))(
        X@torch.diag(torch.exp(d[:7]))@X.T*torch.exp(s)+U@U.T*d[3]**2+torch.exp(-s)*one()),
    "low weighed 1": lambda X,b,d: solve(d[3]**2*one()+torch.outer(b,b)*d[1]**2,X),
    "low T": lambda X,b: solve(one()+X.T.T@X.T,b),
    "not low": lambda X,U,b: solve(one()*3+X[:,:5]@U.T,b),
    "neg low": lambda X,b: solve(one()-.1*X@X.T,b),
    "update": lambda X,U,b: solve(2*one()+X[:,:5]@U.T-.5*torch.outer(b,X[:,6]),b),
    "update d": lambda X,U,b,d: inv(torch.diag(torch.sigmoid(d)+.1)+X[:,:5]@torch.diag(d[:5]-1)@U.T)@b,
    "update of products": lambda A,X,U,b: solve(one()+X@A[:7,:9]@A[:9]+.3*U@torch.diag(b[:5])@A[:5,:5]@X[:,2:].T,b),
    "update ld": lambda b,d,s: slogdet(one()+torch.outer(b*s,d)*s)[1]+slogdet(one()-torch.outer(b,d))[0],
    "update det": lambda X,U: det(.9*one()+X[:,:5]@U.T),
    "update log det": lambda b,d: torch.log(torch.abs(det(one()+b[:,None]*d[None,:]))),
    "low det": lambda X,d: det(.9*one()+X@X.T/7)+det(torch.diag(d*d+.1)+X@X.T),
    "gram": lambda A,B: solve(A.T@A+one(),B),
    "gp": lambda S,b: -.5*b@inv(S)@b-.5*logdet(S),
    "gp2": lambda X,b,s: -.5*b@solve(X@X.T+s**2*one(),b)-.5*logdet(X@X.T+s**2*one()),
    "logdet LLt": lambda L: logdet(torch.tril(L)@torch.tril(L).T),
    "logdet tri": lambda L: slogdet(torch.tril(L))[1],
    "det tri": lambda L: det(torch.tril(L/3)),
    "det prod": lambda A,B: det((A/2)@(B+one())),
    "det": lambda A: det(A/2),
    "scaled ld": lambda A: slogdet(A * -3.0)[1] * 2 - slogdet(A)[1] + slogdet(-A[:9, :9])[0],
    "slog": lambda A: slogdet(A)[1]*slogdet(A)[0],
    "slogT": lambda A: slogdet(A.T)[1]+slogdet(inv(A))[1],
    "diag inv": lambda A: torch.diagonal(inv(A)),
    "diag inv tri": lambda L: torch.diagonal(inv(torch.tril(L))),
    "tr inv B": lambda A,B: torch.trace(inv(A)@B),
    "inv row": lambda A: inv(A)[2],
    "inv col": lambda A: inv(A)[:,3:5],
    "inv el": lambda A: inv(A)[2,3],
    "inv part": lambda A,b: inv(A)[2:60:2,5:40]@b[5:40]+b[3:61]@inv(A)[3:61,:29],
    "inv kron": lambda A,S,X,b: inv(A)@b@torch.kron(X[:6,:6],S[:11,:11])+b@inv(A)@torch.kron(X[:6,:6],S[:11,:11]),
    "inv sum": lambda A: inv(A).sum(0)+inv(A).sum(1)+inv(A).sum(),
    "inv el*": lambda A,B: inv(A)*B,
    "inv diag A": lambda A: inv(A)@A@inv(A)@torch.diagonal(A)+torch.diagonal(inv(A))@A@inv(A),
    "kron diag": lambda A,X: (lambda K: solve(K,torch.diagonal(K)))(torch.kron(A[:9,:9],X[:7]+2*one(7))),
    "inv A A": lambda A,B: inv(A)@A@B,
    "chol": lambda S,b: (lambda c: torch.linalg.solve(c, b)@torch.linalg.solve(c.T, b))(torch.linalg.cholesky(S)),
    "solve right": lambda A,B: solve(A,B,left=False),
    "batched": lambda A,B: solve(torch.stack([A,B+3*one()]),torch.stack([B,A])),
    "batched spd": lambda S,B: solve(torch.stack([S,S+one()]),torch.stack([B,B]))+inv(torch.stack([S,S+one()])),
    "perm": lambda A,b: solve(one().flip(0),A@b),
    "two": lambda A,b: solve(A,b)+solve(A,2*b+1)+solve(A.T,b),
    "mult": lambda A,B,b: (inv(A)@B)[2]@b,
    "kron": lambda X, b: solve(torch.kron(one(11), X[:6] @ X[:6].T + one(6)), b),
    "kron two": lambda A, X, b: solve(-2 * torch.kron(A[:10, :10].T, X[:7] + 2 * one(7)), torch.cat([b, b[:4]])),
    "kron logdet": lambda A, X: slogdet(torch.kron(A[:9, :9], torch.kron(X[:7] + 2 * one(7), A[:2, :2]) * -3))[1],
    "kron sign": lambda A, X: slogdet(torch.kron(A[:9, :9], X[:7] + 2 * one(7)) * -3)[0] + A[0, 0],
    "kron solve of eye": lambda X, b: solve(torch.kron(X[:6] @ X[:6].T + one(6), one(11)), b),
    "kron noise": lambda S, X, s, b: (lambda K: b@solve(K,b)+logdet(K))(
        torch.kron(spd(S[:11,:11]),X[:6]@X[:6].T)+s*one()),
    "kron sum": lambda S, X, B: solve(torch.kron(X[:6]@X[:6].T,one(11))+2*torch.kron(one(6),spd(S[:11,:11])),B),
    "kron unlike": lambda S, A, b: solve(torch.kron(S[:6,:6],spd(S[:11,:11]))+torch.kron(one(6),A[:11,:11]),b),
    "Q": lambda A, b: solve(torch.linalg.qr(A)[0], b) + inv(torch.linalg.qr(A)[0].T)[2],
    "assumed": lambda S, b: (lambda S: solve(S, b) @ b + slogdet(S)[1] + inv(S.T)[1] @ b)(spd(S)),
    "newton": lambda A,b: b-inv(A.T@A+.1*one())@(A.T@(A@b)),
    "low inv": lambda S,X,b: inv(inv(spd(S))+2*X@inv(X.T@X+one(7))@X.T)@X@inv(X.T@X+one(7))@b[:7],
    "low inv ld": lambda S,X: slogdet(inv(spd(S))+X@inv(X.T@X+one(7))@X.T)[1],
    "low d ld": lambda X,d: slogdet(torch.diag(d*d+1)+X@inv(X.T@X+one(7))@X.T)[1],
    "low inv 1": lambda S,X,b: b@inv(inv(spd(S))+.3*X@X.T),
    "eig": lambda S: (lambda e: torch.log(e).sum()+(1/e).mean()-(2*e*e*e).sum()+e.sum()/(e*e).sum())(eigvalsh(spd(S))),
    "eig rough": lambda B,s: (lambda e: (s*e*e+e).sum()*e.sum())(eigvalsh(B+B.T)),
    "eig again": lambda S,b: (lambda e,V: V@torch.diag(1/e)@V.T@b+(V*(e*e-2*e))@(V.T@b))(*eigh(S, UPLO="U")),
    "eig twice": lambda S: (lambda f: f(f(S)@S).trace())(lambda S: (lambda e,V: V@torch.diag(e*e)@V.T)(*eigh(S))),
    "eig left": lambda S: eigvalsh(S)[0]+eigvalsh(S).sum()+torch.log(eigvalsh(S[:9,:9]-one(9))).sum(),
    "exp kernel": lambda X,b: solve(torch.exp(-torch.cdist(X,X)**2)+one()*.1,b),
}  # fmt: skip


def _given(f: Callable[..., Any]) -> list[Any]:
    return [torch.from_numpy(GIVEN[name].copy()) for name in f.__code__.co_varnames[: f.__code__.co_argcount]]


def _graph(f: Callable[..., Any], gradient: bool) -> tuple[Any, list[Any]]:
    given = _given(f)
    if gradient:
        f = torch.func.grad(lambda *xs, f=f: (f(*xs) ** 2).sum(), tuple(range(len(given))))
    return graphc.trace(f, *given), given


def _several(result: Any) -> list[np.ndarray]:
    found = result if isinstance(result, (tuple, list)) else (result,)
    return [np.asarray(x.numpy() if hasattr(x, "numpy") else x) for x in found]


@pytest.mark.parametrize("name", one_in(2, PROGRAMS))
def test_values(name: str):
    _check_optimized(name, False)


@pytest.mark.parametrize("name", one_in(4, PROGRAMS))
def test_gradients(name: str):
    _check_optimized(name, True)


def _check_optimized(name: str, gradient: bool) -> None:
    graph, given = _graph(PROGRAMS[name], gradient)
    arrays = [x.numpy() for x in given]
    _check(optimize(graph)(*arrays), graph(*arrays))


def _check(found: Any, expected: Any) -> None:
    for a, b in zip(_several(found), _several(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-9 * max(np.abs(b).max(), 1e-2))


# what is left to do with large matrices
LEFT: dict[str, set[str]] = {
    "inv b": {"solve"}, "chain": {"solve", "matmul"}, "diag": set(), "diag+c": set(), "tril": {"solve_triangular"},
    "LLt": {"solve_triangular"}, "logdet LLt": set(), "logdet tri": set(), "det tri": set(), "low": set(),
    "low d": set(), "low ld": set(), "not low": set(), "update": set(), "update d": set(), "update of products": set(),
    "update ld": set(), "update det": set(), "update log det": set(), "low det": set(), "gp": {"solve", "slogdet"},
    "invinv": {"solve", "slogdet"}, "inv sum": {"solve"},
    "inv row": {"solve"}, "inv part": {"solve"}, "inv kron": {"solve"}, "kron two": set(), "kron logdet": set(),
    "kron noise": set(), "kron sum": set(), "Q": set(),
    "chol": {"cholesky", "solve_triangular"}, "blk": {"solve"},
    "low weighed": set(),
    "low inv": set(), "low inv ld": {"slogdet"}, "low inv 1": set(), "eig": {"slogdet", "inv"}, "eig rough": set(),
    "eig again": {"solve"}, "eig left": {"eigh"},
}  # fmt: skip
FEW = list(LEFT)[::3]
COMPILED = [
    pytest.param(name, gradient, marks=[] if name in FEW and not gradient else [pytest.mark.deep], id=f"{name}-{kind}")
    for name in PROGRAMS
    for gradient, kind in ((False, "value"), (True, "gradient"))
]


@pytest.mark.parametrize(("name", "gradient"), COMPILED)
def test_compiled_values(name: str, gradient: bool):
    graph, given = _graph(PROGRAMS[name], gradient)
    _check(graphc.lower(optimize(graph))(*given), graph(*[x.numpy() for x in given]))


DEAR = {"solve", "inv", "slogdet", "det", "cholesky", "solve_triangular", "lu", "cofactor", "eigh"}


@pytest.mark.parametrize("name", LEFT)
def test_what_is_left(name: str):
    graph, _ = _graph(PROGRAMS[name], False)
    optimized = optimize(graph)
    found = {
        node.op.name for node in optimized.nodes.values()
        if node.op.name in DEAR and optimized.nodes[node.inputs[0]].shape[-1] >= N
    }  # fmt: skip
    assert found <= LEFT[name], optimized


@pytest.mark.parametrize("name", ["update", "update ld", "update det", "update log det", "low det"])
def test_gradients_with_few_columns_are_products_through_them(name: str):
    optimized = optimize(_graph(PROGRAMS[name], True)[0])
    assert not any(node.size >= N * N and node.inputs for node in optimized.nodes.values()), optimized


@pytest.mark.parametrize("name", ["logdet LLt", "logdet tri"])
def test_gradients_of_triangles_are_diagonals(name: str):
    optimized = optimize(_graph(PROGRAMS[name], True)[0])
    assert not {node.op.name for node in optimized.nodes.values()} & {*DEAR, "matmul"}, optimized


SINGULAR = np.diag([1.0, 0.0, *range(1, N - 1)])
REFUSED: dict[str, tuple[Callable[..., Any], str]] = {
    "diag": (lambda A: solve(torch.diag(torch.diagonal(A)), A), "torch.linalg.solve: The solver failed"),
    "triangle": (lambda A: solve(torch.tril(A), A), "torch.linalg.solve: The solver failed"),
    "inverse of a triangle": (lambda A: inv(torch.triu(A)) @ A, "linalg.inv: "),
    "product": (lambda A: inv(A @ (A + one())) @ A, "linalg.inv: "),
    "transposed": (lambda A: inv(A.T) @ A[0], "linalg.inv: "),
    "scaled by zero": (lambda A: solve((A[1, 1] * 2) * (A + one()), A[0]), "torch.linalg.solve: "),
    "block": (lambda A: solve(block_diag(A, one(3)), torch.ones(N + 3, dtype=A.dtype)), "torch.linalg.solve: "),
    "twice": (lambda A: inv(inv(A)), "linalg.inv: "),
    "low rank": (lambda A: solve(A[1, 1] ** 2 * one() + A[:, :3] @ A[:, :3].T, A[0]), "torch.linalg.solve: "),
    "low rank, pushed": (
        lambda A: (lambda U: solve(A[1, 1] ** 2 * one() + U @ U.T, U @ A[0, :3]))(A[:, :3]), "torch.linalg.solve: ",
    ),
    "update": (lambda A: solve(one() - torch.outer(one()[3], one()[3] * (1 - A[1, 1])), A[0]), "torch.linalg.solve: "),
    "cancelled": (lambda A: inv(A) @ A @ A, "linalg.inv: "),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_singular_matrices_are_refused_in_the_name_of_who_asked(name: str):
    function, message = REFUSED[name]
    fast = graphc.compile(function)
    regular = SINGULAR + np.eye(N)
    np.testing.assert_allclose(
        fast(torch.from_numpy(regular)).numpy(), function(torch.from_numpy(regular)).numpy(), rtol=1e-9, atol=1e-9
    )
    with pytest.raises(torch.linalg.LinAlgError, match=message):
        fast(torch.from_numpy(SINGULAR))


@pytest.mark.parametrize("count", [3, 7, 30])
def test_a_mean_of_products_of_few_columns(count: int):
    """A third is no number of the machine: what is divided between U and its transpose is divided once."""
    U, b = torch.from_numpy(GIVEN["U"]), torch.from_numpy(GIVEN["b"])
    wanted = lambda C, b: solve(C + 0.1 * one(), b) + slogdet(C + one())[1]
    graph = graphc.trace(lambda U, b: wanted(U @ U.T / count, b), U, b)
    optimized = optimize(graph)
    assert all(node.size <= U.numel() for node in optimized.nodes.values()), optimized
    _check(optimized(U.numpy(), b.numpy()), graph(U.numpy(), b.numpy()))


def test_a_diagonal_with_a_zero_is_not_refused():
    def f(U: Any, d: Any, s: Any) -> Any:
        return solve(torch.diag(d**2) + s**2 * one() + U @ U.T, U[:, 0])

    given = [torch.from_numpy(x.copy()) for x in (GIVEN["U"], GIVEN["d"], np.zeros(()))]
    given[1][3] = 0.0  # U U^T fills it
    np.testing.assert_allclose(graphc.compile(f)(*given).numpy(), f(*given).numpy(), rtol=1e-8, atol=1e-9)


def test_the_determinant_of_a_matrix_of_low_rank_is_no_nan():
    f = graphc.compile(lambda U, s: slogdet(s**2 * one() + U @ U.T))
    sign, logs = f(torch.from_numpy(GIVEN["U"]), torch.zeros((), dtype=torch.float64))
    assert (sign.item(), logs.item()) == (0.0, -np.inf)


@pytest.mark.parametrize("rows", [3, 5])
@pytest.mark.parametrize("diagonal", [-1, 0, 1])
def test_triangles_of_triangles_are_diagonals_or_nothing(rows: int, diagonal: int):
    def f(A: Any, X: Any) -> Any:
        return torch.triu(torch.tril(X), diagonal), torch.tril(torch.triu(X), diagonal), inv(A)

    given = [_matrix(3, 3) + 2 * np.eye(3), _matrix(rows, 4 if rows == 3 else rows)]
    graph = graphc.trace(f, *map(torch.from_numpy, given))
    for found, expected in zip(solve_systems(graph)(*given), graph(*given), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


def test_strict_graphs_keep_what_is_written():
    graph, _ = _graph(PROGRAMS["diag"], False)
    assert "solve" in {node.op.name for node in optimize(graph, strict=True).nodes.values()}


@pytest.mark.parametrize("size", [1, 2, 5])
def test_small_matrices(size: int):
    a = torch.from_numpy(_matrix(size, size) + 2 * np.eye(size))
    f = graphc.compile(lambda a: (inv(a) @ a.T @ solve(a.T, a) + torch.diag(torch.diagonal(a)), logdet(a @ a.T)))
    found, expected = f(a), (inv(a) @ a.T @ solve(a.T, a) + torch.diag(torch.diagonal(a)), logdet(a @ a.T))
    for x, y in zip(found, expected, strict=True):
        np.testing.assert_allclose(x.numpy(), y.numpy(), rtol=1e-9, atol=1e-12)


def test_operands_of_two_dtypes_are_refused_before_anything_is_computed():
    a, b = torch.eye(3, dtype=torch.float64), torch.ones(3, 2)
    for ask in (E.solve, E.solve_triangular):
        with pytest.raises(RuntimeError, match="Expected A and B to have the same dtype, but found A of type Double"):
            graphc.trace(ask, a, b)


# (the program, whether it takes half a solution)
HALVES: dict[str, tuple[Callable[..., Any], bool]] = {
    "diagonal of a hat matrix": (lambda X: torch.diagonal(X @ inv(X.T @ X) @ X.T), True),
    "distances by Mahalanobis": (lambda B, S, b: ((B - b) @ inv(spd(S)) * (B - b)).sum(1), True),
    "of rows": (lambda B, S: (solve(spd(S), B) * B).sum(0, keepdim=True), True),
    "of columns": (lambda B, S: (solve(spd(S), B) * B).sum(1), False),
    "transposed": (lambda B, S: (solve(spd(S), B) * B.T).sum(0), False),
    "of no symmetric matrix": (lambda A, B: (solve(A, B) * B).sum(0), False),
    "of a solution that is read": (lambda B, S: (lambda x: (x * B).sum(0) + x[3])(solve(spd(S), B)), False),
    "of an indefinite matrix": (lambda B, X: (solve(B + B.T, X) * X).sum(0), True),
}


@pytest.mark.parametrize("name", HALVES)
def test_halves_of_solutions(name: str):
    f, is_half = HALVES[name]
    graph, given = _graph(f, False)
    optimized = optimize(graph)
    assert ("quadratic" in {node.op.name for node in optimized.nodes.values()}) == is_half, optimized
    expected = graph(*[x.numpy() for x in given])
    _check(optimized(*[x.numpy() for x in given]), expected)
    _check(graphc.lower(optimized)(*given), expected)
