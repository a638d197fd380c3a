"""`torch.autocast`: its state, what it does to gradients, Functions, checkpoints, the user's ops; in both modes."""

from __future__ import annotations

import inspect
import threading
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import compare
import eager
import graphc
from eager.core.autocast import USUAL, autocast_state
from eager.core.overriding import own
from eager.functional import linear
from eager.nn.functions import distance
from eager.utils.checkpoint import checkpoint
from graphc.ops import op, rules
from graphc.ops.spec import OPS
from tests.oracle import asked_of_torch, torch_or_skip

F32, BF16, F16 = eager.float32, eager.bfloat16, eager.float16
A = np.random.default_rng(0).normal(size=(3, 3)).astype(np.float32)


@pytest.fixture(autouse=True)
def as_before():
    yield
    assert autocast_state() is USUAL


def product(t: Any = eager) -> Any:
    return (t.tensor(A) @ t.tensor(A)).dtype


def test_contexts_nest():
    with eager.autocast("cpu") as entered:
        assert isinstance(entered, eager.amp.autocast) and product() is BF16
        with eager.autocast("cpu", F16):
            assert product() is F16
        with eager.autocast("cpu", enabled=False):
            assert product() is F32 and not eager.is_autocast_enabled("cpu")
            with eager.autocast("cpu"):
                assert product() is BF16
        assert product() is BF16
    assert product() is F32


def test_one_context_is_entered_again():
    context = eager.autocast("cpu")
    with context, context:
        assert product() is BF16
    with context:
        assert product() is BF16
    assert product() is F32


def test_an_error_ends_it():
    with pytest.raises(ZeroDivisionError), eager.autocast("cpu"):
        raise ZeroDivisionError
    assert product() is F32


def test_decorator():
    @eager.autocast("cpu", dtype=F16)
    def f(x: Any) -> Any:
        """Doc."""
        return x @ x

    assert f(eager.tensor(A)).dtype is F16 and f.__doc__ == "Doc."


def test_state_is_of_the_thread():
    found = []
    with eager.autocast("cpu"):
        thread = threading.Thread(target=lambda: found.append((product(), eager.is_autocast_enabled("cpu"))))
        thread.start()
        thread.join()
        assert product() is BF16
    assert found == [(F32, False)]


def test_functions_are_themselves_outside():
    """Nothing is asked at a call while no thread has autocast on: the code is what it was."""
    functions = [own(f) for f in (linear.mm, distance.linear, eager.nn.functional.mse_loss)]
    before = [f.__code__ for f in functions]
    with eager.autocast("cpu"):
        assert all(f.__code__ is not code for f, code in zip(functions, before, strict=True))
    assert [f.__code__ for f in functions] == before


def test_signatures_stay():
    before = inspect.signature(eager.mm)
    with eager.autocast("cpu"):
        assert inspect.signature(eager.mm) == before


# --- gradients


def weights(t: Any) -> Any:
    """A weight that is used twice, with its cast kept and without."""
    w, x = t.tensor(A, requires_grad=True), t.tensor(A * 1.01)
    for cache in (True, False):
        with t.autocast("cpu", cache_enabled=cache):
            y = x @ w + (x * 3) @ w
        y.sum().backward()
    return w.grad


def test_gradients_meet_in_the_cast():
    once, each = [], []
    for cache, found in ((True, once), (False, each)):
        w, x = eager.tensor(A, requires_grad=True), eager.tensor(A * 1.01)
        with eager.autocast("cpu", cache_enabled=cache):
            y = x @ w + (x * 3) @ w
        y.sum().backward()
        found.append(w.grad)
    assert once[0].dtype is F32
    as_bf16 = once[0].bfloat16().float()
    assert (once[0] == as_bf16).all() and not (each[0] == each[0].bfloat16().float()).all()


def second_backward(t: Any) -> Any:
    w, x = t.tensor(A, requires_grad=True), t.tensor(A)
    with t.autocast("cpu"):
        first, second = (x @ w).sum(), (w @ x).sum()
    first.backward()
    second.backward()
    return w.grad


