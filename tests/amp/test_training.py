"""Models that are trained in 16 bits, in both modes: by autocast, and with parameters of 16 bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import eager
import graphc
from tests.oracle import torch_or_skip

STEPS = 8


class Task(NamedTuple):
    """What is trained: model(torch), inputs(rng), loss(torch, output, input); what PyTorch's last loss was, by way."""

    model: Callable[[Any], Any]
    inputs: Callable[[Any], Any]
    loss: Callable[[Any, Any, Any], Any]
    autocast: float
    pure: float


def mlp(t: Any) -> Any:
    return t.nn.Sequential(t.nn.Linear(4, 16), t.nn.Tanh(), t.nn.Linear(16, 1))


def cnn(t: Any) -> Any:
    nn = t.nn
    return nn.Sequential(
        nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 2)
    )


def transformer(t: Any) -> Any:
    nn = t.nn

    class Transformer(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.before, self.after = nn.Embedding(9, 8), nn.LayerNorm(8), nn.LayerNorm(8)
            self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
            self.network, self.head = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8)), nn.Linear(8, 9)

        def forward(self, x: Any) -> Any:
            h = self.embedding(x)
            y = self.before(h)
            h = h + self.attention(y, y, y)[0]
            return self.head(h + self.network(self.after(h)))

    return Transformer()


def recurrent(t: Any) -> Any:
    nn = t.nn

    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn, self.head = nn.RNN(4, 6), nn.Linear(6, 1)

        def forward(self, x: Any) -> Any:
            return self.head(self.rnn(x.reshape(20, -1, 4))[0][-1])

    return Recurrent()


TASKS = {
    "mlp": Task(mlp, lambda rng: rng.normal(size=(32, 4)),
                lambda t, y, x: t.nn.functional.mse_loss(y, x.sum(1, keepdim=True)), 1.487, 1.492),
    "cnn": Task(cnn, lambda rng: rng.normal(size=(16, 1, 6, 6)),
                lambda t, y, x: t.nn.functional.cross_entropy(y, (x.float().sum((1, 2, 3)) > 0).long()), 0.458, 0.455),
    "transformer": Task(transformer, lambda rng: rng.integers(0, 9, size=(8, 6)),
                        lambda t, y, x: t.nn.functional.cross_entropy(y[:, :-1].reshape(-1, 9), x[:, 1:].reshape(-1)),
                        2.230, 2.219),
    "rnn": Task(recurrent, lambda rng: rng.normal(size=(20 * 8, 4)),
                lambda t, y, x: t.nn.functional.mse_loss(y, x[-8:].sum(1, keepdim=True)), 0.792, 0.801),
}  # fmt: skip


def losses(t: Any, name: str, autocast: bool, compiled: bool = False) -> list[float]:
    """The losses of some steps."""
    task, rng = TASKS[name], np.random.default_rng(0)
    t.manual_seed(0)
    model = task.model(t)
    if not autocast:
        model.bfloat16()
    optimizer = t.optim.SGD(model.parameters(), 0.05, momentum=0.9)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        with t.autocast("cpu", enabled=autocast):
            loss = task.loss(t, model(x), x)
        loss.backward()
        optimizer.step()
        return loss

    run, found = graphc.compile(step) if compiled else step, []
    for _ in range(STEPS):
        x = t.tensor(task.inputs(rng))
        if x.is_floating_point():
            x = x.float() if autocast else x.bfloat16()
        found.append(float(run(x).detach()))
    dtypes = {p.dtype for p in model.parameters()} | {p.grad.dtype for p in model.parameters()}
    assert dtypes == {t.float32 if autocast else t.bfloat16}
    return found


@pytest.mark.parametrize("autocast", [True, pytest.param(False, marks=pytest.mark.deep)])
@pytest.mark.parametrize("name", TASKS)
def test_training(name: str, autocast: bool):
    found = losses(eager, name, autocast)
    task = TASKS[name]
    bound = dict(rtol=0.02, atol=0.02) if autocast else dict(rtol=0.03, atol=0.05)
    np.testing.assert_allclose(found[-1], task.autocast if autocast else task.pure, **bound)
    np.testing.assert_allclose(losses(eager, name, autocast, compiled=True), found, **bound)


@pytest.mark.parametrize("autocast", [True, False])
@pytest.mark.parametrize("name", TASKS)
def test_training_as_pytorch(name: str, autocast: bool):
    torch = torch_or_skip()
    expected = losses(torch, name, autocast)
    bound = dict(rtol=0.02, atol=0.02) if autocast else dict(rtol=0.03, atol=0.05)
    np.testing.assert_allclose(losses(eager, name, autocast), expected, **bound)


def guarded_losses(compiled: bool) -> list[float]:
    """Steps that are skipped where gradients are not finite, decided by Python."""
    nn = eager.nn
    eager.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    optimizer = eager.optim.SGD(model.parameters(), 0.1)

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        with eager.autocast("cpu"):
            loss = nn.functional.mse_loss(model(x), x.sum(1, keepdim=True))
        loss.backward()
        if eager.isfinite(nn.utils.clip_grad_norm_(model.parameters(), 5.0)):
            optimizer.step()
        return loss

    run = graphc.compile(step) if compiled else step
    return [run(x / 0 if k == 4 else x).item() for k, x in enumerate(eager.randn(7, 16, 4))]


def test_a_branch_on_gradients():
    """Its parameters lie in one array between calls: the trace of the other path computes with their values."""
    np.testing.assert_allclose(guarded_losses(True), guarded_losses(False), rtol=1e-4)
