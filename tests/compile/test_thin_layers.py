"""Many thin layers that are alike are one loop in a training step: their state lies stacked between calls."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import eager as torch
import graphc
from eager import nn
from graphc.execution.host_packs import Part

DEPTH, WIDTH = 30, 4


class Residuals(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(WIDTH, WIDTH) for _ in range(DEPTH))
        self.head = nn.Linear(WIDTH, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = x + 0.1 * torch.tanh(layer(x))
        return self.head(x)


class World:
    """A deep thin net and the step that trains it."""

    def __init__(self, compiled: bool, clipped: bool = False, **options: Any):
        torch.manual_seed(0)
        self.model = Residuals()
        self.opt = torch.optim.Adam(self.model.parameters(), lr=0.01)
        self.clipped = clipped
        self.step: Any = graphc.compile(self._step, **options) if compiled else self._step

    def _step(self, x: torch.Tensor) -> torch.Tensor:
        self.opt.zero_grad()
        loss = self.model(x).square().mean()
        loss.backward()
        if self.clipped:
            nn.utils.clip_grad_norm_(self.model.parameters(), 0.01)
        self.opt.step()
        return loss

    def train(self, size: int = 8) -> float:
        return self.step(torch.linspace(-1, 1, size * WIDTH).reshape(size, WIDTH)).item()

    @property
    def said(self) -> str:
        return str(self.step.explain())

    def equals(self, other: World) -> None:
        for ours, theirs in zip(self.model.parameters(), other.model.parameters(), strict=True):
            assert ours.grad is not None and theirs.grad is not None
            for a, b in ((ours, theirs), (ours.grad, theirs.grad)):
                np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("clipped", [False, True])
def test_the_layers_are_one_loop_and_train_as_in_eager_mode(clipped):
    eager, compiled = World(False, clipped), World(True, clipped)
    for _ in range(3):
        np.testing.assert_allclose(compiled.train(), eager.train(), rtol=1e-5)
    assert f"{DEPTH - 1} steps of" in compiled.said and "are a scan" in compiled.said
    assert all(isinstance(layer.weight._d, Part) for layer in compiled.model.layers)
    with torch.no_grad():  # one of the stacked layers is written, all are read
        for world in (eager, compiled):
            world.model.layers[7].weight.mul_(0.5)
    np.testing.assert_allclose(compiled.train(), eager.train(), rtol=1e-5)
    compiled.equals(eager)


def test_batches_of_another_size_find_the_state_where_it_lies():
    eager, compiled = World(False), World(True)
    parts = None
    for size in (8, 5, 8):
        np.testing.assert_allclose(compiled.train(size), eager.train(size), rtol=1e-4)
        found = [layer.weight._d for layer in compiled.model.layers]
        assert parts in (None, found)
        parts = found
    compiled.equals(eager)


def test_loops_are_left_out_by_name():
    world = World(True, without="repeats")
    world.train()
    assert "are a scan" not in world.said and "side by side" in world.said
