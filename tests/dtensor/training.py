"""Models trained on a mesh, and on one device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import eager as torch
import graphc
from eager import nn
from eager.core.tensor import Tensor
from eager.distributed.fsdp import fully_shard
from eager.distributed.tensor import Replicate, Shard, distribute_module, distribute_tensor
from eager.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from tests.distributed.models import training_step
from tests.sharding import models
from tests.sharding.models import GRID, ROW

MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...], tuple[int, ...]]] = {
    "mlp": (models.mlp, (16, 32), (16, 16)), "gpt": (models.Block, (8, 4, models.D), (8, 4, models.D)),
    "cnn": (models.cnn, (8, 3, 12, 12), (8, 4)), "words": (models.words, (8, 5), (8, 8)),
    "gru": (models.Recurrent, (8, 5, 8), (8, 4)),
}  # fmt: skip
PLANS: dict[str, Any] = {
    "mlp": {"0": ColwiseParallel(), "2": RowwiseParallel()}, "gpt": models._PLAN, "words": {"0": RowwiseParallel()},
    "cnn": {"5": RowwiseParallel()}, "gru": {"out": ColwiseParallel(output_layouts=Replicate())},
}  # fmt: skip


def data_parallel(name: str, model: nn.Module) -> None:
    distribute_module(model, ROW)


def sharded_data_parallel(name: str, model: nn.Module) -> None:
    fully_shard(model, mesh=ROW)


def tensor_parallel(name: str, model: nn.Module) -> None:
    parallelize_module(model, GRID["model"], PLANS[name])


def both(name: str, model: nn.Module) -> None:
    fully_shard(parallelize_module(model, GRID["model"], PLANS[name]), mesh=GRID["data"])


PARTS = 6  # of all ops, each run in a process of its own
STRATEGIES = (data_parallel, sharded_data_parallel, tensor_parallel, both)


class Trained(NamedTuple):
    """What training has left: losses, the model, its optimizer, and the values of all tensors by name."""

    losses: list[float]
    model: nn.Module
    optimizer: torch.optim.Optimizer
    values: dict[str, np.ndarray]


def trained(name: str, strategy: Any = None, compiled: bool = False, steps: int = 10) -> Trained:
    """A model after some steps of Adam with clipped gradients."""
    make, of_x, of_y = MODELS[name]
    torch.manual_seed(0)
    model = make()
    x, y = torch.randint(0, 64, of_x) if name == "words" else torch.randn(of_x), torch.randn(of_y)
    if strategy is not None:
        strategy(name, model)
    if strategy is data_parallel:  # the others split plain batches by themselves
        x, y = (distribute_tensor(t, ROW, [Shard(0)]) for t in (x, y))
    # a large eps: some gradients are zero but for rounding, which Adam would divide by itself
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, eps=1e-3)

    step = training_step(model, optimizer, lambda found, y: ((found - y) ** 2).mean(), 1.0)
    run = graphc.compile(step) if compiled else step
    losses = [float(run(x, y)) for _ in range(steps)]
    values: dict[str, np.ndarray] = {}
    for key, p in model.named_parameters():
        state = {k: v for k, v in optimizer.state[p].items() if isinstance(v, Tensor)}
        for what, t in {"": p.detach(), " gradient": p.grad, **state}.items():
            values[f"{key} {what}"] = t._read()
    return Trained(losses, model, optimizer, values)
