"""Signs of zeros, infinities and nan under XLA, which takes sums with zero for copies."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import compare
import eager as torch
import graphc
from graphc.ir import Builder, Ref
from graphc.lowering import lower
from graphc.lowering.overrides import OVERRIDES
from graphc.ops import OPS, Trait
from graphc.ops.aval import Aval
from graphc.ops.bessel import ON_HOST
from graphc.ops.interpret import run_kernel, with_defaults
from tests.ops.cases import Case, every_case

TOGETHER = 40  # of a program
CASES = [case for case in every_case() if case.op not in ON_HOST]
# a sum of terms that are all -0 is -0 where it begins with the first one, and +0 where it begins with 0
BEGUN = {"solve_triangular", "det"} | {op.name for op in OPS.values() if op.traits & Trait.CONTRACTS}


def differing(cases: list[Case], share: float) -> list[str]:
    """Which of `cases`, on zeros of which `share` are -0, have zeros of another sign under XLA than in NumPy."""
    rng = np.random.default_rng(3)
    builder, arrays, results, expected = Builder(), list[np.ndarray](), list[Ref](), list[tuple[str, Any, Any]]()
    for case in cases:
        given = [_zeros(a, rng, share) for a in case.arrays(rng)]
        try:
            value = run_kernel(case.op, given, with_defaults(case.op, case.sample.params))
        except (ArithmeticError, RuntimeError, ValueError):  # a singular matrix, for one
            continue
        inputs = [builder.input(f"x{len(arrays) + k}", Aval(a.shape, a.dtype)) for k, a in enumerate(given)]
        arrays += given
        made = builder.apply(case.op, inputs, case.sample.params)
        results += [Ref(symbol.id) for symbol in (made if isinstance(made, tuple) else (made,))]
        expected.append((case.id, case.op, value))
    found = map(np.asarray, lower(builder.graph("zeros", tuple(results)))(*arrays))
    wrong: list[str] = []
    for name, op, value in expected:
        like = value if isinstance(value, tuple) else (value,)
        given = tuple(itertools.islice(found, len(like)))
        if op.nearest is not None:
            given = op.nearest(given, like) if op.several else (op.nearest(*given, *like),)
        for a, b in zip(given, like, strict=True):
            if b.dtype.kind == "f" and (share == 1 or op.name not in BEGUN):
                zeros = (a == 0) & (b == 0)
                if (zeros & (np.signbit(a) != np.signbit(b))).any():
                    wrong.append(f"{name}: {a.ravel()[:6]}, expected {b.ravel()[:6]}")
    return wrong


def _zeros(array: np.ndarray, rng: np.random.Generator, share: float) -> np.ndarray:
    if array.dtype.kind not in "fc":
        return array
    return np.where(rng.random(array.shape) < share, -0.0, 0.0).astype(array.dtype)


@pytest.mark.deep
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("share", [1.0, 0.5])
@pytest.mark.parametrize("start", range(0, len(CASES), TOGETHER))
def test_every_op_on_zeros(start: int, share: float):
    assert not differing(CASES[start : start + TOGETHER], share)


SUMMING = {"sum", "mean", "matmul", "cumsum", "avg_pool1d", "max_pool1d_spread", "conv1d", "place", "scatter_add"}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_sums_of_zeros():
    assert not differing([case for case in CASES if case.op.name in SUMMING], 1.0)


MINUS = torch.zeros(4) * -1


@pytest.mark.parametrize("fn", [lambda w: 1 / (MINUS @ w), lambda w: 1 / torch.einsum("i,ij->j", MINUS, w)])
def test_where_products_that_are_all_minus_zero_begin_is_no_bug(fn: Any):
    assert compare.check(fn, torch.ones(4, 2)).verdict is not compare.Verdict.BUG


def test_zeros_of_another_sign_are_one(monkeypatch: pytest.MonkeyPatch):
    def wrong(a: Any, b: Any) -> Any:
        return jnp.where(a @ b == 0, -0.0, a @ b)

    monkeypatch.setitem(OVERRIDES, "matmul", wrong)
    x = torch.tensor([0.0, -0.0, 0.0, -0.0])
    report = compare.check(lambda x, w: 1 / (x @ w), x, torch.ones(4, 2), modes=["compiled"])
    assert report.verdict is compare.Verdict.BUG


ZEROS, ONES = torch.zeros, torch.ones
# sums with +0 that XLA sees through
SUMS: tuple[Callable[[Any], Any], ...] = (
    lambda x: x + 0.0,
    lambda x: x * 0 + 0.0,
    lambda x: x * 1 + 0,
    lambda x: x - (-0.0),
    lambda x: sum([x, x]),
    lambda x: ZEROS(5000)[10:12] + x,
    lambda x: ZEROS(3000, 2).sum(0) + x,
    lambda x: torch.zeros_like(x).add_(x),
    lambda x: torch.full((2, 2), 0.0).t()[0].clone() + x,
    lambda x: (torch.complex(x, x) + 0).imag,
    lambda x: x.half() + 0,
    lambda x: x.bfloat16() + 0.0,
    lambda x: x[:, None].sum(1),
    lambda x: x[[0, 0]] + torch.tensor([0.0, -0.0]),
    lambda x: x[:, None].mean(1),
    lambda x: x[:, None] @ ONES(1, 1),
    lambda x: torch.addmm(ZEROS(2, 1), x[:, None], ONES(1, 1)),
    lambda x: torch.einsum("i,j->ij", x, ONES(1)),
    lambda x: torch.bmm(x[:, None, None], ONES(2, 1, 1)),
    lambda x: torch.nn.functional.conv1d(x[None, None], ONES(1, 1, 1)),
    lambda x: torch.nn.functional.avg_pool1d(x[None], 1),
    lambda x: torch.nn.functional.unfold(x[None, None, None], 1),
    lambda x: ZEROS(2).index_put((torch.tensor([0]),), x[:1], accumulate=True),
    lambda x: torch.lerp(ZEROS(2), x, 1.0),
    lambda x: x.cumsum(0),
    lambda x: graphc.scan(lambda c, v: (c + v, c), ZEROS(2), x[None])[0],
    lambda x: graphc.fori_loop(0, 1, lambda i, c: c + x, ZEROS(2)),
    lambda x: graphc.cond((x > 1).any(), lambda z, x: z + x, lambda z, x: z, ZEROS(2), x),
    lambda x: torch.autograd.grad((x.requires_grad_() * -0.0)[0] + x[1] * -0.0, x)[0],
    lambda x: x.exp() - 1,
    lambda x: torch.log(x + 1),
    lambda x: -(x - x),
)


def one_over(k: int) -> Callable[[Any], Any]:
    return lambda x: 1 / SUMS[k](x)


def test_sums_with_zero():
    x = torch.tensor([-0.0, 2.0])
    together = graphc.compile(lambda x: [one_over(k)(x.clone()) for k in range(len(SUMS))])
    for k, found in enumerate(together(x)):
        expected = one_over(k)(x.clone())
        got, wanted = (t.detach().float().numpy() for t in (found, expected))
        np.testing.assert_allclose(got, wanted, rtol=1e-5, err_msg=str(k))


@pytest.mark.parametrize("fn", [
    lambda x: 1 / (x + 0.0),
    lambda x: 1 / (x * 0 + 0.0),
    lambda x: 1 / x.amin(),
    lambda x: 1 / torch.nn.functional.max_pool1d(x[None], 2),
    lambda x: 1 / ((x + 1) - 1),
    lambda x: x.rsqrt().log(),
    lambda x: (x * 3e38).exp().log1p(),
    lambda x: x * 1e-30 * 1e30 * 1e30,
    lambda x: x * 3e38 * 2.0 * 0.0,
])  # fmt: skip
def test_no_alarm(fn: Callable[[Any], Any]):
    report = compare.check(fn, torch.tensor([0.0, -0.0, -0.0, 0.0, 1.0, 2.0]))
    assert report.ok, report


# --- pairs of operations with constants

POINTS = [-0.0, 0.0, 1.0, -1.0, 2.0, -2.0, float("inf"), -float("inf"), float("nan")]
CONSTANTS = [0.0, -0.0, 1.0, -1.0, 2.0, float("inf"), float("nan")]
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "**": lambda a, b: a**b,
    "maximum": lambda a, b: torch.maximum(*_tensors(a, b)),
    "minimum": lambda a, b: torch.minimum(*_tensors(a, b)),
    "atan2": lambda a, b: torch.atan2(*_tensors(a, b)),
    "%": lambda a, b: a % b,
}
UNARY: dict[str, Callable[[Any], Any]] = {
    "neg": lambda x: -x, "abs": torch.abs, "sqrt": torch.sqrt, "exp": torch.exp, "log": torch.log,
    "square": torch.square, "reciprocal": torch.reciprocal, "rsqrt": torch.rsqrt, "sign": torch.sign,
    "relu": torch.relu, "expm1": torch.expm1, "log1p": torch.log1p, "floor": torch.floor, "ceil": torch.ceil,
    "x - x": lambda x: x - x, "x / x": lambda x: x / x, "x * x": lambda x: x * x,
}  # fmt: skip


def _tensors(a: Any, b: Any) -> list[Any]:
    like = a if isinstance(a, torch.Tensor) else b
    return [v if isinstance(v, torch.Tensor) else torch.full_like(like, v) for v in (a, b)]


def single() -> Iterator[tuple[str, Callable[[Any], Any]]]:
    for name, op in BINARY.items():
        for c in CONSTANTS:
            yield f"x {name} {c}", lambda x, op=op, c=c: op(x, c)
            yield f"{c} {name} x", lambda x, op=op, c=c: op(c, x)
            yield f"x {name} full({c})", lambda x, op=op, c=c: op(x, torch.full_like(x, c))
    yield from UNARY.items()


def chains() -> Iterator[tuple[str, Callable[[Any], Any]]]:
    found = list(single())
    outer = [(n, f) for n, f in found if n.split()[1:2] in (["+"], ["-"], ["*"], ["/"]) or n in UNARY]
    for name, f in found:
        for other, g in outer[:: 3 if name in UNARY else 7]:
            yield f"{other} of {name}", lambda x, f=f, g=g: g(f(x))


def wrong_signs(expressions: list[tuple[str, Callable[[Any], Any]]], dtype: Any) -> list[str]:
    """Those with another class or sign of zero than in eager mode, for which XLA's simplifier is no excuse."""
    x = torch.tensor(POINTS, dtype=dtype)

    def all_of(x: Any, chosen: Any = expressions) -> list[Any]:
        return [f(x) for _, f in chosen]

    found = graphc.compile(all_of, dynamic=False)(x)
    expected = all_of(x)
    doubtful = [e for e, a, b in zip(expressions, found, expected, strict=True) if _differs(a, b)]
    if not doubtful:
        return []
    plain = graphc.compile(lambda x: all_of(x, doubtful), dynamic=False, strict=True)(x)
    return [name for (name, f), a in zip(doubtful, plain, strict=True) if _differs(a, f(x))]


def check_signs(expressions: list[tuple[str, Callable[[Any], Any]]], dtype: str) -> None:
    for k in range(0, len(expressions), 100):  # of a program
        assert not wrong_signs(expressions[k : k + 100], getattr(torch, dtype))


def _differs(a: Any, b: Any) -> bool:
    a, b = (t.to(torch.float64).numpy() for t in (a, b))
    with np.errstate(all="ignore"):
        same = (a == b) & (np.signbit(a) == np.signbit(b)) | (np.isnan(a) & np.isnan(b))
        return not (same | np.isclose(a, b, rtol=2e-2, atol=0)).all()


@pytest.mark.parametrize("dtype", ["float32"])
def test_constants(dtype: str):
    check_signs(list(single()), dtype)


@pytest.mark.deep
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
def test_chains(dtype: str):
    check_signs(list(chains())[:: 1 if dtype == "float32" else 5], dtype)
