"""The training steps of `trainings` under PyTorch, eager and with torch.compile, where it is installed."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from types import ModuleType
from typing import Any

Step = Callable[[], Any]


@contextmanager
def _eager_is(module: ModuleType) -> Iterator[None]:
    """A context: `import eager` gives `module`, and the trainings are imported anew."""
    hidden = {name: sys.modules.pop(name) for name in [*sys.modules] if name.split(".")[0] in ("eager", "trainings")}
    sys.modules["eager"] = module
    try:
        yield
    finally:
        for name in [name for name in sys.modules if name.split(".")[0] in ("eager", "trainings")]:
            del sys.modules[name]
        sys.modules.update(hidden)


@cache
def _trainings() -> ModuleType:
    """The package `trainings` with PyTorch's modules in place of eager's."""
    import torch

    torch.set_num_threads(1)
    with _eager_is(torch):
        return importlib.import_module("trainings")


def pytorch_steps(name: str) -> dict[str, Step]:
    """One step of the training `name`, and one whose loss and optimizer torch.compile has compiled.

    ImportError without PyTorch; TypeError for a training that is written with graphc's own functions.
    """
    package = _trainings()
    import torch

    _step(package, name, torch, lambda f: f)()  # it may use what PyTorch has not
    ways: dict[str, Callable[[Any], Any]] = {"PyTorch": lambda f: f, "torch.compile": torch.compile}
    return {way: _step(package, name, torch, compiled) for way, compiled in ways.items()}


def _step(package: ModuleType, name: str, torch: Any, compiled: Callable[[Any], Any]) -> Step:
    torch.manual_seed(0)
    training = package.made(name)
    optimizer = training.optimizer.of(training.model.parameters())
    batch = [torch.from_numpy(a) for a in training.batch]
    loss_of, update = compiled(training.loss), compiled(optimizer.step)

    def step() -> Any:
        optimizer.zero_grad()
        loss = loss_of(*batch)
        loss.backward()
        update()
        return loss.detach()

    return step
