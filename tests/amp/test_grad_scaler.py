"""`torch.amp.GradScaler`: steps and errors as PyTorch's, in both modes."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import eager
import graphc
from tests.oracle import asked_of_torch, torch_or_skip

Trajectory = list[tuple[float, int, list[float]]]
OVERFLOWS = (2, 5, 6)  # the steps whose gradients are not finite


def scaled(t: Any, optimizer: Any = None, **options: Any) -> Any:
    """(scaler, optimizer, parameter)"""
    p = t.nn.Parameter(t.tensor([1.0, -2.0]))
    made = t.optim.SGD([p], 0.1, momentum=0.9) if optimizer is None else optimizer([p])
    return t.amp.GradScaler("cpu", **{"init_scale": 2.0**10, "growth_interval": 2, **options}), made, p


def trajectory(t: Any, compiled: bool = False, unscale: bool = False, lazy: bool = True) -> Trajectory:
    """After each step: the scale, the steps since it changed, the parameters."""
    scaler, optimizer, p = scaled(t)
    if not lazy:
        scaler.scale(t.ones(()))

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = (p * x).sum()
        scaler.scale(loss).backward()
        if unscale:
            scaler.unscale_(optimizer)
            t.nn.utils.clip_grad_norm_([p], 1.0)
        scaler.step(optimizer)
        scaler.update()
        return loss

    run = graphc.compile(step) if compiled else step
    found: Trajectory = []
    for k in range(9):
        run(t.tensor([1.0, float("inf") if k in OVERFLOWS else 0.5]))
        found.append((scaler.get_scale(), scaler._get_growth_tracker(), p.tolist()))
    return found


# what PyTorch 2.13 gave: the scale, and the steps since it changed
RECORDED = [(1024, 1), (2048, 0), (1024, 0), (1024, 1), (2048, 0), (1024, 0), (512, 0), (512, 1), (1024, 0)]


@pytest.mark.parametrize("unscale", [False, True])
def test_trajectory(unscale: bool):
    found = trajectory(eager, unscale=unscale)
    assert [(scale, tracker) for scale, tracker, _ in found] == RECORDED
    torch = torch_or_skip()
    for (*mine, p), (*theirs, q) in zip(found, trajectory(torch, unscale=unscale), strict=True):
        assert mine == theirs
        np.testing.assert_allclose(p, q, rtol=1e-6)


@pytest.mark.parametrize(("unscale", "lazy"), [(False, True), (True, False)])
def test_both_modes(unscale: bool, lazy: bool):
    """A step that is skipped is another path of one function: the program is found by the data."""
    for mine, compiled in zip(
        trajectory(eager, unscale=unscale), trajectory(eager, True, unscale, lazy), strict=True
    ):  # fmt: skip
        assert compiled[:2] == mine[:2]
        np.testing.assert_allclose(compiled[2], mine[2], rtol=1e-6)


def test_a_skipped_step_of_a_model():
    """Its parameters lie in one array between calls: the trace of the other path computes with their values."""

    def run(compiled: bool) -> list[tuple[float, float]]:
        eager.manual_seed(0)
        model = eager.nn.Sequential(eager.nn.Linear(4, 8), eager.nn.ReLU(), eager.nn.Linear(8, 1))
        optimizer = eager.optim.SGD(model.parameters(), 0.1)
        scaler = eager.amp.GradScaler("cpu", init_scale=256.0, growth_interval=2)

        def step(x: Any) -> Any:
            optimizer.zero_grad()
            with eager.autocast("cpu"):
                loss = eager.nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            eager.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
            scaler.step(optimizer)
            scaler.update()
            return loss

        run, found = graphc.compile(step) if compiled else step, []
        for k in range(8):
            x = eager.randn(16, 4)
            found.append((run(x / 0 if k == 4 else x).item(), scaler.get_scale()))
        return found

    np.testing.assert_allclose(run(True), run(False), rtol=1e-4)


def test_a_skipped_step_changes_nothing():
    scaler, optimizer, p = scaled(eager)
    before = p.tolist()
    scaler.scale((p * float("nan")).sum()).backward()
    assert scaler.step(optimizer) is None and p.tolist() == before and not optimizer.state


def several(t: Any) -> Any:
    """Two optimizers, one of which overflows."""
    scaler, first, p = scaled(t)
    q = t.nn.Parameter(t.ones(1))
    second = t.optim.SGD([q], 0.1)
    losses = scaler.scale([(p * float("inf")).sum(), (q * 3).sum()])
    assert isinstance(losses, list)
    for loss in losses:
        loss.backward()
    for optimizer in (first, second):
        scaler.step(optimizer)
    scaler.update()
    return scaler.get_scale(), p.tolist(), q.tolist()


def amp_aware(t: Any) -> Any:
    """An optimizer that unscales by itself."""
    seen = []

    class Own(t.optim.Optimizer):
        _step_supports_amp_scaling = True

        def step(self, closure: Any = None) -> Any:
            seen.append((float(self.grad_scale), float(self.found_inf)))

    scaler, optimizer, p = scaled(t, lambda params: Own(params, {}))
    for factor in (1.0, float("inf")):
        optimizer.zero_grad()
        scaler.scale((p * factor).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
    return seen, hasattr(optimizer, "grad_scale"), scaler.state_dict()


def saved(t: Any) -> Any:
    scaler, optimizer, p = scaled(t)
    scaler.scale(p.sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    other = t.amp.GradScaler("cpu")
    other.load_state_dict(scaler.state_dict())
    again = pickle.loads(pickle.dumps(scaler))
    scaler.load_state_dict({**scaler.state_dict(), "scale": 8.0})
    return other.state_dict(), again.state_dict(), scaler.state_dict(), copy.deepcopy(other).get_growth_interval()


def set_scale(t: Any) -> Any:
    scaler, _, p = scaled(t)
    scaler.scale(p)
    found = []
    for scale in (4.0, t.tensor(2.0)):
        scaler.update(scale)
        found.append(scaler.get_scale())
    return found


def growing_to_infinity(t: Any) -> Any:
    scaler, optimizer, p = scaled(t, init_scale=2.0**127, growth_interval=1)
    scaler.scale(p.sum() * 0).backward()
    scaler.step(optimizer)
    scaler.update()
    return scaler.state_dict()


def disabled(t: Any) -> Any:
    scaler = t.amp.GradScaler("cpu", enabled=False)
    _, optimizer, p = scaled(t)
    loss = p.sum()
    assert scaler.scale(loss) is loss and not scaler.is_enabled()
    loss.backward()
    scaler.unscale_(optimizer)
    scaler.step(optimizer)
    scaler.update()
    return scaler.state_dict(), scaler.get_scale(), p.tolist()


def after(*calls: str) -> Callable[[Any], Any]:
    """A program that makes these calls, after `scale` and `backward` if the first is "scale"."""

    def program(t: Any) -> Any:
        scaler, optimizer, p = scaled(t)
        for call in calls:
            match call:
                case "scale":
                    scaler.scale(p.sum()).backward()
                case "no gradient":
                    scaler.scale(p.sum())
                case "half":
                    half = t.ones(2, dtype=t.float16, requires_grad=True)
                    optimizer = t.optim.SGD([half], 0.1)
                    scaler.scale(half.sum()).backward()
                case "update":
                    scaler.update()
                case "pickle":
                    pickle.dumps(scaler)
                case "closure":
                    scaler.step(optimizer, closure=lambda: None)
                case _:
                    getattr(scaler, call)(optimizer)
        return scaler.get_scale()

    return program


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "several": several, "amp aware": amp_aware, "saved": saved, "set": set_scale, "to infinity": growing_to_infinity,
    "disabled": disabled,
    **{", ".join(calls): after(*calls) for calls in (
        ("step",), ("unscale_",), ("update",), ("no gradient", "step"), ("scale", "unscale_", "unscale_"),
        ("scale", "step", "unscale_"), ("scale", "step", "step"), ("scale", "update"), ("half", "unscale_"),
        ("scale", "closure"), ("scale", "unscale_", "pickle"), ("scale", "step", "update", "pickle"),
    )},
    "growth": lambda t: t.amp.GradScaler("cpu", growth_factor=1.0),
    "backoff": lambda t: t.amp.GradScaler("cpu", backoff_factor=1.0),
    "scale of a number": lambda t: t.amp.GradScaler("cpu").scale(3),
    "empty state": lambda t: t.amp.GradScaler("cpu").load_state_dict({}),
    "new scale of a vector": lambda t: [s.update(t.ones(1)) for s in [scaled(t)[0]] if s.scale(t.ones(1)) is not None],
    "new scale of two": lambda t: after("scale")(t) and scaled(t)[0].update(t.ones(2)),
}  # fmt: skip


def said(torch: Any, name: str) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return repr(PROGRAMS[name](torch))
        except (RuntimeError, AssertionError, ValueError) as error:
            return f"{type(error).__name__}: {error}"


@asked_of_torch("name", PROGRAMS)
def test_as_pytorch(name: str):
    assert said(eager, name) == said(torch_or_skip(), name)
