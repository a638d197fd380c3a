"""A model in four stages, trained as a whole and as a pipeline."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import eager as torch
from eager import nn
from eager.distributed.device_mesh import init_device_mesh
from eager.distributed.pipelining import Pipe, Schedule1F1B, ScheduleGPipe, SplitPoint, pipeline

MESH = init_device_mesh("cpu", (2, 4), mesh_dim_names=("data", "pipe"))
SPLITS = {f"1.{k}": SplitPoint.BEGINNING for k in (1, 2, 3)}
SCHEDULES = {"GPipe": ScheduleGPipe, "1F1B": Schedule1F1B}


def model() -> nn.Sequential:
    """An embedding, four layers that are alike, and a head."""
    torch.manual_seed(0)
    blocks = [nn.Sequential(nn.Linear(16, 16), nn.Tanh(), nn.LayerNorm(16)) for _ in range(4)]
    return nn.Sequential(nn.Embedding(11, 16), nn.Sequential(*map(_Block, blocks)), nn.Linear(16, 11))


class _Block(nn.Module):
    def __init__(self, inside: nn.Module):
        super().__init__()
        self.inside = inside

    def forward(self, x: Any) -> Any:
        return x + self.inside(x)


def loss_fn(output: Any, target: Any) -> Any:
    return nn.functional.cross_entropy(output.flatten(0, 1), target.flatten())


def batch() -> tuple[Any, Any]:
    torch.manual_seed(1)
    return torch.randint(0, 11, (16, 6)), torch.randint(0, 11, (16, 6))


def step_of(pipe: Pipe, optimizer: Any, schedule: str, outputs: bool = False) -> Callable[..., Any]:
    """A training step of a pipeline."""
    runs = SCHEDULES[schedule](pipe.build_stage(0, "cpu"), 4, loss_fn)

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        losses: list[Any] = []
        runs.step(x, target=y, losses=losses, return_outputs=outputs)
        optimizer.step()
        return torch.stack(losses).mean()

    return step


def adam(module: nn.Module) -> Any:
    return torch.optim.Adam(module.parameters(), lr=1e-2, eps=1e-3)


def whole(steps: int = 3) -> dict[str, Any]:
    """Trained as one model: losses; parameters, gradients and moments by name."""
    module = model()
    optimizer = adam(module)
    x, y = batch()
    losses = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = loss_fn(module(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return {"losses": losses, **_values(module, optimizer, lambda values: values)}


def piped(mesh: Any = None, schedule: str = "GPipe", compiled: Any = lambda step: step) -> tuple[dict[str, Any], Any]:
    """The same of a pipeline, by the names of the model; and what `compiled(step)` gave."""
    pipe = pipeline(model(), (batch()[0][:4],), split_spec=SPLITS, mesh=mesh)
    optimizer = adam(pipe)
    run = compiled(step_of(pipe, optimizer, schedule))
    losses = [run(*batch()).item() for _ in range(3)]
    return {"losses": losses, **_values(pipe, optimizer, pipe.unstacked)}, run


def _values(module: nn.Module, optimizer: Any, by_name: Any) -> dict[str, Any]:
    state = optimizer.state
    kinds = {
        "values": lambda p: p.detach(), "gradients": lambda p: p.grad, "first": lambda p: state[p]["exp_avg"],
        "second": lambda p: state[p]["exp_avg_sq"],
    }  # fmt: skip
    return {
        kind: {k: v.tolist() for k, v in by_name({n: of(p) for n, p in module.named_parameters()}).items()}
        for kind, of in kinds.items()
    }
