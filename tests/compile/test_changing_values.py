"""What changes from call to call is traced twice, and not more often."""

from __future__ import annotations

import collections
import math
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import eager as torch
import graphc
from graphc.compiling import specializations, waiting

pytestmark = pytest.mark.on_numpy

X = torch.tensor([1.0, 2.0, 3.0])


def programs(fn):
    """How many programs a compiled function has, and why."""
    text = str(fn.explain())
    return text.count("because:"), text


def test_a_number_argument_becomes_an_input():
    step = graphc.compile(lambda x, lr=0.1: x * lr)
    for lr in (0.1, 0.05, 0.02, 0.01):
        assert torch.allclose(step(X, lr), X * lr)
    count, text = programs(step)
    assert count == 2
    assert "a number among the arguments varies" in text


def test_of_the_most_programs_that_are_kept_none_goes_and_then_the_one_unused_longest(monkeypatch):
    monkeypatch.setattr(specializations, "LARGEST", 3)
    traced = list[str]()

    def step(x, how):
        traced.append(how)
        return x * len(how)

    compiled = graphc.compile(step)
    for how in ("a", "bb", "ccc", "a", "bb", "ccc", "a"):
        compiled(X, how)
    assert sorted(traced) == ["a", "bb", "ccc"]
    compiled(X, "dddd")
    compiled(X, "a")
    compiled(X, "ccc")
    assert traced[3:] == ["dddd"]
    assert compiled(X, "bb").tolist() == (X * 2).tolist()
    assert traced[4:] == ["bb"]


def test_a_comparison_with_a_number_argument_has_one_program_a_side():
    f = graphc.compile(lambda x, cfg: x if cfg["lr"] > 0.5 else -x)
    for lr in (0.1, 0.2, 0.7, 0.3, 0.9, 0.4, 0.8):
        assert f(X, {"lr": lr}).tolist() == (X if lr > 0.5 else -X).tolist()
    count, text = programs(f)
    assert count == 3
    assert "of argument 'cfg.lr', what is decided at" in text


