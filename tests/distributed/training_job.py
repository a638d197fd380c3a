"""Trains models by DistributedDataParallel, each process on its share of the batch."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import eager as torch
import graphc
from eager import distributed as dist
from eager import nn
from eager.nn.parallel import DistributedDataParallel
from tests.distributed.jobs import keep
from tests.distributed.models import SETUPS, Branching, training_step

SHARE, STEPS = 4, 3


def trained(model: Any, optimizer: Any, x: Any, y: Any, *, compiled: bool = False, parts: int = 1) -> dict[str, Any]:
    """Losses, gradients of each step, parameters, buffers, and the optimizer's state."""
    loss_of = nn.CrossEntropyLoss()

    def accumulated(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        for k in range(parts - 1):
            with model.no_sync():
                loss_of(model(x[k::parts]), y[k::parts]).backward()
        loss = loss_of(model(x[parts - 1 :: parts]), y[parts - 1 :: parts])
        loss.backward()
        optimizer.step()
        return loss

    run = training_step(model, optimizer, loss_of, 0.7) if parts == 1 else accumulated
    run = graphc.compile(run) if compiled else run
    losses, gradients = [], []
    for _ in range(STEPS):
        losses.append(run(x, y).item())
        gradients.append([p.grad.numpy().copy() for p in model.parameters()])
    state = [[v.numpy() for v in s.values() if isinstance(v, torch.Tensor)] for s in
             optimizer.state_dict()["state"].values()]  # fmt: skip
    values = {name.removeprefix("module."): v.numpy() for name, v in model.state_dict().items()}
    return {"losses": losses, "gradients": gradients, "state": state, "values": values}


def compare(name: str, rank: int, size: int, compiled: bool) -> None:
    """Train alone on everything, and together on the shares; both must come to the same."""
    setup = SETUPS[name]
    torch.manual_seed(0)
    alone, x, y = setup.model(), setup.data(SHARE * size), torch.randint(0, 3, (SHARE * size,))
    start = {k: v.clone() for k, v in alone.state_dict().items()}
    torch.manual_seed(100 + rank)
    model = nn.SyncBatchNorm.convert_sync_batchnorm(setup.model())
    if rank == 0:
        model.load_state_dict(start)  # the others are to get it from here
    together = DistributedDataParallel(model, bucket_cap_mb=0.0002)
    assert all(name.startswith("module.") for name in together.state_dict())
    expected = trained(alone, setup.optimizer(alone.parameters()), x, y)
    own = slice(SHARE * rank, SHARE * (rank + 1))
    got = trained(together, setup.optimizer(together.parameters()), x[own], y[own], compiled=compiled)
    losses = torch.tensor(got["losses"], dtype=torch.float64)
    dist.all_reduce(losses, op=dist.ReduceOp.AVG)
    got["losses"] = losses.tolist()
    same(got, expected, f"{name}, compiled={compiled}")


def same(got: Any, expected: Any, path: str) -> None:
    if isinstance(expected, dict):
        for key in expected:
            same(got[key], expected[key], f"{path}, {key}")
    elif isinstance(expected, list):
        assert len(got) == len(expected), path
        for k, (a, b) in enumerate(zip(got, expected, strict=True)):
            same(a, b, f"{path}, {k}")
    else:
        np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-5, err_msg=path)


def accumulates(rank: int, size: int) -> None:
    """`no_sync` leaves gradients alone until the last part."""
    setup = SETUPS["mlp"]
    torch.manual_seed(rank)
    model = DistributedDataParallel(setup.model())
    x, y = torch.randn(SHARE, 6), torch.randint(0, 3, (SHARE,))
    trained(model, _plain(model), x, y, parts=2)
    every: list[Any] = [None] * size
    dist.all_gather_object(every, [p.grad.numpy() for p in model.parameters()])
    same(every[0], every[1], "no_sync")
    with model.no_sync():
        model(x * (rank + 1)).sum().backward()
    dist.all_gather_object(every, [p.grad.numpy() for p in model.parameters()])
    assert not np.allclose(every[0][0], every[1][0])


def _plain(model: Any) -> Any:
    return torch.optim.SGD(model.parameters(), lr=0.1)


def unused(rank: int, size: int, compiled: bool) -> None:
    """Branches that differ between processes: who has no gradient of its own gets the others' average."""
    torch.manual_seed(0)
    model = DistributedDataParallel(Branching(), find_unused_parameters=True)
    x = torch.ones(2, 6)

    def step(x: Any) -> Any:
        loss = model(x, compiled or rank == 0).sum()
        loss.backward()
        return loss

    (graphc.compile(step) if compiled else step)(x)
    branching = model.module
    weights = [branching.first.weight.grad, branching.second.weight.grad, branching.never.weight.grad]
    share = 1.0 if compiled else 1 / size
    np.testing.assert_allclose(weights[0].numpy(), np.full((3, 6), 2 * share), rtol=1e-6)
    assert compiled or np.allclose(weights[1].numpy(), 2 * (1 - share))
    assert weights[2] is None


def groups_in_one_program(rank: int, size: int) -> None:
    """Rows and columns of a grid of processes, and all of them, in one compiled program."""
    row, _ = dist.new_subgroups(2)
    column, _ = dist.new_subgroups_by_enumeration([range(k, size, 2) for k in range(2)])
    functional = dist.nn.functional

    def f(x: Any) -> Any:
        along, across = functional.all_reduce(x, group=row), functional.all_reduce(x * 2, group=column)
        gathered = torch.stack(functional.all_gather(x, group=column)).sum(0)
        sent = functional.broadcast(x, rank % 2, group=column)
        return (along + across + functional.all_reduce(x) + 3 * gathered + 5 * sent).sum()

    x = torch.full((3,), rank + 1.0, requires_grad=True)
    f(x).backward()
    expected, x.grad = x.grad.clone(), None
    graphc.compile(f)(x).backward()
    np.testing.assert_allclose(x.grad.numpy(), expected.numpy())


def errors(rank: int, size: int) -> list[str]:
    """The messages of what goes wrong."""
    found = []
    model = DistributedDataParallel(Branching())
    x = torch.ones(2, 6)
    model(x).sum().backward()
    for attempt in (lambda: model(x), lambda: DistributedDataParallel(nn.Linear(2 + rank, 3)),
                    lambda: DistributedDataParallel(nn.ReLU())):  # fmt: skip
        try:
            attempt()
        except RuntimeError as error:
            found.append(str(error))
    return found


def buffers(rank: int, size: int) -> None:
    """Each forward pass begins with the buffers of the first process."""
    layer = nn.BatchNorm1d(2)
    model = DistributedDataParallel(nn.Sequential(layer, nn.Linear(2, 1)))
    with torch.no_grad():
        layer.running_mean.fill_(float(rank + 3))
    model.eval()
    model(torch.zeros(1, 2))
    np.testing.assert_array_equal(layer.running_mean.numpy(), [3.0, 3.0])


def main() -> None:
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    for asked in sys.argv[2].split(","):
        name, _, mode = asked.partition(":")
        compare(name, rank, size, mode == "compiled")
    accumulates(rank, size)
    unused(rank, size, compiled=False)
    unused(rank, size, compiled=True)
    buffers(rank, size)
    groups_in_one_program(rank, size)
    keep(sys.argv[1], rank, errors(rank, size))
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
