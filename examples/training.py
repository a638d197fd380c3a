"""One training program in three modes, in lockstep on the same batches: losses, times, accuracy and gradients."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_digits

import eager as torch
import graphc
from eager import nn
from eager.nn import functional as F

EAGER, LOSS, STEP = "eager", "compiled loss", "compiled step"
MODES = (EAGER, LOSS, STEP)
BATCH, TRAINING, LEARNING_RATE = 64, 1437, 3e-3


class Digits(NamedTuple):
    """Images as f32[n, 64] in [0, 1], labels as i64[n]."""

    train_x: np.ndarray
    train_y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray


def digits(seed: int = 0) -> Digits:
    """scikit-learn's 1,797 handwritten digits of 8 by 8 pixels, shuffled and split 1,437 to 360."""
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(images))
    x, y = (images[order] / 16).astype(np.float32), labels[order].astype(np.int64)
    return Digits(x[:TRAINING], y[:TRAINING], x[TRAINING:], y[TRAINING:])


def batches(data: Digits, epochs: int, seed: int = 1) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Batches of one size, in an order that depends on the seed only; what does not fill a batch is left out."""
    rng = np.random.default_rng(seed)
    for _ in range(epochs):
        order = rng.permutation(TRAINING)
        for start in range(0, TRAINING - BATCH + 1, BATCH):
            rows = order[start : start + BATCH]
            yield data.train_x[rows], data.train_y[rows]


def mlp() -> nn.Module:
    """64-128-64-10."""
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))


def cnn() -> nn.Module:
    """Two 3 by 3 convolutions of 16 and 32 channels, each pooled, and two linear layers."""
    return nn.Sequential(
        nn.Unflatten(1, (1, 8, 8)),
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10),
    )  # fmt: skip


MODELS: dict[str, Callable[[], nn.Module]] = {"MLP": mlp, "CNN": cnn}


class Trainer:
    """A model and its optimizer, made from `seed`, and the step that trains them in one of `MODES`.

    compiled: the compiled function, None in eager mode. losses and seconds: one of each per step.
    """

    def __init__(self, build: Callable[[], nn.Module], mode: str, seed: int = 0):
        torch.manual_seed(seed)
        model = self.model = build()
        optimizer = self.optimizer = torch.optim.Adam(model.parameters(), lr=LEARNING_RATE)
        self.mode = mode
        self.compiled: Any = None
        self.losses: list[float] = []
        self.seconds: list[float] = []

        def loss_of(x, y):
            return F.cross_entropy(model(x), y)

        if mode == LOSS:
            loss_of = self.compiled = graphc.compile(loss_of)

        def step(x, y):
            optimizer.zero_grad()
            loss = loss_of(x, y)
            loss.backward()
            optimizer.step()
            return loss

        if mode == STEP:
            step = self.compiled = graphc.compile(step)
        self.step = step

    def train(self, x: np.ndarray, y: np.ndarray) -> None:
        """One timed step. Reading the loss waits for the program."""
        images, labels = torch.from_numpy(x), torch.from_numpy(y)
        start = time.perf_counter()
        loss = self.step(images, labels).item()
        self.seconds.append(time.perf_counter() - start)
        self.losses.append(loss)

    def accuracy(self, data: Digits) -> float:
        """The share of test images that are recognized."""
        with torch.no_grad():
            predicted = self.model(torch.from_numpy(data.test_x)).argmax(1)
        return float((predicted.numpy() == data.test_y).mean())

    def parameters(self) -> list[np.ndarray]:
        """Copies of the parameters' values."""
        return [p.detach().numpy().copy() for p in self.model.parameters()]

    def gradients(self) -> dict[str, np.ndarray]:
        """Copies of the parameters' gradients, by name."""
        return {name: p.grad.numpy().copy() for name, p in self.model.named_parameters()}

    def gradients_at(self, parameters: list[np.ndarray], x: np.ndarray, y: np.ndarray) -> dict[str, np.ndarray]:
        """The gradients that the training step computes with these parameters; afterwards all is as before."""
        remembered = [t for p in self.model.parameters() for t in self.optimizer.state[p].values()]
        tensors = [*self.model.parameters(), *remembered]
        before = [t.detach().numpy().copy() for t in tensors]
        self._write(list(self.model.parameters()), parameters)
        self.step(torch.from_numpy(x), torch.from_numpy(y))
        found = self.gradients()
        self._write(tensors, before)
        return found

    def _write(self, tensors: list[Any], values: list[np.ndarray]) -> None:
        with torch.no_grad():
            for tensor, value in zip(tensors, values, strict=True):
                tensor.copy_(torch.from_numpy(value))


class Difference(NamedTuple):
    """The largest relative difference of a parameter's gradient from eager's, and the parameter."""

    value: float
    parameter: str


@dataclass
class Comparison:
    """What one model did in the three modes.

    losses, seconds: mode -> f64[steps]; accuracy: mode -> share;
    differences: (step, compiled mode) -> Difference; compiled: mode -> the compiled function
    """

    model: str
    parameters: int
    losses: dict[str, np.ndarray] = field(default_factory=dict)
    seconds: dict[str, np.ndarray] = field(default_factory=dict)
    accuracy: dict[str, float] = field(default_factory=dict)
    differences: dict[tuple[int, str], Difference] = field(default_factory=dict)
    compiled: dict[str, Any] = field(default_factory=dict)


def difference(expected: dict[str, np.ndarray], found: dict[str, np.ndarray]) -> Difference:
    """max |expected - found| / max |expected| of the worst parameter; nan and inf if there are such values."""
    worst = Difference(0.0, "none")
    for name, a in expected.items():
        largest, apart = np.abs(a).max(), np.abs(a - found[name]).max()
        value = 0.0 if apart == 0 else float(apart / largest) if largest else float("inf")
        if not value <= worst.value:  # also where value is nan
            worst = Difference(value, name)
            if value != value:
                break
    return worst


def compare_modes(
    name: str, data: Digits, epochs: int, checked: tuple[int, ...], progress: Callable[[], None]
) -> Comparison:
    """Train model `name` in every mode on the same batches; compare gradients at the steps `checked`."""
    trainers = {mode: Trainer(MODELS[name], mode) for mode in MODES}
    result = Comparison(name, sum(p.numel() for p in trainers[EAGER].model.parameters()))
    for number, (x, y) in enumerate(batches(data, epochs)):
        start = trainers[EAGER].parameters() if number in checked else []
        for trainer in trainers.values():
            trainer.train(x, y)
        if number in checked:
            expected = trainers[EAGER].gradients()
            for mode in (LOSS, STEP):
                found = trainers[mode].gradients_at(start, x, y)
                result.differences[number, mode] = difference(expected, found)
        progress()
    for mode, trainer in trainers.items():
        result.losses[mode] = np.array(trainer.losses)
        result.seconds[mode] = np.array(trainer.seconds)
        result.accuracy[mode] = trainer.accuracy(data)
        if trainer.compiled is not None:
            result.compiled[mode] = trainer.compiled
    return result
