"""Programs that mean the same in every mode are said to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import compare
import eager as torch
import graphc
from compare.judging.tolerance import Verdict
from compare.selftest.planting import entry
from eager.nn import functional as nnf
from graphc.autodiff.reverse import STRUCTURED
from graphc.ir.structure import SWITCH
from graphc.lowering.overrides import OVERRIDES
from tests.depth import one_in


def tensor(rng: np.random.Generator, *shape: int, grad: bool = True, dtype: Any = np.float32) -> Any:
    t = torch.from_numpy(rng.standard_normal(shape).astype(dtype))
    return t.requires_grad_() if grad else t


def mlp_loss(w1: Any, b1: Any, w2: Any, x: Any, y: Any) -> Any:
    return ((torch.tanh(x @ w1 + b1) @ w2 - y) ** 2).mean()


def _mlp(rng: np.random.Generator) -> tuple[Any, ...]:
    shapes = ((3, 8), (8,), (8, 2))
    return mlp_loss, *(tensor(rng, *s) for s in shapes), tensor(rng, 5, 3, grad=False), tensor(rng, 5, 2, grad=False)


def _convolution(rng: np.random.Generator) -> tuple[Any, ...]:
    def fn(x: Any, w: Any) -> Any:
        return nnf.max_pool2d(torch.relu(nnf.conv2d(x, w, padding=1)), 2).sum((2, 3))

    return fn, tensor(rng, 2, 3, 6, 6), tensor(rng, 4, 3, 3, 3)


def _cross_entropy(rng: np.random.Generator) -> tuple[Any, ...]:
    def fn(logits: Any, labels: Any) -> Any:
        return -torch.log_softmax(logits, 1)[torch.arange(4), labels].mean()

    return fn, tensor(rng, 4, 5), torch.tensor([0, 4, 2, 2])


def _where_clamp(rng: np.random.Generator) -> tuple[Any, ...]:
    def fn(x: Any, y: Any) -> Any:
        return torch.where(x > y, x.clamp(-0.5, 0.5), torch.exp(y))

    return fn, tensor(rng, 4, 5), tensor(rng, 5)


def _reductions(rng: np.random.Generator) -> tuple[Any, ...]:
    def fn(x: Any) -> Any:
        return (
            x.sum(0),
            x.mean(),
            x.prod(1),
            x.amax(0),
            x.logsumexp(1),
            x.cumsum(0),
            (x - x.mean(0, keepdim=True)).norm(),
        )

    return fn, tensor(rng, 4, 6)


def _integers(rng: np.random.Generator) -> tuple[Any, ...]:
    def fn(x: Any) -> Any:
        return x.argmax(1), x > 0, (x * 10).to(torch.int32), x.isnan().any()

    return fn, tensor(rng, 4, 6, grad=False)


def _nested(rng: np.random.Generator) -> tuple[Any, ...]:
    def fn(batch: Any, scale: float) -> Any:
        x, rest = batch
        return {"sum": x + rest["y"], "parts": [x * scale, (rest["y"],)], "label": "two", "number": 3}

    return fn, (tensor(rng, 3), {"y": tensor(rng, 3)}), 2.5


def _closure(rng: np.random.Generator) -> tuple[Any, ...]:
    weight, shift = tensor(rng, 3, 2), tensor(rng, 2)
    return lambda x: torch.sigmoid(x @ weight + shift), tensor(rng, 4, 3, grad=False)


def _module(rng: np.random.Generator) -> tuple[Any, ...]:
    model = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.Tanh(), torch.nn.Linear(5, 1))
    return model, tensor(rng, 4, 3)


def _double(rng: np.random.Generator) -> tuple[Any, ...]:
    return lambda x: torch.exp(x).sum() + torch.sin(x).mean(), tensor(rng, 7, dtype=np.float64)


def _reassociated(rng: np.random.Generator) -> tuple[Any, ...]:
    return lambda a, b, v: (a @ b) @ v, tensor(rng, 60, 50), tensor(rng, 50, 60), tensor(rng, 60)


def _same_tensor_twice(rng: np.random.Generator) -> tuple[Any, ...]:
    x = tensor(rng, 4)
    return lambda a, b: a * torch.tanh(b), x, x


def _detached(rng: np.random.Generator) -> tuple[Any, ...]:
    def fn(x: Any) -> Any:
        with torch.no_grad():
            scale = x.exp()
        return x * scale + x.detach() * x

    return fn, tensor(rng, 5)


def _random(rng: np.random.Generator) -> tuple[Any, ...]:
    return lambda x: x * torch.rand(5) + torch.randn(5), tensor(rng, 5)


def _empty(rng: np.random.Generator) -> tuple[Any, ...]:
    return lambda x: (torch.exp(x) * 2, x.sum()), tensor(rng, 0, 3)


PROGRAMS: dict[str, Callable[[np.random.Generator], tuple[Any, ...]]] = {
    "mlp loss": _mlp, "convolution": _convolution, "cross entropy": _cross_entropy, "where and clamp": _where_clamp,
    "reductions": _reductions, "integers and bools": _integers, "nested arguments and results": _nested,
    "closure": _closure, "module": _module, "float64": _double, "reassociated product": _reassociated,
    "one tensor twice": _same_tensor_twice, "no_grad and detach": _detached, "random numbers": _random, "empty": _empty,
}  # fmt: skip


@pytest.mark.parametrize("program", one_in(2, PROGRAMS))
def test_modes_agree(program: str, rng: np.random.Generator):
    torch.manual_seed(0)
    fn, *args = PROGRAMS[program](rng)
    report = compare.check(fn, *args)
    assert report.ok, str(report)
    assert {"eager", "graph", "compiled", "jax.grad", "finite differences"} <= set(report.modes)


def test_gradients_of_captured_parameters_are_compared(rng: np.random.Generator):
    fn, *args = _closure(rng)
    compared = {f.what for f in compare.check(fn, *args, modes=["compiled"]).findings}
    assert compared == {"result", "gradient of weight", "gradient of shift"}


def test_independent_modes_have_an_opinion(rng: np.random.Generator):
    fn, *args = _mlp(rng)
    report = compare.check(fn, *args)
    for mode in ("jax.grad", "finite differences"):
        assert Verdict.IDENTICAL <= report.verdict_of(mode) <= Verdict.WITHIN_ROUNDING


def _writes(x: Any) -> Any:
    x.add_(1.0)
    return x * 2


def test_changes_to_arguments_are_compared_and_undone():
    x = torch.tensor([1.0, 2.0])
    report = compare.check(_writes, x, modes=["graph", "passes", "compiled"])
    assert report.ok, str(report)
    assert "x after the call" in {f.what for f in report.findings}
    assert x.tolist() == [1.0, 2.0]


def test_backward_inside_the_function_is_compared_and_undone(rng: np.random.Generator):
    weight = tensor(rng, 3)

    def step(x: Any) -> Any:
        loss = (x * weight).sum()
        loss.backward()
        return loss.detach()

    report = compare.check(step, tensor(rng, 3, grad=False))
    assert report.ok, str(report)
    assert "weight.grad after the call" in {f.what for f in report.findings}
    assert weight.grad is None


def test_the_generator_is_left_alone():
    torch.manual_seed(3)
    first = torch.rand(2).tolist()
    torch.manual_seed(3)
    compare.check(lambda: torch.rand(2))
    assert torch.rand(2).tolist() == first


@pytest.mark.parametrize(
    ("fn", "args"),
    [
        (lambda x: x + torch.zeros(4), ([1.0, 2.0, 3.0],)),
        (lambda a, b: a // b, ([1, 2], [1, 0])),
        (lambda x, i: x[i], ([1.0, 2.0], [0, 5])),
    ],
    ids=["shapes", "zero divisor", "index"],
)
def test_the_same_exception_in_every_mode_agrees(fn: Any, args: Any):
    report = compare.check(fn, *map(torch.tensor, args))
    assert report.ok, str(report)
    assert "exception" in {f.what for f in report.findings if f.mode == "compiled"}


def test_what_cannot_be_captured_is_unsupported_and_says_why():
    report = compare.check(lambda x: x * bool(x.data_ptr()), torch.tensor([1.0]))
    assert report.verdict is Verdict.UNSUPPORTED
    assert not report.ok
    assert "Remedy" in report.bugs[0].detail


def test_a_kink_is_a_convention_not_a_bug():
    x = torch.zeros(3, requires_grad=True)
    report = compare.check(lambda x: x.abs() + torch.maximum(x, -x), x)
    assert report.verdict is Verdict.CONVENTION
    assert report.ok
    assert "abs" in str(report)


def test_nan_equals_nan():
    x = torch.tensor([1.0, float("nan"), -1.0, float("inf")], requires_grad=True)
    report = compare.check(lambda x: torch.log(x) + torch.sqrt(x), x, modes=["graph", "passes", "compiled"])
    assert report.ok, str(report)


def test_unknown_mode_is_refused():
    with pytest.raises(ValueError, match="unknown mode 'gpu'; registered are eager, reference, graph"):
        compare.check(lambda x: x, torch.zeros(1), modes=["gpu"])


def test_decisions_of_python_on_values_and_numbers_in_results():
    def f(x):
        y = torch.sin(x) if x.sum() > 0.5 else torch.cos(x)
        return {"y": y, "n": y.sum().item(), "k": int(x.argmax()), "fixed": 3, "nest": (1.5, [y * 2])}

    for start in ([1.0, 2.0], [-1.0, -2.0]):
        report = compare.check(f, torch.tensor(start, requires_grad=True))
        assert report.ok and {f.what for f in report.findings} >= {"result.y", "result.n", "result.nest.1.0"}
        assert report.verdict_of("graph") is Verdict.IDENTICAL


def test_a_wrong_number_is_a_bug():
    calls = iter(range(100))

    def f(x):
        return float(x.sum()) + next(calls)  # another number each time

    report = compare.check(f, torch.tensor([1.0, 2.0]), modes=["eager"])
    assert [f.what for f in report.findings if f.verdict is Verdict.BUG] == ["second call: result"]


def test_a_decision_within_rounding_of_its_threshold_is_no_bug(monkeypatch):
    x = torch.full((10,), 0.1)

    def total(x):
        return (x * 3).exp().sum()

    def f(x, threshold):
        return torch.sin(x) if total(x) > threshold else -torch.sin(x)

    at = total(x)
    report = compare.check(f, x, at, modes=["compiled"])
    assert report.verdict is Verdict.IDENTICAL
    monkeypatch.setitem(OVERRIDES, "exp", lambda x: jnp.exp(x) * np.float32(1 + 2**-22))  # one ULP or two more
    report = compare.check(f, x, at, modes=["compiled"])
    assert report.ok and ["another path" in f.detail for f in report.findings] == [True]
    monkeypatch.setitem(OVERRIDES, "exp", lambda x: jnp.exp(x) * np.float32(1.01))
    report = compare.check(f, x, at * 1.005, modes=["compiled"])  # no rounding leads there
    assert report.verdict is Verdict.BUG


def test_a_result_that_was_there_before_the_call_is_judged_without_a_graph():
    kept = {}

    def f(x):
        kept["y"] = torch.exp(x).sum()
        return kept

    report = compare.check(f, torch.linspace(-2.0, 2.0, 50), modes=["graph", "compiled"])
    assert report.ok and report.verdict_of("graph") is Verdict.NO_OPINION


def test_zeros_for_an_operand_that_only_the_other_branch_reads_are_a_convention():
    def f(i, x, y):
        return graphc.switch(i, (lambda a, b: b * 2, lambda a, b: a * b), x, y)

    given = torch.tensor(0), torch.ones(3).requires_grad_(), torch.ones(3).requires_grad_()
    report = compare.check(f, *given, modes=["compiled"])
    assert report.verdict is Verdict.CONVENTION
    assert compare.check(f, torch.tensor(1), *given[1:], modes=["compiled"]).verdict is Verdict.IDENTICAL
    with entry(STRUCTURED, SWITCH, lambda builder, node, cotangents, wanted: []):
        assert compare.check(f, *given, modes=["compiled"]).verdict is Verdict.BUG  # one that is read has none