def under_no_grad(t: Any) -> Any:
    w, x = t.tensor(A, requires_grad=True), t.tensor(A)
    with t.autocast("cpu"):
        with t.no_grad():
            assert not (x @ w).requires_grad
        (x @ w).sum().backward()
    return w.grad


def tied_and_penalized(t: Any) -> Any:
    w, x = t.tensor(A, requires_grad=True), t.tensor(A)
    with t.autocast("cpu"):
        loss = t.nn.functional.mse_loss(t.nn.functional.linear(x @ w, w), x)
    (g,) = t.autograd.grad(loss, w, create_graph=True)
    (loss + (g * g).sum()).backward()
    return w.grad


def checkpointed(t: Any, reentrant: bool) -> Any:
    w, x = t.tensor(A, requires_grad=True), t.tensor(A)
    with t.autocast("cpu"):
        y = t.utils.checkpoint.checkpoint(lambda w: (x @ w).tanh() @ w, w, use_reentrant=reentrant)
    y.float().sum().backward()
    return w.grad


def in_place(t: Any) -> Any:
    w, x = t.tensor(A, requires_grad=True), t.tensor(A)
    with t.autocast("cpu"):
        y = t.zeros(3, 3).addmm_(x, w)
        t.bmm(x[None], x[None], out=(out := t.empty(1, 3, 3)))
    assert y.dtype is out.dtype is t.float32
    (y * out).sum().backward()
    return w.grad


def custom(t: Any, cast: bool, decorated: bool = True) -> Any:
    seen = []

    class Product(t.autograd.Function):
        @staticmethod
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            ctx.save_for_backward(a, b)
            seen.append((str(a.dtype)[-8:], str((a @ b).dtype)[-8:], t.is_autocast_enabled("cpu")))
            return a @ b

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            a, b = ctx.saved_tensors
            seen.append((str(g.dtype)[-8:], t.is_autocast_enabled("cpu")))
            return g.to(a.dtype) @ b.mT.to(a.dtype), a.mT @ g.to(a.dtype)

    if decorated:
        options = {"device_type": "cpu", "cast_inputs": t.float16} if cast else {"device_type": "cpu"}
        Product.forward = staticmethod(t.amp.custom_fwd(**options)(Product.forward))
        Product.backward = staticmethod(t.amp.custom_bwd(Product.backward, device_type="cpu"))
    w, x = t.tensor(A, requires_grad=True), t.tensor(A)
    with t.autocast("cpu"):
        y = Product.apply(x, w)
    y.float().sum().backward()
    return seen, w.grad


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "weights": weights, "second backward": second_backward, "under no_grad": under_no_grad,
    "tied and penalized": tied_and_penalized, "checkpoint": lambda t: checkpointed(t, False),
    "reentrant checkpoint": lambda t: checkpointed(t, True), "in place": in_place,
    "custom": lambda t: custom(t, False), "custom, cast": lambda t: custom(t, True),
    "custom, as it is": lambda t: custom(t, False, decorated=False),
}  # fmt: skip


def leaves(found: Any) -> tuple[Any, np.ndarray]:
    seen, grad = found if isinstance(found, tuple) else ((), found)
    return seen, grad.detach().numpy()


@asked_of_torch("name", PROGRAMS)
def test_gradients_of_pytorch(name: str):
    torch = torch_or_skip()
    seen, expected = leaves(PROGRAMS[name](torch))
    found_seen, found = leaves(PROGRAMS[name](eager))
    assert found_seen == seen
    np.testing.assert_allclose(found, expected, rtol=2**-8, atol=1e-3)


def test_a_checkpoint_runs_again_as_it_ran():
    """Without the state of autocast the second run would save float32, and CheckpointError say so."""
    dtypes = []

    def f(w: Any) -> Any:
        y = w @ w
        dtypes.append(y.dtype)
        return y.tanh()

    w = eager.tensor(A, requires_grad=True)
    for reentrant in (False, True):
        with eager.autocast("cpu"):
            y = checkpoint(f, w, use_reentrant=reentrant)
        y.sum().backward()
    assert dtypes == [BF16] * 4


