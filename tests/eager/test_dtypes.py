"""Dtypes are PyTorch's: promotion over all pairs, 16-bit arithmetic, gradients of complex numbers."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import eager
from tests.oracle import asked_of_torch, torch_or_skip

NAMES = (
    "bool", "uint8", "int8", "int16", "int32", "int64", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32",
    "float64", "complex64", "complex128",
)  # fmt: skip
HALVES = ("float16", "bfloat16")


def answer(function: Any, *args: Any) -> str:
    """What `function` says of dtypes, or that it refuses."""
    try:
        return str(function(*args))
    except RuntimeError as error:
        return f"refused: {error}"


@asked_of_torch("function", ["promote_types", "can_cast"])
def test_every_pair_of_dtypes(function: str):
    torch = torch_or_skip()
    for a in NAMES:
        for b in NAMES:
            theirs = answer(getattr(torch, function), getattr(torch, a), getattr(torch, b))
            ours = answer(getattr(eager, function), getattr(eager, a), getattr(eager, b))
            assert ours == theirs, (function, a, b)


@asked_of_torch("shapes", [((2,), ()), ((), (2,)), ((), ()), ((2,), (2,))], ids=str)
def test_result_type_of_every_pair(shapes: Any):
    torch = torch_or_skip()
    for a in NAMES:
        for b in NAMES:
            both = (
                answer(
                    lib.result_type, *(lib.ones(s, dtype=getattr(lib, n)) for s, n in zip(shapes, (a, b), strict=True))
                )
                for lib in (torch, eager)
            )
            theirs, ours = both
            if theirs != "torch.complex32":
                assert ours == theirs, (a, b)


@asked_of_torch("scalar", [True, 1, 1.5, 1j])
def test_result_type_with_a_number(scalar: Any):
    torch = torch_or_skip()
    for name in NAMES:
        theirs, ours = (str(lib.result_type(lib.ones(2, dtype=getattr(lib, name)), scalar)) for lib in (torch, eager))
        if theirs != "torch.complex32":
            assert ours == theirs, name


@asked_of_torch("name", NAMES)
def test_attributes_are_pytorchs(name: str):
    torch = torch_or_skip()
    theirs, ours = getattr(torch, name), getattr(eager, name)
    assert repr(ours) == repr(theirs)
    for attribute in ("is_floating_point", "is_complex", "is_signed", "itemsize"):
        assert getattr(ours, attribute) == getattr(theirs, attribute), attribute
    assert str(ours.to_real()) == str(theirs.to_real())


@pytest.mark.filterwarnings("ignore:Casting complex values")
def test_casts_between_every_pair():
    torch = torch_or_skip()
    values = [0.0, 1.0, 2.5, 3.0, 100.0]
    for a in NAMES:
        for b in NAMES:
            ours, theirs = (
                lib.tensor(values, dtype=lib.float64).to(getattr(lib, a)).to(getattr(lib, b)) for lib in (eager, torch)
            )
            assert repr(ours) == repr(theirs), (a, b)


# --- 16 bits

EXACT = ["add", "sub", "mul", "div", "maximum", "minimum"]
UNARY = ["sqrt", "abs", "neg", "floor", "relu", "reciprocal", "square", "sign"]
CLOSE = ["exp", "log", "sin", "tanh", "sigmoid", "rsqrt", "erf"]


def halves(name: str, rng: np.random.Generator, shape: tuple[int, ...] = (50,)) -> Any:
    """The same random 16-bit numbers here and there."""
    torch = torch_or_skip()
    values = rng.uniform(0.1, 10, shape).astype(np.float32)
    return eager.tensor(values).to(getattr(eager, name)), torch.tensor(values).to(getattr(torch, name))


def same(ours: Any, theirs: Any, ulps: int = 0) -> None:
    assert str(ours.dtype) == str(theirs.dtype)
    a, b = np.array(ours.tolist()), np.array(theirs.tolist())
    assert a.shape == b.shape
    eps = eager.finfo(ours.dtype).eps if ours.is_floating_point() else 0
    assert np.all(np.abs(a - b) <= ulps * eps * np.abs(b)), (a, b)


@asked_of_torch("name", HALVES)
@asked_of_torch("function", EXACT)
def test_rounded_once(name: str, function: str, rng: np.random.Generator):
    (a, x), (b, y) = halves(name, rng), halves(name, rng)
    torch = torch_or_skip()
    same(getattr(eager, function)(a, b), getattr(torch, function)(x, y))


@asked_of_torch("name", HALVES)
@asked_of_torch("function", UNARY + CLOSE)
def test_functions_of_one(name: str, function: str, rng: np.random.Generator):
    a, x = halves(name, rng)
    torch = torch_or_skip()
    same(getattr(eager, function)(a), getattr(torch, function)(x), ulps=1 if function in CLOSE else 0)


@pytest.mark.parametrize("name", HALVES)
def test_sums_and_products_accumulate_in_float32(name: str, rng: np.random.Generator):
    a, x = halves(name, rng, (60, 70))
    for ours, theirs in (
        (a.sum(), x.sum()), (a.sum(0), x.sum(0)), (a.mean(1), x.mean(1)), (a.softmax(1), x.softmax(1)),
        (a.cumsum(0), x.cumsum(0)), (a @ a.t(), x @ x.t()), (a.logsumexp(0), x.logsumexp(0)), (a.amax(0), x.amax(0)),
    ):  # fmt: skip
        same(ours, theirs, ulps=1)


@asked_of_torch("name", HALVES)
def test_gradients_in_16_bits(name: str, rng: np.random.Generator):
    a, x = halves(name, rng, (3, 4))
    torch = torch_or_skip()
    for lib, t in ((eager, a), (torch, x)):
        t.requires_grad_()
        y = (t.exp() / 100 + t * t).sigmoid() @ lib.ones(4, 2, dtype=t.dtype)
        (y.softmax(1) * t[:, :2].sqrt()).sum().backward()
    assert str(a.grad.dtype) == str(x.grad.dtype)
    expected = x.grad.float().numpy()
    np.testing.assert_allclose(a.grad.float().numpy(), expected, rtol=0.05, atol=0.02 * np.abs(expected).max())


def test_views_of_16_bits_share_memory():
    x = eager.zeros(2, 3, dtype=eager.bfloat16)
    for view in (x.t(), x[0], x.reshape(-1), x.expand(2, 2, 3)):
        assert view.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()


def test_bfloat16_costs_nothing_until_it_is_used():
    program = "import eager, sys; eager.bfloat16.itemsize; print('ml_dtypes' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


# --- complex numbers

HOLOMORPHIC: dict[str, Any] = {
    "mul": lambda t, z, w: z * w, "div": lambda t, z, w: z / w, "pow": lambda t, z, w: z**2.5,
    "square": lambda t, z, w: t.square(z), "exp": lambda t, z, w: t.exp(z), "log": lambda t, z, w: t.log(z),
    "sqrt": lambda t, z, w: t.sqrt(z), "sin": lambda t, z, w: t.sin(z), "cos": lambda t, z, w: t.cos(z),
    "tanh": lambda t, z, w: t.tanh(z), "reciprocal": lambda t, z, w: t.reciprocal(z), "neg": lambda t, z, w: -z,
    "sub": lambda t, z, w: w - z, "matmul": lambda t, z, w: z.reshape(2, 3) @ w.reshape(3, 2),
    "sum": lambda t, z, w: (z * w).sum(0), "mean": lambda t, z, w: (z * w).mean(), "prod": lambda t, z, w: t.prod(z),
    "cumsum": lambda t, z, w: z.cumsum(0) * w, "index": lambda t, z, w: z[1:4] * w[:3], "real": lambda t, z, w: z.real,
    "imag": lambda t, z, w: z.imag, "abs": lambda t, z, w: z.abs(), "angle": lambda t, z, w: t.angle(z),
    "conj": lambda t, z, w: z.conj() * w, "sgn": lambda t, z, w: t.sgn(z).abs() + z.real,
    "as_real": lambda t, z, w: t.view_as_real(z * w), "of_real": lambda t, z, w: t.view_as_complex(t.view_as_real(z)),
    "polar": lambda t, z, w: t.polar(z.abs(), z.angle()), "real leaf": lambda t, z, w: z.real * w,
    "einsum": lambda t, z, w: t.einsum("i,j->ij", z, w), "where": lambda t, z, w: t.where(z.real > 0, z, w),
    "addmm": lambda t, z, w: t.addmm(z[:2], z.reshape(2, 3), w.reshape(3, 2)), "cat": lambda t, z, w: t.cat([z, z * w]),
}  # fmt: skip


@asked_of_torch("function", HOLOMORPHIC.values(), ids=list(HOLOMORPHIC))
@asked_of_torch("twice", [False, True], ids=["first", "second order"])
def test_complex_gradients_are_pytorchs(function: Any, twice: bool, rng: np.random.Generator):
    torch = torch_or_skip()
    first, second = (rng.uniform(0.3, 1.5, 6) + 1j * rng.uniform(-1, 1, 6) for _ in range(2))
    found = []
    for lib in (eager, torch):
        z, w = (lib.tensor(a, requires_grad=True) for a in (first, second))
        y = function(lib, z, w)
        loss = (y.abs() ** 2).sum() if y.is_complex() else (y * y).sum()
        grads = lib.autograd.grad(loss, [z, w], create_graph=twice, allow_unused=True)
        if twice:
            size: Any = sum((g.abs() ** 2).sum() for g in grads if g is not None)
            if not size.requires_grad:
                pytest.skip("linear")
            grads = lib.autograd.grad(size, [z, w], allow_unused=True)
        found.append([np.zeros(6) if g is None else g.detach().resolve_conj().numpy() for g in grads])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: eager.ones(2) + 2**70, OverflowError, "int too big to convert"),
        (lambda: -(2**70) * eager.ones(2), OverflowError, "int too big to convert"),
        (lambda: eager.ones(2, dtype=eager.int64) / 2**64, OverflowError, "int too big to convert"),
        (lambda: eager.tensor([True]) & 2**70, OverflowError, "int too big to convert"),
        (lambda: eager.tensor([True]) + 2**63, RuntimeError, "attempted to promote Bool and UInt64"),
        (lambda: eager.tensor([True]) < 2**64 - 1, RuntimeError, "attempted to promote Bool and UInt64"),
        (lambda: eager.full((2,), 2**63), RuntimeError, "value cannot be converted to type int64_t without overflow"),
    ],
)
def test_integers_of_more_bits_than_there_are(call, error, message):
    with pytest.raises(error, match=re.escape(message)):
        call()


def test_integers_of_64_bits_wrap_around_beside_integers():
    assert (eager.tensor([1]) + 2**63).tolist() == [1 - 2**63]
    assert (eager.tensor([1], dtype=eager.uint8) + (2**64 - 1)).tolist() == [0]
    assert (eager.ones(1) + 2**63).tolist() == [2.0**63]