def test_a_number_that_python_takes_is_part_of_the_signature_again(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(waiting, "NUMBERS", 9)  # no call is to run eagerly
    f = graphc.compile(lambda x, n: [x * i for i in range(n)])
    for n in (1, 2, 3, 4, 2, 3, 4, 1):
        assert len(f(X, n)) == n
    assert programs(f)[0] == 5  # that of the second value is made twice


def test_generating_with_a_cache_takes_a_few_programs():
    cache = torch.zeros(2, 32, 4)

    def attend(x: Any, position: int) -> Any:
        cache[:, position : position + x.shape[1]] = x
        keys = cache[:, : position + x.shape[1]]
        return (x @ keys.mT).softmax(-1) @ keys

    compiled, generator = graphc.compile(attend), torch.Generator().manual_seed(0)
    for length, position in [(3, 0), *((1, k) for k in range(3, 12))]:
        x = torch.randn(2, length, 4, generator=generator)
        found, cached = compiled(x, position), cache.clone()
        torch.testing.assert_close(found, attend(x, position))
        torch.testing.assert_close(cached, cache)
    count, text = programs(compiled)
    assert count == 4
    assert "this program is for 4 alone" in text


def test_an_exception_for_some_value_does_not_change_that():
    def fn(x, k):
        if k == 3:
            raise ValueError("3")
        return x * k

    f = graphc.compile(fn)
    for k in (1, 2, 4, 5):
        f(X, k)
    with pytest.raises(ValueError, match="3"):
        f(X, 3)
    before = programs(f)[0]
    for k in (6, 7, 8):
        assert f(X, k).tolist() == (X * k).tolist()
    assert programs(f)[0] == before


@pytest.mark.parametrize(
    "make",
    [tuple, list, lambda hs: dict(enumerate(hs)), lambda hs: [tuple(hs), {"n": 0}]],
    ids="tuple list dict nest".split(),
)
def test_states_in_containers_are_inputs(make):
    state = types.SimpleNamespace(h=make([torch.zeros(3), torch.ones(3)]))

    @graphc.compile
    def f(x):
        h = state.h
        a, b = h[0] if isinstance(h[0], tuple) else (h[0], h[1])
        state.h = make([a + x, b * 2])
        return a + b

    results = [f(X).tolist() for _ in range(5)]
    assert results[4] == [4.0 + 16, 8.0 + 16, 12.0 + 16]
    assert programs(f)[0] <= 3


def test_a_full_window_is_an_input():
    window = collections.deque(maxlen=2)

    @graphc.compile
    def f(x):
        window.append(x)
        return sum(window)

    for i in range(8):
        f(X + i)
    assert programs(f)[0] == 3  # two while it fills, and that of full ones


def test_ndarrays_are_told_by_content():
    f = graphc.compile(lambda x, a: x * float(a.sum()))
    a = np.ones(3)
    assert f(X, a).tolist() == f(X, a.copy()).tolist() == [3.0, 6.0, 9.0]
    assert programs(f)[0] == 1
    a[0] = 2
    assert f(X, a).tolist() == [4.0, 8.0, 12.0]


def test_guards_of_the_library_have_names():
    w = torch.ones(3, requires_grad=True)
    optimizer = torch.optim.SGD([w], lr=0.1, momentum=0.9, dampening=0.5)

    @graphc.compile
    def step(x):
        optimizer.zero_grad()
        (w * x).sum().backward()
        optimizer.step()

    step(X)
    step(X)
    text = str(step.explain())
    assert "`w` is None changed" in text or "momentum_buffer changed" in text
    assert "a guarded value" not in text


def test_nan_among_the_arguments_is_one_value():
    runs = []
    f = graphc.compile(lambda x, k: runs.append(k) or (x * k if k == k else x - 1))
    for _ in range(3):
        assert f(torch.ones(2), float("nan")).tolist() == [0, 0]
    assert len(runs) == 1
    assert f(torch.ones(2), 2.0).tolist() == [2, 2]
    for imaginary in (1, 1, 2):
        f(torch.ones(2), complex(float("nan"), imaginary))
    assert len(runs) == 4


def test_reasons_name_what_is_told_apart_by_identity():
    f = graphc.compile(lambda x, k: x * 2)
    for k in (lambda: 0, lambda: 1, torch.nn.Linear(1, 1), torch.nn.Linear(1, 1), [1.5], [1.5, 2.5]):
        f(torch.ones(1), k)
    text = str(f.explain())
    assert "an argument of type function is another one" in text
    assert "an argument of type Linear is another one" in text
    assert "an argument changed from 0 to 1" not in text


@pytest.mark.parametrize("scheduler", [
    lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 50),
    lambda o: torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(o, 50),
    lambda o: torch.optim.lr_scheduler.OneCycleLR(o, 0.5, total_steps=50),
], ids=["cosine", "warm restarts", "one cycle"])  # fmt: skip
def test_schedules_by_cosines_need_no_graph_for_each_step(scheduler: Callable[[Any], Any]):
    seen: list[list[Any]] = []
    for wrap in (lambda f: f, graphc.compile):
        w = torch.ones(2, requires_grad=True)
        optimizer = torch.optim.SGD([w], lr=0.25, momentum=0.5)
        schedule = scheduler(optimizer)

        def step(w: Any = w, optimizer: Any = optimizer, schedule: Any = schedule) -> None:
            optimizer.zero_grad()
            (w * w).sum().backward()
            optimizer.step()
            schedule.step()

        run, rates = wrap(step), []
        for _ in range(20):
            run()
            rates.append((schedule.get_last_lr()[0], w.tolist()))
        seen.append(rates)
    count, why = programs(run)
    assert count <= 5, why
    assert "cos" not in run.source  # the next rate is Python's own affair
    for (rate, weights), (rate2, weights2) in zip(*seen, strict=True):
        assert rate2 == pytest.approx(rate, rel=1e-12) and weights2 == pytest.approx(weights, abs=1e-6)


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.AdamW])
def test_a_rate_that_is_a_tensor_is_an_input_and_no_constant(kind: Any):
    seen: list[list[float]] = []
    for wrap in (lambda f: f, graphc.compile):
        w = torch.ones(2, requires_grad=True)
        optimizer = kind([w], lr=torch.tensor([0.25]))
        schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)

        def step(w: Any = w, optimizer: Any = optimizer, schedule: Any = schedule) -> None:
            optimizer.zero_grad()
            (w * w).sum().backward()
            optimizer.step()
            schedule.step()

        run = wrap(step)
        for _ in range(5):
            run()
        seen.append([*w.tolist(), *optimizer.param_groups[0]["lr"].tolist()])
    count, why = programs(run)
    assert count <= 2, why  # the first step makes state
    assert seen[1] == pytest.approx(seen[0], rel=1e-6)


def _update(group, lr):
    group.update(lr=lr)


def _change_two(group, lr):
    group["lr"], group["momentum"] = lr, 1 - lr