def test_a_written_weight_is_cast_anew():
    w = eager.nn.Parameter(eager.ones(2, 2))
    with eager.autocast("cpu"):
        first = w @ w
        with eager.no_grad():
            w.mul_(2)
        second = w @ w
        w.data = eager.zeros(2, 2)
        assert (first[0, 0].item(), second[0, 0].item(), (w @ w).sum().item()) == (2, 8, 0)


# --- ops of the user


@pytest.fixture
def declared():
    names = []

    def declare(name: str, policy: str) -> Any:
        impl = lambda xp, x, y: x * y + x
        op(name, "x y", impl=impl, rule=rules.pointwise, autocast=policy,
           vjp={"x": lambda F, g, y: g * (y + 1), "y": lambda F, g, x: g * x})  # fmt: skip
        names.append(name)
        return getattr(eager, name)

    yield declare
    for name in names:
        OPS.remove(name)


@pytest.mark.parametrize(("policy", "expected"), [("", F32), ("lower", BF16), ("float32", F32), ("promote", F32)])
def test_a_declared_op(declared: Any, policy: str, expected: Any):
    f = declared(f"amp_{policy or 'none'}", policy)
    x, y = eager.tensor(A, requires_grad=True), eager.tensor(A).bfloat16()
    for run in (lambda: f(x, y), graphc.compile(lambda: f(x, y))):
        x.grad = None
        with eager.autocast("cpu"):
            z = run()
        assert z.dtype is expected
        z.float().sum().backward()
        assert x.grad.dtype is F32
    assert f(x, y).dtype is F32


def test_a_policy_that_there_is_not(declared: Any):
    with pytest.raises(graphc.errors.RegistryError, match="autocast='bf16'; it may be one of"):
        declared("amp_wrong", "bf16")


# --- both modes


def model_loss(x: Any, w: Any, b: Any) -> Any:
    with eager.autocast("cpu"):
        h = eager.nn.functional.linear(x, w, b).relu()
        with eager.autocast("cpu", enabled=False):
            h = h.float() @ w
        return eager.nn.functional.mse_loss(h @ w, x)


def test_both_modes_agree():
    x, w = eager.tensor(A), eager.tensor(A, requires_grad=True)
    report = compare.check(model_loss, x, w, eager.zeros(3, requires_grad=True))
    assert report.ok, str(report)


@pytest.mark.on_numpy
def test_the_state_around_a_call_is_a_guard():
    x = eager.tensor(A)
    f = graphc.compile(lambda x: x @ x)
    for _ in range(3):
        assert f(x).dtype is F32
        with eager.autocast("cpu"):
            assert f(x).dtype is BF16
        with eager.autocast("cpu", F16):
            assert f(x).dtype is F16
    explained = str(graphc.explain(f))
    assert explained.startswith("<lambda>: 3 programs") and explained.count("autocast is in another state") == 2


@pytest.mark.on_numpy
def test_a_compiled_function_that_leaves_it_on():
    def f(x: Any) -> Any:
        eager.set_autocast_enabled("cpu", True)
        return x @ x

    g = graphc.compile(f)
    for _ in range(3):
        try:
            assert g(eager.tensor(A)).dtype is BF16 and eager.is_autocast_enabled("cpu")
        finally:
            eager.set_autocast_enabled("cpu", False)


@pytest.mark.on_numpy
def test_casts_of_a_trace_stay_in_it():
    w, x = eager.tensor(A, requires_grad=True), eager.tensor(A)
    with eager.autocast("cpu"):
        f = graphc.compile(lambda: (x @ w).sum())
        for _ in range(2):
            f().backward()
            (x @ w).sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), 4 * np.tile(A.sum(0)[:, None], 3), rtol=0.02)


# --- messages

