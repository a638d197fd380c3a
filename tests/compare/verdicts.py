"""Pairs of programs and what is to be said of their difference. Most are from threads in which people argued about it.

A case is a function and another one, which stands for what a compiler has made of it; without another one, it is what
ours makes of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import eager as torch
from compare.judging.tolerance import Verdict

F = torch.nn.functional
IDENTICAL, ROUNDING, ENVIRONMENT, CONVENTION, UNSUPPORTED, BUG = (
    Verdict.IDENTICAL, Verdict.WITHIN_ROUNDING, Verdict.ENVIRONMENT, Verdict.CONVENTION, Verdict.UNSUPPORTED,
    Verdict.BUG,
)  # fmt: skip


class Case(NamedTuple):
    name: str
    verdict: Verdict
    fn: Callable[..., Any]
    args: Callable[[], tuple[Any, ...]]
    other: Callable[..., Any] | None = None
    modes: tuple[str, ...] = ("compiled",)


def _floats(*shapes: tuple[int, ...], low: float = -2.0, high: float = 2.0, grad: bool = False, dtype: str = "float32"):
    def made() -> tuple[Any, ...]:
        rng = np.random.default_rng(0)
        arrays = [np.asarray(rng.uniform(low, high, shape)).astype(dtype) for shape in shapes]
        return tuple(torch.from_numpy(a).requires_grad_(grad) for a in arrays)

    return made


def _given(*values: Any, grad: bool = False):
    return lambda: tuple(torch.tensor(v).requires_grad_(grad) for v in values)


_MILLION = _floats((1_000_000,))
_POSITIVE = _floats((1000,), low=0.5, high=1.5)
_FAR = _floats((1000,), low=4999.0, high=5001.0)
_SMALL = _floats((50,), low=1e-6, high=2e-6)
_TINY = _given([1e-30, 2e-30, 3e-30])


def _with_one_wrong(by: float):
    def f(x: Any) -> Any:
        y = torch.sin(x).clone()
        y[123_456] = y[123_456] * by
        return y

    return f


def _in_float64(fn: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *args: fn(*(a.double() for a in args)).float()


def _by_steps(fold: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    def f(x: Any) -> Any:
        total = x[0]
        for k in range(1, len(x)):
            total = fold(total, x[k])
        return total

    return f


class _Halved(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g


def _written(x: Any) -> Any:
    x.mul_(2)
    return x.sum()


def _not_written(x: Any) -> Any:
    return (x * 2).sum()


def _one_pass(x: Any) -> Any:
    return (x * x).mean(0) - x.mean(0) ** 2


def _two_pass(x: Any) -> Any:
    return ((x - x.mean(0)) ** 2).mean(0)


def _raising(x: Any) -> Any:
    raise ValueError("no")


CASES = (
    # the same bits, whatever a compiler does
    Case("moves", IDENTICAL, lambda x: x.mT.reshape(-1).flip(0), _floats((3, 4))),
    Case("integer arithmetic wraps", IDENTICAL, lambda x: x * x + 1, _given([2**31 - 1, 7, -3])),
    Case("a sum of integers", IDENTICAL, lambda x: x.sum(), lambda: (torch.arange(1000),)),
    Case("comparisons with nan", IDENTICAL, lambda x: (x > 0) | (x != x), _given([1.0, float("nan"), -1.0])),
    Case("relu and where", IDENTICAL, lambda x: torch.where(x > 0, x.relu(), x.abs()), _floats((50,))),
    Case("sorting", IDENTICAL, lambda x: torch.sort(x, stable=True)[1], _given([3.0, 1.0, 3.0, 2.0, 1.0])),
    Case("a maximum and its place", IDENTICAL, lambda x: (x.amax(1), x.argmax(1)), _floats((5, 7))),
    Case("max pooling", IDENTICAL, lambda x: F.max_pool2d(x, 2), _floats((1, 2, 6, 6))),
    Case("indexing", IDENTICAL, lambda x, i: x[i], lambda: (*_floats((9, 2))(), torch.tensor([3, 0, 8]))),
    Case("rounding half to even", IDENTICAL, torch.round, _given([0.5, 1.5, 2.5, -0.5])),
    Case("an overflow", IDENTICAL, lambda x: x * 2, _given([3e38, -3e38])),
    Case("both raise", IDENTICAL, lambda x: x.reshape(5), _floats((3,))),
    Case("the same numbers from the same seed", IDENTICAL, lambda x: F.dropout(x, 0.5), _floats((50,))),
    # the order of a sum, of a product; fused and split operations
    Case("a sum backwards", ROUNDING, lambda x: x.sum(), _MILLION, lambda x: x.flip(0).sum()),
    Case("a sum step by step", ROUNDING, lambda x: x.sum(), _POSITIVE, _by_steps(torch.add)),
    Case("a sum in float64", ROUNDING, lambda x: x.sum(), _MILLION, _in_float64(torch.sum)),
    Case("a mean of quotients", ROUNDING, lambda x: x.mean(), _POSITIVE, lambda x: (x / 1000).sum()),
    Case("a running sum by blocks", ROUNDING, lambda x: x.cumsum(0), _POSITIVE,
         lambda x: torch.cat([x[:50].cumsum(0), x[50:].cumsum(0) + x[:50].sum()])),
    Case("products associate", ROUNDING, lambda a, b, v: (a @ b) @ v, _floats((40, 40), (40, 40), (40,)),
         lambda a, b, v: a @ (b @ v)),
    Case("products distribute", ROUNDING, lambda a, b, c: a * b + a * c, _floats((99,), (99,), (99,)),
         lambda a, b, c: a * (b + c)),
    Case("a fused multiply-add", ROUNDING, lambda a, b, c: a * b + c, _floats((99,), (99,), (99,)),
         _in_float64(lambda a, b, c: a * b + c)),
    Case("division by a constant", ROUNDING, lambda x: x / 3, _floats((99,)), lambda x: x * (1 / 3)),
    Case("a reciprocal root", ROUNDING, lambda x: 1 / torch.sqrt(x), _POSITIVE, lambda x: x ** torch.tensor(-0.5)),
    Case("a cancelled root", ROUNDING, lambda x: torch.sqrt(x) * torch.sqrt(x), _POSITIVE, torch.clone),
    Case("exp of a sum", ROUNDING, lambda a, b: torch.exp(a) * torch.exp(b), _floats((99,), (99,)),
         lambda a, b: torch.exp(a + b)),
    Case("the simplifier cancels a large number", ROUNDING, lambda x: (x + 1e8) - 1e8, _floats((9,))),
    Case("a sum that cancels", ROUNDING, lambda x: (x + 1e4).sum() - 1e7, _floats((1000,)),
         lambda x: x.sum()),
    Case("variance in one pass, of centered data", ROUNDING, _two_pass, _floats((100, 10)), _one_pass),
    Case("softmax with another shift", ROUNDING, lambda x: F.softmax(x, 0), _floats((99,)),
         lambda x: torch.exp(x - 1) / torch.exp(x - 1).sum()),
    Case("log of softmax", ROUNDING, lambda x: torch.log(F.softmax(x, 0)), _floats((99,)),
         lambda x: F.log_softmax(x, 0)),
    Case("the sign of a zero", ROUNDING, lambda x: x * 0.0, _given([-1.0, 1.0]), lambda x: (x * 0.0).abs()),
    Case("a convolution as a product", ROUNDING, lambda x, w: F.conv2d(x, w)[0, :, 0, 0],
         _floats((1, 3, 5, 5), (4, 3, 5, 5)), lambda x, w: w.reshape(4, 75) @ x.reshape(75)),
    Case("an inverse", ROUNDING, lambda a, b: torch.linalg.solve(a + 5 * torch.eye(6), b), _floats((6, 6), (6, 1)),
         lambda a, b: torch.linalg.inv(a + 5 * torch.eye(6)) @ b),
    Case("attention, scaled before", ROUNDING, lambda q, k, v: F.softmax(q @ k.mT / 2, -1) @ v,
         _floats((6, 4), (6, 4), (6, 4)), lambda q, k, v: F.softmax((q * 3) @ k.mT / 6, -1) @ v),
    Case("a layer and its gradients", ROUNDING, lambda x, w: torch.tanh(x @ w).sum(),
         _floats((8, 5), (5, 3), grad=True)),
    Case("eigenvectors but for their signs", ROUNDING, lambda a: torch.linalg.eigh(a @ a.mT)[1].abs(), _floats((3, 3))),
    Case("an overflow on the way that does not happen", ROUNDING, lambda x: (x * 1e30) * 1e-30, _given([1e10, 2.0])),
    Case("a hypotenuse without the squares that overflow", ROUNDING, lambda x: (x * x + x * x).sqrt(),
         _given([1e25, 2.0]), lambda x: torch.hypot(x, x)),
    Case("a zero that cancels in few digits only", ROUNDING, lambda x: torch.logical_not(16 * torch.sigmoid(x) - 8),
         _given([1e-8, 0.5]), lambda x: torch.logical_not(16 * torch.sigmoid(x.double()) - 8)),
    Case("a product of many", ROUNDING, lambda x: x.prod(), _POSITIVE, lambda x: x.flip(0).prod()),
    # machine arithmetic: XLA on the CPU flushes denormal numbers
    Case("a denormal product", ENVIRONMENT, lambda x: x * 1e-10, _TINY),
    Case("a denormal number grows again", ENVIRONMENT, lambda x: (x * 1e-10).abs().sum() * 1e20, _TINY),
    Case("a denormal quotient", ENVIRONMENT, lambda x: x / 1e10, _TINY),
    Case("the log of one", ENVIRONMENT, lambda x: torch.log(x * 1e-10), _TINY),
    Case("one over one", ENVIRONMENT, lambda x: 1 / (x * 1e-9), _TINY),
    Case("the root of one", ENVIRONMENT, lambda x: torch.sqrt(x * 1e-10), _TINY),
    Case("whether one is positive", ENVIRONMENT, lambda x: x * 1e-10 > 0, _TINY),
    Case("XLA's simplifier loses a nan", ENVIRONMENT, lambda x: x.exp() * (-x).exp(), _given([1000.0, 2.0])),
    Case("nan meets the zeros around a part's gradient", ENVIRONMENT, lambda x: torch.acos(x)[1:2].exp(),
         _given([3.0, 0.5, 0.2], grad=True), lambda x: torch.acos(x[1:2]).exp()),
    Case("and a product of matrices", ENVIRONMENT, lambda x: (F.pad(x[:1], (0, 0, 0, 2)).mT @ x.log())[:, 0],
         _given([[3.0, 0.5], [-0.2, 1.0], [1.0, 1.0]]), lambda x: (x[:1].mT @ x[:1].log())[:, 0]),
    Case("a gradient that is one", ENVIRONMENT, lambda x: (x * 1e-20).sum() * 1e-20, _floats((3,), grad=True)),
    # several results are right
    Case("eigenvectors of a general matrix", CONVENTION, lambda a: torch.linalg.eig(a), _floats((5, 5))),
    Case("the gradient of abs at 0", CONVENTION, lambda x: x.abs().sum(), _given([0.0, 1.0], grad=True),
         None, ("jax.grad",)),
    Case("the gradient of relu at 0", CONVENTION, lambda x: x.relu().sum(), _given([0.0, 1.0], grad=True),
         None, ("jax.grad",)),
    Case("the gradient of a maximum at a tie", CONVENTION, lambda x, y: torch.maximum(x, y).sum(),
         _given([1.0, 2.0], [1.0, 3.0], grad=True), None, ("jax.grad",)),
    Case("the gradient of max pooling at a tie", CONVENTION, lambda x: F.max_pool1d(x, 2).sum(),
         lambda: (torch.ones(1, 1, 4, requires_grad=True),), None, ("jax.grad",)),
    Case("the gradient of an angle at the origin", CONVENTION, lambda x, y: torch.atan2(x, y).sum(),
         _given([0.0, 1.0], [0.0, 2.0], grad=True), None, ("jax.grad",)),
    # what cannot be captured, and says so
    Case("LAPACK's own format", UNSUPPORTED, lambda x: torch.geqrf(x), _floats((5, 3))),
    Case("many values that Python reads", UNSUPPORTED, lambda x: torch.tensor(sorted(x.tolist())), _floats((500,))),
    Case("an address in memory", UNSUPPORTED, lambda x: x * (x.data_ptr() > 0), _floats((50,))),
    Case("NumPy in between", UNSUPPORTED, lambda x: torch.from_numpy(np.sin(x.detach().numpy())), _floats((500,))),
    # faults
    Case("one element in a million, 1e-3 off", BUG, torch.sin, _MILLION, _with_one_wrong(1.001)),
    Case("one nan in a million", BUG, torch.sin, _MILLION, _with_one_wrong(float("nan"))),
    Case("a constant factor, 1e-4 off", BUG, torch.tanh, _floats((99,)), lambda x: torch.tanh(x) * 1.0001),
    Case("log(1 + x) of small x", BUG, torch.log1p, _SMALL, lambda x: torch.log(1 + x)),
    Case("exp(x) - 1 of small x", BUG, torch.expm1, _SMALL, lambda x: torch.exp(x) - 1),
    Case("variance in one pass, far from 0", BUG, _two_pass, _FAR, _one_pass),
    Case("softmax without a shift", BUG, lambda x: F.softmax(x, 0), _given([100.0, 1.0, 2.0]),
         lambda x: torch.exp(x) / torch.exp(x).sum()),
    Case("a hypotenuse by squares that overflow", BUG, lambda x: torch.hypot(x, x), _given([1e25, 2.0]),
         lambda x: (x * x + x * x).sqrt()),
    Case("a float64 program in float32", BUG, torch.exp, _floats((9,), dtype="float64"),
         lambda x: torch.exp(x.float()).double()),
    Case("a sum in float16", BUG, lambda x: x.sum(), _POSITIVE, lambda x: x.half().sum().float()),
    Case("another dtype", BUG, lambda x: x.double() * 2, _floats((9,)), lambda x: x * 2),
    Case("another shape", BUG, lambda x: x.sum(1, keepdim=True), _floats((3, 3)), lambda x: x.sum(1)),
    Case("another structure", BUG, lambda x: (x, x + 1), _floats((3,)), lambda x: [x, x + 1]),
    Case("the last of equal maxima", BUG, lambda x: x.argmax(), _given([1.0, 3.0, 3.0]),
         lambda x: len(x) - 1 - x.flip(0).argmax()),
    Case("the wrong axis", BUG, lambda x: x.mean(0), _floats((4, 4)), lambda x: x.mean(1)),
    Case("an element too few", BUG, lambda x: x.sum(), _POSITIVE, lambda x: x[:-1].sum()),
    Case("a biased variance", BUG, lambda x: x.var(), _POSITIVE, lambda x: x.var(correction=0)),
    Case("integer division that truncates", BUG, lambda x: x // 2, _given([-3, 3]),
         lambda x: torch.div(x, 2, rounding_mode="trunc")),
    Case("an integer that wraps sooner", BUG, lambda x: x * 2, _given([2**31 - 1]),
         lambda x: (x.int() * 2).long()),
    Case("a wrong gradient", BUG, lambda x: (x * x).sum(), _floats((5,), grad=True),
         lambda x: _Halved.apply(x).sum()),
    Case("no gradient", BUG, lambda x: x.exp().sum(), _floats((5,), grad=True), lambda x: x.detach().exp().sum()),
    Case("a write that is lost", BUG, _written, _floats((5,)), _not_written),
    Case("another mask", BUG, lambda x: F.dropout(x, 0.5), _floats((50,)), lambda x: F.dropout(x.flip(0), 0.5).flip(0)),
    Case("eigenvectors in the wrong order", BUG, lambda a: torch.linalg.eigh(a @ a.mT)[1], _floats((3, 3)),
         lambda a: torch.linalg.eigh(a @ a.mT)[1].flip(1)),
    Case("a small number that is not denormal", BUG, lambda x: x * 1e-5, _TINY, lambda x: x * 0),
    Case("only one raises", BUG, torch.sin, _floats((3,)), _raising),
    Case("only one returns", BUG, _raising, _floats((3,)), torch.sin),
    Case("nan for an empty mean", BUG, lambda x: x.mean(), _floats((0,)), lambda x: x.sum()),
    Case("a nan that meets no padding and is lost", BUG, lambda x: torch.acos(x).exp(),
         _given([3.0, 0.5], grad=True), lambda x: torch.acos(torch.where(x > 1, x.detach(), x)).exp()),
    Case("lost in padding", BUG, lambda x: F.pad(x, (1, 1)), _floats((4,)), lambda x: F.pad(x[1:], (2, 1))),
)  # fmt: skip
