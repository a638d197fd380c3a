"""Trains models across a mesh of processes by one compiled program, and holds it to a process that has the whole batch.

What each process draws or normalizes by itself is held to the same steps run op by op. Arguments: a folder, and names
of `CASES`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import eager as torch
import graphc
from eager import distributed as dist
from eager import nn
from eager.distributed.device_mesh import init_device_mesh
from eager.distributed.fsdp import fully_shard
from eager.distributed.tensor import DTensor, Replicate
from eager.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from eager.nn.parallel import DistributedDataParallel
from tests.distributed.jobs import keep
from tests.distributed.models import Recurrent, training_step

STEPS = 20
SHARE = 4  # samples of each process
TOLERANCE = 1e-9  # of float64: what another order of sums comes to after so many steps of Adam is far below


class Residual(nn.Module):
    """Convolutions around which the image goes, too, with batch normalization."""

    def __init__(self, norm: Callable[[int], Any]):
        super().__init__()
        self.first, self.norm, self.second = nn.Conv2d(2, 4, 3, padding=1), norm(4), nn.Conv2d(4, 4, 3, padding=1)
        self.classes = nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        x = self.norm(self.first(x)).relu()
        return self.classes((x + self.second(x)).mean((2, 3)))


class Bags(nn.Module):
    """The means of bags of words, and an LSTM over three of them."""

    def __init__(self):
        super().__init__()
        self.bag, self.lstm, self.classes = nn.EmbeddingBag(12, 4), nn.LSTM(4, 4, batch_first=True), nn.Linear(4, 4)

    def forward(self, x: Any) -> Any:
        rows = self.bag(x.flatten(0, 1)).unflatten(0, x.shape[:2])
        return self.classes(self.lstm(rows)[0][:, -1])


def _mlp(dropout: float = 0.0) -> Any:
    layers = nn.Linear(6, 8), nn.LayerNorm(8), nn.GELU(), nn.Dropout(dropout), nn.Linear(8, 4)
    return nn.Sequential(*layers)


class Model(NamedTuple):
    """apart: whether each process draws or normalizes for itself."""

    make: Callable[[], Any]
    data: Callable[[int], Any]
    apart: bool = False
    optimizer: str = "AdamW"


MODELS = {
    "mlp": Model(_mlp, lambda n: torch.randn(n, 6)),
    "dropout": Model(lambda: _mlp(0.25), lambda n: torch.randn(n, 6), apart=True),
    "cnn": Model(lambda: Residual(nn.BatchNorm2d), lambda n: torch.randn(n, 2, 5, 5), True, "SGD"),
    "synchronized": Model(lambda: Residual(nn.SyncBatchNorm), lambda n: torch.randn(n, 2, 5, 5), optimizer="SGD"),
    "gru": Model(Recurrent, lambda n: torch.randint(0, 10, (n, 5))),
    "bags": Model(Bags, lambda n: torch.randint(0, 12, (n, 3, 4))),
}


def _grid() -> Any:
    size = dist.get_world_size()
    return init_device_mesh("cpu", (size // 2, 2), mesh_dim_names=("dp", "tp"))


def _sharded(model: Any) -> Any:
    mesh = init_device_mesh("cpu", (dist.get_world_size(),), mesh_dim_names=("dp",))
    for part in [m for m in model.modules() if isinstance(m, nn.Linear)]:
        fully_shard(part, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def _tensor_parallel(model: Any, mesh: Any = None) -> Any:
    if mesh is None:
        mesh = init_device_mesh("cpu", (dist.get_world_size(),), mesh_dim_names=("tp",))
    plan = {"0": ColwiseParallel(output_layouts=Replicate()), "4": RowwiseParallel(input_layouts=Replicate())}
    return parallelize_module(model, mesh, plan)


def _both(model: Any) -> Any:
    grid = _grid()
    return fully_shard(_tensor_parallel(model, grid["tp"]), mesh=grid["dp"])


class Strategy(NamedTuple):
    """share: this process's part of the batch, as (number, of how many)."""

    apply: Callable[[Any], Any]
    share: Callable[[], tuple[int, int]]


def _every() -> tuple[int, int]:
    return dist.get_rank(), dist.get_world_size()


STRATEGIES = {
    "ddp": Strategy(DistributedDataParallel, _every),
    "fsdp": Strategy(_sharded, _every),
    "tp": Strategy(_tensor_parallel, lambda: (0, 1)),
    "tp+fsdp": Strategy(_both, lambda: (dist.get_rank() // 2, dist.get_world_size() // 2)),
}
CASES = (
    *(f"{model}:fsdp" for model in MODELS), *(f"{model}:ddp" for model in MODELS), "mlp:tp", "mlp:tp+fsdp",
)  # fmt: skip


def _whole(x: Any) -> Any:
    x = x.full_tensor() if isinstance(x, DTensor) else x
    return x.detach().numpy().copy()


def trained(model: Any, name: str, strategy: str, share: tuple[int, int], compiled: bool) -> dict[str, Any]:
    """Losses of each step, and the parameters, gradients, buffers and state at the end: of tensors in parts, wholes."""
    setup, position = MODELS[name], share[0]
    optimizer = getattr(torch.optim, setup.optimizer)(model.parameters(), lr=0.02)

    step = training_step(model, optimizer, nn.functional.cross_entropy)
    run = graphc.compile(step) if compiled else step
    losses = []
    for k in range(STEPS):
        torch.manual_seed(k)
        x = setup.data(SHARE * dist.get_world_size())
        y = torch.randint(0, 4 if name != "gru" else 3, (len(x),))
        torch.manual_seed(1000 * k + position)
        losses.append(_whole(run(x.chunk(share[1])[position], y.chunk(share[1])[position])))
    values = [*model.parameters(), *(p.grad for p in model.parameters()), *model.buffers()]
    state = [v for p in model.parameters() for v in optimizer.state[p].values() if isinstance(v, torch.Tensor)]
    return {"losses": losses, "values": [*map(_whole, values)], "state": [*map(_whole, state)]}


def agrees(case: str) -> None:
    """A compiled step comes to what it is to come to."""
    name, _, strategy = case.partition(":")
    how, share = STRATEGIES[strategy], STRATEGIES[strategy].share()

    def made() -> Any:
        torch.manual_seed(0)
        return how.apply(MODELS[name].make())

    found = trained(made(), name, strategy, share, compiled=True)
    if MODELS[name].apart:
        expected = trained(made(), name, strategy, share, compiled=False)
    else:
        torch.manual_seed(0)
        alone = MODELS[name].make()
        if name == "synchronized":
            torch.manual_seed(0)
            alone = Residual(nn.BatchNorm2d)
        expected = trained(alone, name, strategy, (0, 1), compiled=False)
        losses = torch.tensor(np.array(found["losses"]))
        dist.all_reduce(losses, op=dist.ReduceOp.AVG)
        found["losses"] = [*losses.numpy()]
    for part in expected:
        for k, (a, b) in enumerate(zip(found[part], expected[part], strict=True)):
            np.testing.assert_allclose(a, b, rtol=TOLERANCE, atol=TOLERANCE, err_msg=f"{case}: {part} {k}")


def main(folder: str, *names: str) -> None:
    """Run the cases `names`, all if there are none."""
    dist.init_process_group("gloo")
    torch.set_default_dtype(torch.float64)
    for case in names or CASES:
        agrees(case)
    keep(folder, dist.get_rank(), [*(names or CASES)])
    dist.destroy_process_group()


if __name__ == "__main__":
    main(*sys.argv[1:])