SETTINGS: dict[str, Callable[[Any], Any]] = {
    "unknown": lambda t: t.autocast("foo"),
    "without autocast": lambda t: t.autocast("meta"),
    "no string": lambda t: t.autocast(3),
    "indexed": lambda t: t.autocast("cpu:0").device,
    "float64": lambda t: t.autocast("cpu", t.float64)._enabled,
    "cuda": lambda t: t.autocast("cuda")._enabled,
    "cuda, off": lambda t: t.autocast("cuda", enabled=False).fast_dtype,
    "mps": lambda t: t.autocast("mps", t.float64)._enabled,
    "no function": lambda t: t.autocast("cpu")(3),
    **{f"dtype of {kind}": lambda t, kind=kind: t.get_autocast_dtype(kind)
       for kind in ("cpu", "cuda", "xpu", "mps", "xla", "hpu", "ipu", "mtia", "maia", "privateuseone", "meta", "x")},
    **{f"is {kind} available": lambda t, kind=kind: t.amp.is_autocast_available(kind)
       for kind in ("cpu", "cuda", "mps", "meta", "foo")},
    "is enabled": lambda t: (t.is_autocast_enabled(), t.is_autocast_enabled("cpu")),
    "is enabled, no string": lambda t: t.is_autocast_enabled(3),
    "set enabled, no bool": lambda t: t.set_autocast_enabled("cpu", 3),
    "set enabled, one string": lambda t: t.set_autocast_enabled("cpu"),
    "set dtype, no dtype": lambda t: t.set_autocast_dtype("cpu", 3),
    "set dtype, unknown": lambda t: t.set_autocast_dtype("foo", t.half),
    "set cache, no bool": lambda t: t.set_autocast_cache_enabled(3),
    "cache": lambda t: t.is_autocast_cache_enabled(),
    "nesting": lambda t: (t.autocast_increment_nesting(), t.autocast_decrement_nesting()),
    "clear": lambda t: t.clear_autocast_cache(),
    "old cpu enabled": lambda t: (t.set_autocast_cpu_enabled(True), t.is_autocast_cpu_enabled(),
                                  t.set_autocast_cpu_enabled(False)),
    "old dtypes": lambda t: (t.get_autocast_cpu_dtype(), t.get_autocast_gpu_dtype(), t.get_autocast_xla_dtype(),
                             t.get_autocast_ipu_dtype(), t.set_autocast_gpu_dtype(t.half)),
    "cuda.amp.autocast": lambda t: t.cuda.amp.autocast()._enabled,
    "cpu.amp.autocast": lambda t: (t.cpu.amp.autocast()._enabled, t.cpu.amp.autocast(False, t.half).fast_dtype),
    "cuda.amp.GradScaler": lambda t: t.cuda.amp.GradScaler().is_enabled(),
    "cpu.amp.GradScaler": lambda t: t.cpu.amp.GradScaler(4.0).get_scale(),
    "GradScaler": lambda t: (t.GradScaler().get_scale(), t.GradScaler("cpu").get_scale()),
    "cuda.amp.custom_fwd": lambda t: callable(t.cuda.amp.custom_fwd(lambda ctx: ctx)),
    "cuda.amp.custom_bwd": lambda t: callable(t.cuda.amp.custom_bwd(lambda ctx: ctx)),
    "custom_fwd, no string": lambda t: t.amp.custom_fwd(device_type=3),
    "prioritize": lambda t: _mixed(t),
}  # fmt: skip


def _mixed(t: Any) -> Any:
    with t.autocast("cpu"):
        return t.cat([t.ones(1).half(), t.ones(1)])


def said(torch: Any, name: str) -> Any:
    """What a call returns or raises, and the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            result = str(SETTINGS[name](torch))
        except (RuntimeError, TypeError, ValueError) as error:
            result = f"{type(error).__name__}: {error}"
    return result, [(w.category, str(w.message).partition(" (Triggered")[0]) for w in caught]


@asked_of_torch("name", SETTINGS)
def test_messages(name: str):
    assert said(eager, name) == said(torch_or_skip(), name)
