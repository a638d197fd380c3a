"""Models, data and optimizers that are trained on one process and on several."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import eager as torch
from eager import nn


class Recurrent(nn.Module):
    """Words, a GRU over them, and three classes."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(10, 4)
        self.gru = nn.GRU(4, 5, batch_first=True)
        self.classes = nn.Linear(5, 3)

    def forward(self, x: Any) -> Any:
        return self.classes(self.gru(self.embedding(x))[0][:, -1])


class Branching(nn.Module):
    """Uses one of two layers, and a third never."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.never = nn.Linear(6, 3), nn.Linear(6, 3), nn.Linear(6, 3)

    def forward(self, x: Any, which: bool = True) -> Any:
        return (self.first if which else self.second)(x)


def training_step(model: Any, optimizer: Any, loss_of: Callable[[Any, Any], Any], norm: float | None = None) -> Any:
    """f(x, y): a step of training, which returns the loss; gradients are clipped to `norm`."""

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = loss_of(model(x), y)
        loss.backward()
        if norm is not None:
            nn.utils.clip_grad_norm_(model.parameters(), norm)
        optimizer.step()
        return loss

    return step


class Setup(NamedTuple):
    """A model, samples for it, and an optimizer of its parameters."""

    model: Callable[[], Any]
    data: Callable[[int], Any]
    optimizer: Callable[[Any], Any]


def _adam(parameters: Any) -> Any:
    return torch.optim.Adam(parameters, lr=0.05)


def _sgd(parameters: Any) -> Any:  # a bias before a normalization has gradients of noise, which Adam would enlarge
    return torch.optim.SGD(parameters, lr=0.1, momentum=0.9)


SETUPS = {
    "mlp": Setup(
        lambda: nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3)), lambda n: torch.randn(n, 6), _adam
    ),
    "cnn": Setup(
        lambda: nn.Sequential(
            nn.Conv2d(1, 3, 3), nn.BatchNorm2d(3), nn.ReLU(), nn.Flatten(), nn.Linear(48, 3)
        ),
        lambda n: torch.randn(n, 1, 6, 6), _sgd,
    ),
    "recurrent": Setup(Recurrent, lambda n: torch.randint(0, 10, (n, 5)), _adam),
}  # fmt: skip
