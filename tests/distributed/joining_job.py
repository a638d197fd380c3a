"""What DistributedDataParallel and ZeroRedundancyOptimizer do beyond equal batches: joining, hooks, divided states.

It runs under PyTorch as well, which decides what is right.
"""

from __future__ import annotations

import copy
import importlib
import sys
from typing import Any

from tests.distributed.jobs import keep, sides

COUNTS = 7, 4, 5, 6  # batches of each process


def model_of(torch: Any) -> Any:
    """The same model everywhere: a batch norm has buffers."""
    nn = torch.nn
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4, bias=False), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 2))


def batches(torch: Any, rank: int, count: int) -> list[Any]:
    """The batches of a process."""
    generator = torch.Generator().manual_seed(rank + 1)
    return [torch.randn(4, 3, generator=generator) for _ in range(count)]


def state(model: Any) -> list[Any]:
    """Parameters and buffers."""
    return [value.detach().numpy().copy() for value in model.state_dict().values()]


def uneven(torch: Any, rank: int, **settings: Any) -> list[Any]:
    """Train with a different number of batches in each process; some are accumulated."""
    model = torch.nn.parallel.DistributedDataParallel(model_of(torch), bucket_cap_mb=0.0001)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with model.join(**settings):
        for k, x in enumerate(batches(torch, rank, COUNTS[rank])):
            if k == 1:
                with model.no_sync():
                    model(x).square().sum().backward()
                continue
            model(x).square().sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    return state(model)


def refused(torch: Any, rank: int) -> str:
    """What is raised where joining is to be an error."""
    try:
        uneven(torch, rank, throw_on_early_termination=True)
    except RuntimeError as error:
        return str(error)
    return ""


def hooked(torch: Any, dist: Any, rank: int, hook: Any) -> list[Any]:
    """Gradients that a communication hook has sent."""
    model = torch.nn.parallel.DistributedDataParallel(model_of(torch), bucket_cap_mb=0.0001)
    model.register_comm_hook(None, hook)
    for x in batches(torch, rank, 2):
        model.zero_grad()
        model(x).square().sum().backward()
    return [p.grad.numpy().copy() for p in model.parameters()]


def doubled(dist: Any, seen: list[Any]) -> Any:
    """A hook that sends twice the sum, and notes what it sees."""

    def hook(state, bucket):  # PyTorch asks for its own classes, if anything is annotated
        parts = [tuple(g.shape) for g in bucket.gradients()]
        assert parts == [tuple(p.shape) for p in bucket.parameters()]
        seen.append((bucket.index(), bucket.is_last(), sum(g.numel() for g in bucket.gradients())))
        work = dist.all_reduce(bucket.buffer(), async_op=True)
        return work.get_future().then(lambda done: done.value()[0] * 2)

    return hook


def divided(torch: Any, dist: Any, rank: int, joins: bool) -> Any:
    """Train with an optimizer of which each process has a part; save its state, and load it into another."""
    zero = importlib.import_module(f"{torch.__name__}.distributed.optim").ZeroRedundancyOptimizer
    join = importlib.import_module(f"{torch.__name__}.distributed.algorithms.join").Join
    model = torch.nn.parallel.DistributedDataParallel(model_of(torch))
    optimizer = zero(model.parameters(), torch.optim.Adam, lr=0.1)
    with join([model, optimizer], enable=joins):
        for x in batches(torch, rank, COUNTS[rank] if joins else 3):
            optimizer.zero_grad()
            model(x).square().sum().backward()
            optimizer.step()
    optimizer.consolidate_state_dict(to=0)
    every: list[Any] = [optimizer.state_dict() if rank == 0 else None]
    dist.broadcast_object_list(every, src=0)
    again = zero(model.parameters(), torch.optim.Adam, lr=0.5)
    again.load_state_dict(copy.deepcopy(every[0]))  # in which PyTorch writes
    again.zero_grad()
    model(batches(torch, rank, 1)[0]).square().sum().backward()
    again.step()
    kept = {k: {name: value.numpy() for name, value in own.items()} for k, own in every[0]["state"].items()}
    return state(model), kept, every[0]["param_groups"][0]["lr"], again.param_groups[0]["lr"]


def main() -> None:
    torch, dist = sides(sys.argv)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    hooks = importlib.import_module(f"{torch.__name__}.distributed.algorithms.ddp_comm_hooks.default_hooks")
    seen: list[Any] = []
    found = {
        "uneven": uneven(torch, rank),
        "uneven, without those that have joined": uneven(torch, rank, divide_by_initial_world_size=False),
        "refused": refused(torch, rank),
        "average": hooked(torch, dist, rank, hooks.allreduce_hook),
        "float16": hooked(torch, dist, rank, hooks.fp16_compress_hook),
        "float16, wrapped": hooked(torch, dist, rank, hooks.fp16_compress_wrapper(hooks.allreduce_hook)),
        "of one's own": hooked(torch, dist, rank, doubled(dist, seen)),
        "seen": seen,
        "divided": divided(torch, dist, rank, False),
        "divided, uneven": divided(torch, dist, rank, True),
    }
    keep(sys.argv[1], rank, found)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
