"""Models to train on a mesh, and how their parameters are placed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import eager as torch
from eager import nn
from eager.distributed.device_mesh import init_device_mesh
from eager.distributed.fsdp import fully_shard, zero
from eager.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, SequenceParallel, parallelize_module
from eager.nn import functional as F
from graphc.sharding import P

GRID = init_device_mesh("cpu", (4, 2), mesh_dim_names=("data", "model"))
ROW = init_device_mesh("cpu", (8,), mesh_dim_names=("data",))
RATE, MOMENTUM = 0.1, 0.9
D, HEADS = 16, 4


class Block(nn.Module):
    """One of GPT's."""

    def __init__(self) -> None:
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(D), nn.LayerNorm(D)
        self.q, self.k, self.v, self.o = (nn.Linear(D, D) for _ in range(4))
        self.up, self.down = nn.Linear(D, 4 * D), nn.Linear(4 * D, D)

    def forward(self, x: Any) -> Any:
        b, t, _ = x.shape
        n = self.ln1(x)
        q, k, v = (f(n).view(b, t, HEADS, D // HEADS).transpose(1, 2) for f in (self.q, self.k, self.v))
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.o(a.transpose(1, 2).reshape(b, t, D))
        return x + self.down(F.gelu(self.up(self.ln2(x))))


class Recurrent(nn.Module):
    """A GRU, of which the last state is read."""

    def __init__(self) -> None:
        super().__init__()
        self.gru, self.out = nn.GRU(8, 16, batch_first=True), nn.Linear(16, 4)

    def forward(self, x: Any) -> Any:
        return self.out(self.gru(x)[0][:, -1])


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 16))


def cnn() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 8, 3), nn.Flatten(), nn.Linear(128, 4)
    )  # fmt: skip


def words() -> nn.Module:
    return nn.Sequential(nn.Embedding(64, 32), nn.Flatten(), nn.Linear(160, 8))


def normalized_words() -> nn.Module:
    return nn.Sequential(nn.Embedding(64, 32), nn.LayerNorm(32), nn.Linear(32, 8))


class Case(NamedTuple):
    """A model, the shape of its input ("" for words) and of its target, what is said of its parameters, a mesh.

    placed  marks them; rules are given to `graphc.compile`
    slack   bytes that predicted and real exchanges may differ by: of run-time checks, and where XLA chooses otherwise
    """

    make: Callable[[], nn.Module]
    x: tuple[int, ...]
    y: tuple[int, ...]
    rules: dict[str, Any] = {}  # noqa: RUF012 (nobody writes it)
    placed: Callable[[nn.Module], nn.Module] = lambda m: m
    mesh: Any = GRID
    words: bool = False
    slack: int = 0


_COLUMNS, _ROWS = ("q", "k", "v", "up"), ("o", "down")
_PLAN = {**{n: ColwiseParallel() for n in _COLUMNS}, **{n: RowwiseParallel() for n in _ROWS}}
_NORMS = {"ln1": SequenceParallel(), "ln2": SequenceParallel()}
_MODEL = {"*0.weight": P("model"), "*0.bias": P("model"), "*2.weight": P(None, "model")}
_GPT = (Block, (8, 4, D), (8, 4, D))

QUICK = {
    "mlp, data x model": Case(mlp, (16, 32), (16, 16), _MODEL),
    "mlp, fsdp": Case(mlp, (16, 32), (16, 16), placed=lambda m: fully_shard(m, mesh=ROW), mesh=ROW),
    # an index that is out of bounds on any device has to be known on all
    "words by rows": Case(words, (8, 5), (8, 8), {"*0.weight": P("model")}, words=True, slack=128),
}
DEEP = {
    "mlp": Case(mlp, (16, 32), (16, 16)),
    "mlp, zero": Case(mlp, (16, 32), (16, 16), placed=lambda m: zero(m, ROW, 1), mesh=ROW),
    "gpt, data x model": Case(*_GPT, placed=lambda m: parallelize_module(m, GRID["model"], _PLAN)),
    "gpt": Case(*_GPT),
    "gpt, fsdp": Case(*_GPT, placed=lambda m: fully_shard(m, mesh=ROW), mesh=ROW),
    "gpt, fsdp x model": Case(*_GPT, placed=lambda m: fully_shard(
        parallelize_module(m, GRID["model"], _PLAN), mesh=GRID["data"])),
    "gpt, sequences": Case(*_GPT, placed=lambda m: parallelize_module(m, GRID["model"], {**_PLAN, **_NORMS}),
                           slack=400),  # XLA sums the gradients of the normalizations over each axis by itself
    "cnn": Case(cnn, (8, 3, 12, 12), (8, 4), slack=128),
    "cnn by channels": Case(cnn, (8, 3, 12, 12), (8, 4), {"*0.weight": P("model"), "*0.bias": P("model"),
                                                          "*3.weight": P(None, "model")}, slack=128),
    "words": Case(words, (8, 5), (8, 8), words=True, slack=128),
    "words by vectors": Case(words, (8, 5), (8, 8), {"*0.weight": P(None, "model")}, words=True),
    # gradients of what is whole come out in parts; XLA gathers one before it adds up, and not after
    "normalized words by vectors": Case(normalized_words, (8, 5), (8, 5, 8), {"*0.weight": P(None, "model")},
                                        words=True, slack=512),
    "gru": Case(Recurrent, (8, 5, 8), (8, 4), slack=128),
}  # fmt: skip


def step_of(model: nn.Module) -> Callable[..., Any]:
    """A step of SGD on the squared error."""
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE, momentum=MOMENTUM)

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = ((model(x) - y) ** 2).mean()
        loss.backward()
        optimizer.step()
        return loss

    return step


def trained(case: Case, compiled: Callable[..., Any], steps: int = 3) -> tuple[nn.Module, list[float], Any]:
    """The model after some steps of SGD, the losses, and what `compiled(step)` gave."""
    torch.manual_seed(0)
    model = case.placed(case.make())
    x = torch.randint(0, 64, case.x) if case.words else torch.randn(case.x)
    y = torch.randn(case.y)
    run = compiled(step_of(model))
    return model, [float(run(x, y)) for _ in range(steps)], run
