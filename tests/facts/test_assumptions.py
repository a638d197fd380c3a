"""`graphc.assume`: what is promised is checked in every mode, used, and dropped where it is known."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import compare
import eager as torch
import graphc
from graphc.ops import OPS
from graphc.ops.assumptions import read
from tests.depth import one_in

N = 9
rng = np.random.default_rng(1)
_A = rng.standard_normal((N, N))
_SPD = _A @ _A.T + np.eye(N)
_Q = np.linalg.qr(_A)[0]
_V = rng.uniform(0.5, 2, 5)


def changed(x: np.ndarray, at: Any, value: float) -> np.ndarray:
    x = x.copy()
    x[at] = value
    return x


class Case(NamedTuple):
    """A fact, an array of which it is true, one of which it is not, and what is said of that."""

    fact: Any
    true: np.ndarray
    false: np.ndarray
    said: str


CASES = {
    "symmetric": Case("symmetric", _SPD, changed(_SPD, (2, 5), 9.5), r"not symmetric: element \(2, 5\) is 9.5, el"),
    "spd": Case("spd", _SPD, _SPD - 3 * np.eye(N), "positive definite: an eigenvalue is -"),
    "lopsided": Case("spd", _SPD, changed(_SPD, (1, 3), 0.1), r"positive definite: element \(1, 3\) is 0.1"),
    "of nan": Case("positive_definite", _SPD, changed(_SPD, (1, 1), np.nan), "positive definite: an element is nan"),
    "psd": Case("psd", _A[:, :3] @ _A[:, :3].T, _A[:, :3] @ _A[:, :3].T - 0.01 * np.eye(N), "semidefinite: an eigenv"),
    "orthogonal": Case("orthogonal", _Q, 1.01 * _Q, "orthonormal columns: columns . and . are off by 0.0201"),
    "columns": Case("orthogonal", _Q[:, :4], changed(_Q[:, :4], (0, 0), 3.0), "columns 0 and 0"),
    "lower": Case("lower", np.tril(_A), _A, r"not lower triangular: element \(\d, \d\)"),
    "upper": Case("upper", np.triu(_A), changed(np.triu(_A), (4, 2), 0.25), r"triangular: element \(4, 2\) is 0.25"),
    "diagonal": Case("diagonal", np.diag(_V), changed(np.diag(_V), (0, 1), -2.0), r"diagonal: element \(0, 1\) is -2"),
    "tridiagonal": Case("tridiagonal", np.tril(np.triu(_A, -1), 1), np.triu(_A, -1), "but for 1 diagonals below and 1"),
    "band": Case(("band", 0, 2), np.tril(np.triu(_A), 2), np.tril(np.triu(_A), 3), "but for 0 diagonals below and 2"),
    "positive": Case("positive", _V, changed(_V, 3, 0.0), r"not positive: element \(3,\) is 0"),
    "nonnegative": Case("nonnegative", changed(_V, 3, 0.0), changed(_V, 3, -1e-9), r"to inf: element \(3,\) is -1e"),
    "nonpositive": Case("nonpositive", -_V, _V, "from -inf to 0"),
    "range": Case((0.25, 2.0), _V, changed(_V, 1, 2.5), r"from 0.25 to 2: element \(1,\) is 2.5"),
    "no number": Case((0.25, 2.0), _V, changed(_V, 1, np.nan), r"element \(1,\) is nan"),
    "finite": Case("finite", _V, changed(_V, 2, np.inf), r"not finite: element \(2,\) is inf"),
}  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", CASES)
def test_what_is_false_is_refused_at_once_with_the_line_and_the_worst_place(name: str, dtype: Any):
    case = CASES[name]
    kept = graphc.assume(torch.from_numpy(case.true.astype(dtype)), case.fact)
    np.testing.assert_array_equal(kept.numpy(), case.true.astype(dtype))
    with pytest.raises(ValueError, match=case.said) as refused:
        graphc.assume(torch.from_numpy(case.false.astype(dtype)), case.fact)
    assert "test_assumptions.py:" in str(refused.value)


@pytest.mark.parametrize("name", one_in(2, CASES))
def test_checks_agree_on_all_backends(name: str):
    import jax

    case, check = CASES[name], OPS["assume"].check
    assert check is not None
    with jax.enable_x64(True):
        for x, holds in ((case.true, True), (case.false, False), (np.stack([case.true, case.false]), False)):
            if x.ndim > 2 or case.true.ndim == 1:  # a batch is as good as its worst matrix
                assert bool(check.ok(np, x, fact=read(case.fact))) is holds
            assert bool(check.ok(jax.numpy, jax.numpy.asarray(x), fact=read(case.fact))) is holds


@pytest.mark.parametrize("backend", ["numpy", "jax"])
def test_programs_refuse_what_is_false(backend: str):
    def f(K: Any, v: Any) -> Any:
        K, v = graphc.assume(K, "symmetric", "spd"), graphc.assume(v, "positive", "finite")
        return torch.linalg.solve(K, torch.ones(N, dtype=K.dtype)).sum() + (torch.sqrt(v) ** 2).sum()

    fast = graphc.compile(f, backend=backend)
    K, v = torch.from_numpy(_SPD.copy()), torch.from_numpy(_V.copy())
    for _ in range(2):
        np.testing.assert_allclose(fast(K, v).item(), f(K, v).item(), rtol=1e-12)
        for bad, said in (((K - 3 * torch.eye(N), v), "positive definite"), ((K, -v), "not positive"),
                          ((K, v / 0), "not finite")):  # fmt: skip
            with pytest.raises(ValueError, match=said) as refused:
                fast(*bad)
            assert "test_assumptions.py:" in str(refused.value)


@pytest.fixture
def _collected() -> Iterator[None]:
    """What an exception holds, placeholders among it, is gone afterwards: the graph of the thread with them."""
    yield
    gc.collect()


@pytest.mark.usefixtures("_collected")
def test_sessions_refuse_what_is_false():
    x = graphc.placeholder((None,), torch.float64, name="x")
    root = torch.sqrt(graphc.assume(x, "nonnegative"))
    with graphc.Session() as session:
        np.testing.assert_allclose(session.run(root, feed_dict={x: _V}).numpy(), np.sqrt(_V))
        with pytest.raises(ValueError, match=r"not from 0 to inf \(at .*test_assumptions.py:"):
            session.run(root, feed_dict={x: -_V})


@pytest.mark.parametrize("f", [torch.vmap, lambda f: graphc.compile(torch.vmap(f))], ids=["eager", "compiled"])
def test_under_vmap(f: Callable[..., Any]):
    stack = torch.from_numpy(np.stack([_SPD, 2 * _SPD]))
    logs = f(lambda K: torch.logdet(graphc.assume(K, "spd")))
    np.testing.assert_allclose(logs(stack).numpy(), np.linalg.slogdet(stack.numpy())[1])
    with pytest.raises(ValueError, match="not symmetric and positive definite"):
        logs(stack - 5)


def test_inside_loops():
    fast = graphc.compile(lambda xs: graphc.scan(lambda c, x: (c + graphc.assume(x, "positive"), c), xs[0] * 0, xs)[0])
    assert fast(torch.ones(4)).item() == 4
    with pytest.raises(ValueError, match="not positive"):
        fast(-torch.ones(4))


def test_a_promise_is_checked_though_nothing_reads_it():
    def f(v: Any) -> Any:
        graphc.assume(v, "positive")
        return graphc.assume(v, "finite") * 0

    fast = graphc.compile(f)
    v = torch.from_numpy(_V.copy())
    assert fast(v).tolist() == [0.0] * 5
    for bad in (-v, v / 0):
        with pytest.raises(ValueError, match="assume: this is not"):
            fast(bad)


@pytest.mark.parametrize("word", ["spdd", ("band", 1), (2, 1), (0.0, float("nan")), 3, None, ("bands", 0, 1)])
def test_what_is_no_fact(word: Any):
    with pytest.raises(ValueError, match="is no fact; facts are 'symmetric'"):
        graphc.assume(torch.ones(3), word)


@pytest.mark.parametrize(
    ("x", "fact", "error", "said"),
    [
        (torch.ones(3), "spd", ValueError, "only square matrices can be definite, got f32"),
        (torch.ones(2, 3), "symmetric", ValueError, "only square matrices can be symmetric"),
        (torch.ones(3), "lower", ValueError, "only matrices can be band"),
        (torch.ones(3, 3, dtype=torch.int64), "spd", TypeError, "float32 and float64"),
        (torch.ones(3, dtype=torch.complex64), "positive", TypeError, "only real numbers"),
        ([1.0], "positive", TypeError, "expected a Tensor, got list"),
    ],
)
def test_what_cannot_have_a_fact(x: Any, fact: str, error: type[Exception], said: str):
    with pytest.raises(error, match=said):
        graphc.assume(x, fact)
    if isinstance(x, torch.Tensor):
        with pytest.raises(error, match=said):
            graphc.trace(lambda x: graphc.assume(x, fact), x)


def test_gradients_pass_through_as_they_are():
    K = torch.from_numpy(_SPD.copy()).requires_grad_()
    w = torch.from_numpy(_A.copy())
    for f in (lambda K: graphc.assume(K, "spd"), graphc.compile(lambda K: graphc.assume(K, "spd"))):
        K.grad = None
        (f(K) * w).sum().backward()
        np.testing.assert_array_equal(K.grad.numpy(), _A)  # not symmetric: K may be what its user makes of it


def operations(f: Callable[..., Any], *arrays: np.ndarray) -> list[str]:
    graph = graphc.trace(f, *[torch.from_numpy(a.copy()) for a in arrays])
    return [node.op.name for node in graphc.optimize(graph).operations()]


assume = graphc.assume
SHORTER: dict[str, tuple[Callable[..., Any], np.ndarray, list[str]]] = {
    "abs": (lambda v: torch.abs(assume(v, "positive")), _V, ["assume"]),
    "relu": (lambda v: torch.relu(assume(v, "nonnegative")), _V, ["assume"]),
    "root": (lambda v: torch.sqrt(assume(v, (0, 9))) ** 2, _V, ["assume"]),
    "root of square": (lambda v: torch.sqrt(assume(v, "positive") ** 2), _V, ["assume"]),
    "exp of log": (lambda v: torch.exp(torch.log(assume(v, "positive"))), _V, ["assume"]),
    "clamp": (lambda v: torch.clamp(assume(v, (0, 2)), -1, 3), _V, ["assume"]),
    "clamp of sigmoid": (lambda v: torch.clamp(torch.sigmoid(v), 0, 1), _V, ["sigmoid"]),
    "maximum": (lambda v: torch.maximum(torch.exp(v), torch.tensor(0.0, dtype=v.dtype)), _V, ["exp"]),
    "1 - tanh": (lambda v: torch.abs(1 - torch.tanh(v)), _V, ["tanh", "constant", "sub"]),
    "softmax": (lambda v: torch.relu(torch.softmax(v, 0)), _V, ["softmax"]),
    "zero": (lambda v: assume(v, "finite") * 0, _V, ["assume", "full"]),
    "difference": (lambda v: (lambda u: u - u)(assume(v, "finite")), _V, ["assume", "full"]),
    "quotient": (lambda v: (lambda u: u / u)(assume(v, (0.5, 2.0))), _V, ["assume", "full"]),
    "orthogonal": (lambda q: torch.linalg.inv(assume(q, "orthogonal")), _Q, ["assume", "permute"]),
    "q": (lambda a: torch.linalg.inv(torch.linalg.qr(a)[0]), _A, ["qr", "item", "permute"]),
    "triangle": (lambda a: torch.linalg.solve(assume(a, "lower"), torch.ones(N, 1, dtype=a.dtype)),
                 np.tril(_A) + 3 * np.eye(N), ["solve_triangular"]),
    "diagonal": (lambda a: torch.linalg.slogdet(assume(a, "diagonal"))[1], np.diag(np.arange(1.0, N + 1)),
                 ["abs", "log", "sum"]),
}  # fmt: skip
DEAR = {"inv", "solve", "slogdet", "where", "div", "log", "exp", "sqrt", "square", "abs", "sub", "mul"}


@pytest.mark.parametrize("name", SHORTER)
def test_what_facts_leave(name: str):
    f, x, left = SHORTER[name]
    found = operations(f, x)
    assert set(left) <= set(found), found
    assert not (DEAR - set(left)) & set(found), found
    graph = graphc.optimize(graphc.trace(f, torch.from_numpy(x.copy())))
    np.testing.assert_allclose(graph(x), f(torch.from_numpy(x.copy())).numpy(), rtol=1e-12, atol=1e-13)


NEEDED: dict[str, Callable[..., Any]] = {
    "abs": lambda v: torch.abs(assume(v, (-1.0, 3.0))),
    "relu": lambda v: torch.relu(assume(v, "finite")),
    "root": lambda v: torch.sqrt(assume(v, "finite")) ** 2,
    "difference": lambda v: (lambda u: u - u)(assume(v, "positive")),  # of infinities
    "quotient": lambda v: (lambda u: u / u)(assume(v, "nonnegative", "finite")),  # of zeros
    "product": lambda v: assume(v, "nonnegative") * 0,  # of infinities
    "clamp": lambda v: torch.clamp(assume(v, (0.0, 2.0)), 0.5, 1.5),
}


@pytest.mark.parametrize("name", NEEDED)
def test_what_other_facts_do_not_leave_out(name: str):
    assert {*operations(NEEDED[name], _V)} - {"assume", "full", "constant"}


PROVEN: dict[str, tuple[Callable[..., Any], np.ndarray]] = {
    "spd": (lambda a: assume(a.T @ a + torch.eye(N, dtype=a.dtype), "spd"), _A),
    "psd": (lambda a: assume(a @ a.T, "psd"), _A),
    "symmetric": (lambda a: assume(a + a.T, "symmetric"), _A),
    "of what is assumed": (lambda a: assume(assume(a, "spd"), "symmetric"), _SPD),
    "twice": (lambda a: assume(a, "spd") + assume(a, "spd"), _SPD),
    "lower": (lambda a: assume(torch.tril(a), "lower", ("band", 99, 3)), _A),
    "cholesky": (lambda a: assume(torch.linalg.cholesky(a), "lower"), _SPD),
    "orthogonal": (lambda a: assume(torch.linalg.qr(a)[0], "orthogonal"), _A),
    "range": (lambda a: assume(torch.sigmoid(assume(a, "finite")), (0, 1), "nonnegative", "finite"), _A),
}


@pytest.mark.parametrize("name", PROVEN)
def test_what_is_proven_is_not_checked(name: str):
    f, x = PROVEN[name]
    graph = graphc.trace(f, torch.from_numpy(x.copy()))
    before = [n.op.name for n in graph.operations()].count("assume")
    left = [n.op.name for n in graphc.optimize(graph).operations()].count("assume")
    assert left == (1 if name in ("of what is assumed", "twice", "range") else 0) < before


def test_nan_is_in_no_range_whatever_an_op_says():
    assert operations(lambda v: assume(torch.sigmoid(v), (0, 1)), _V) == ["sigmoid", "assume"]


def test_strict_programs_keep_all_checks():
    f, x = PROVEN["spd"]
    graph = graphc.trace(f, torch.from_numpy(x.copy()))
    assert "assume" in [n.op.name for n in graphc.optimize(graph, strict=True).operations()]


LARGE = 66


def test_one_factorization_is_check_solution_and_determinant():
    def likelihood(K: Any, y: Any) -> Any:
        K = graphc.assume(K, "spd")
        return -0.5 * y @ torch.linalg.inv(K) @ y - 0.5 * torch.logdet(K)

    a = rng.standard_normal((LARGE, LARGE))
    K, y = torch.from_numpy(a @ a.T / LARGE + np.eye(LARGE)), torch.from_numpy(rng.standard_normal(LARGE))
    for f in (likelihood, torch.func.grad(likelihood, (0, 1))):
        source = graphc.lower(graphc.optimize(graphc.trace(f, K, y))).source
        assert source.count("factorize(") == source.count("known='definite'") == 1
        assert "checks." not in source
    fast = graphc.compile(likelihood)
    np.testing.assert_allclose(fast(K, y).item(), likelihood(K, y).item(), rtol=1e-12)
    lopsided = K.numpy().copy()
    lopsided[3, 40] += 0.5  # of which Cholesky's factorization sees nothing
    for bad in (K - 2 * torch.eye(LARGE), torch.from_numpy(lopsided), torch.from_numpy(lopsided.T.copy())):
        with pytest.raises(ValueError, match="not symmetric and positive definite"):
            fast(bad, y)


def test_rounding_is_no_lopsidedness():
    a = rng.standard_normal((400, 400)).astype(np.float32)
    K = (a * np.float32(3)) @ a.T + 20 * np.eye(400, dtype=np.float32)
    assert not np.array_equal(K, K.T)
    graphc.assume(torch.from_numpy(K), "spd", "symmetric", "psd")


def test_compare_agrees():
    K = torch.from_numpy(_SPD.copy()).requires_grad_()

    def f(K: Any) -> Any:
        return torch.logdet(graphc.assume(K, "spd")) + torch.linalg.inv(graphc.assume(K, "symmetric"))[0].sum()

    assert (report := compare.check(f, K)).ok, str(report)
    assert (report := compare.check(f, K.detach() - 5)).ok, str(report)  # all modes raise


def test_a_promise_of_nothing_is_a_mistake():
    with pytest.raises(TypeError, match=r"expected a fact, as in assume\(x, 'spd'\)"):
        graphc.assume(torch.ones(2))