@pytest.mark.parametrize("change", [lambda group, lr: group.__setitem__("lr", lr), _update, _change_two])
@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.RMSprop])
def test_rates_that_a_step_sets_are_inputs(kind, change):
    def made(compiled):
        torch.manual_seed(0)
        model = torch.nn.Linear(2, 1)
        optimizer, state = kind(model.parameters(), lr=1.0, momentum=0.5), {"count": 0}

        def step(x):
            state["count"] += 1
            for group in optimizer.param_groups:
                change(group, 0.01 / math.sqrt(state["count"]))
            loss = (model(x) ** 2).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss

        return (graphc.compile(step) if compiled else step), optimizer

    (eager_step, mine), (step, theirs) = made(False), made(True)
    for _ in range(6):
        assert torch.allclose(step(torch.ones(3, 2)), eager_step(torch.ones(3, 2)))
        (a,), (b,) = mine.param_groups, theirs.param_groups
        assert [b[name] for name in ("lr", "momentum")] == [a[name] for name in ("lr", "momentum")]
        assert all(torch.allclose(v, w) for v, w in zip(a["params"], b["params"], strict=True))
    assert programs(step)[0] <= 2
    for optimizer in (mine, theirs):
        optimizer.param_groups[0]["dampening" if kind is torch.optim.SGD else "alpha"] = 0.25
    assert torch.allclose(step(torch.ones(3, 2)), eager_step(torch.ones(3, 2)))  # what has not changed is a guard


def _hooked(w: torch.Tensor) -> None:
    w.register_hook(lambda g: g * 10)


def _without_gradient(w: torch.Tensor) -> None:
    w.grad = None


def _transposed(w: torch.Tensor) -> None:
    w.data = w.data.t().contiguous().t()


def _negative(w: torch.Tensor) -> None:
    w.data.neg_()


def _wider(w: torch.Tensor) -> None:
    w.data, w.grad = w.data.double(), None


def _larger(w: torch.Tensor) -> None:
    w.data, w.grad = torch.full((3, 3), 2.0), None


@pytest.mark.parametrize("change", [
    _hooked, _without_gradient, _transposed, _negative, _wider, _larger, lambda w: w.requires_grad_(False),
])  # fmt: skip
@pytest.mark.parametrize("how", ["changed", "another"])
def test_a_tensor_whose_place_is_an_input_is_asked_what_any_is(change: Callable[[torch.Tensor], Any], how: str):
    """That another tensor is there is no new program; what the program depends on is."""

    def result(compiled: bool) -> list[Any]:
        model = types.SimpleNamespace(w=torch.ones(2, 2, requires_grad=True))

        def step(x):
            w = model.w
            y = (w * x[: len(w)]).reshape(-1) * (1 if w.sum().item() > 0 else 2)
            loss = (y * y).sum()
            if loss.requires_grad:
                loss.backward()
            return loss, torch.tensor(float(w.is_contiguous()))

        step, found = graphc.compile(step) if compiled else step, list[Any]()
        x = torch.arange(1.0, 4.0)[:, None]
        for k in range(4):
            model.w = torch.full((2, 2), k + 1.0, requires_grad=True)
            found += [*step(x), *step(x), torch.clone(model.w.grad)]
        if how == "another":
            model.w = torch.full((2, 2), 7.0, requires_grad=True)
        change(model.w)
        found += [*step(x), *step(x), *([] if model.w.grad is None else [model.w.grad])]
        return [(t.dtype, t.tolist()) for t in found]

    assert result(compiled=True) == result(compiled=False)


def test_what_the_first_call_has_begun_is_read_anew_from_the_second_on():
    """Features that a hook keeps in a dict, and a tensor in an attribute that was None: two programs, not three."""
    kept: dict[str, Any] = {}
    layer = torch.nn.Linear(3, 2)
    layer.register_forward_hook(lambda module, inputs, output: kept.__setitem__("features", output.detach()))
    state = types.SimpleNamespace(last=None)

    def step(x: Any) -> Any:
        loss = (layer(x) - kept["features"].mean()).square().sum()
        state.last = loss.detach()
        return loss

    compiled = graphc.compile(step)
    for k in range(5):
        found, features, last = compiled(X * k), kept["features"], state.last
        torch.testing.assert_close(found, step(X * k))
        torch.testing.assert_close(features, kept["features"])
        torch.testing.assert_close(last, state.last)
    count, text = programs(compiled)
    assert count == 2, text
