"""Data-parallel programs with errors, and what a check of them has to name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import eager as torch
from eager import distributed as dist
from eager import nn
from eager.nn.parallel import DistributedDataParallel

BATCH = 8
TWICE = "the mean over the ranks is taken twice"
loss_of = nn.functional.cross_entropy


class Program(NamedTuple):
    """A step, its share of a batch, and the whole batch. names: what a report has to have; none if all is well."""

    step: Callable[..., Any]
    args: tuple[Any, ...]
    whole: tuple[Any, ...]
    names: tuple[str, ...] = ()
    draws: str | None = None


def _model(norm: Callable[[int], Any] = nn.LayerNorm) -> Any:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 8), norm(8), nn.Tanh(), nn.Linear(8, 3))


def _batch(off: int = 0) -> tuple[Any, Any]:
    """(this rank's share, the whole). off: how far the second rank's rows are from where they should be."""
    generator = torch.Generator().manual_seed(1)
    x, y = torch.randn(BATCH, 6, generator=generator), torch.arange(BATCH) % 3
    rank, size = dist.get_rank(), dist.get_world_size()
    share = BATCH // size
    own = slice(rank * share - off * rank, (rank + 1) * share - off * rank)
    return (x[own].clone(), y[own].clone()), (x, y)


def _averages(parameters: Any, group: Any = None, divide: bool = True) -> None:
    for p in parameters:
        dist.all_reduce(p.grad, group=group)
        if divide:
            p.grad /= dist.get_world_size()


def _program(
    model: Any, *names: str, after: Callable[[Any], None] = lambda model: None, weight: Callable[[], float] = lambda: 1,
    update: Callable[[], bool] = lambda: True, optimizer: Any = None, off: int = 0, draws: str | None = None,
) -> Program:  # fmt: skip
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = loss_of(model(x), y) / weight()
        loss.backward()
        after(model)
        if update():
            optimizer.step()
        return loss.detach()

    return Program(step, *_batch(off), names, draws)


def _all(model: Any) -> None:
    _averages(model.parameters())


def by_hand() -> Program:
    return _program(_model(), after=_all)


def wrapped() -> Program:
    return _program(DistributedDataParallel(_model()))


def synchronized() -> Program:
    return _program(DistributedDataParallel(nn.SyncBatchNorm.convert_sync_batchnorm(_model(nn.BatchNorm1d))))


def accumulated() -> Program:
    return _accumulation(lambda k, parts: k == parts - 1)


def masked() -> Program:
    """Dropout, by a stream of its own on each rank."""
    model = DistributedDataParallel(nn.Sequential(_model(), nn.Dropout(0.5)))
    torch.manual_seed(dist.get_rank())
    return _program(model, draws="apart")


RIGHT = (by_hand, wrapped, synchronized, accumulated, masked)

# --- errors


def missing_all_reduce() -> Program:
    return _program(_model(), "0.weight.grad after the call: bug", "it is not averaged over the ranks",
                    "missing collective", "there is no collective")  # fmt: skip


def one_left_out() -> Program:
    """The gradient of one parameter stays local: the parameter is replicated, but updated locally."""
    return _program(_model(), "3.bias after the call: bug", "3.bias.grad after the call: bug", "missing collective",
                    after=lambda model: _averages([*model.parameters()][:-1]))  # fmt: skip


def wrong_axis() -> Program:
    """Reduced over the other axis of a grid of 2 x 1 processes, which has one process."""
    own = [dist.new_group([k]) for k in range(dist.get_world_size())][dist.get_rank()]
    return _program(_model(), "missing collective", f"all_reduce of ranks {dist.get_rank()} (",
                    after=lambda model: _averages(model.parameters(), own))  # fmt: skip


def double_mean() -> Program:
    """The loss is divided by the number of processes, and gradients are averaged."""
    return _program(DistributedDataParallel(_model()), TWICE, "collective of op 'all_reduce'",
                    "is a term of a sum", weight=dist.get_world_size)  # fmt: skip


def averaged_again() -> Program:
    """By DistributedDataParallel, and by hand."""

    def again(model: Any) -> None:
        for p in model.parameters():
            p.grad /= dist.get_world_size()

    return _program(
        DistributedDataParallel(_model()), "the mean over the ranks is taken twice", "op 'div'", after=again
    )


def summed() -> Program:
    return _program(_model(), "it is summed over the ranks, not averaged", "collective of op 'all_reduce'",
                    after=lambda model: _averages(model.parameters(), divide=False))  # fmt: skip


def first_of_all() -> Program:
    """All ranks take the gradients of the first."""

    def sent(model: Any) -> None:
        for p in model.parameters():
            dist.broadcast(p.grad, 0)

    return _program(_model(), "0.weight.grad after the call: bug", "of op 'broadcast'", after=sent)


def stale() -> Program:
    """One process does not take the step."""
    return _program(_model(), "0.weight after the call: bug", "rank 1 has not changed it", after=_all,
                    update=lambda: dist.get_rank() == 0)  # fmt: skip


def other_seed() -> Program:
    """Each process has parameters of its own, which nobody sends."""
    model = _model()
    torch.manual_seed(dist.get_rank())
    nn.init.normal_(model[3].weight)
    return _program(model, "3.weight before the call: bug", "rank 1 has another than rank 0", after=_all)


def same_masks() -> Program:
    model = DistributedDataParallel(nn.Sequential(_model(), nn.Dropout(0.5)))
    torch.manual_seed(7)
    return _program(model, "random numbers: bug", "ranks 0, 1 begin alike", "seed", draws="apart")


class _Scaled(nn.Module):
    def __init__(self, scale: float):
        super().__init__()
        self.inner = _model()
        self.register_buffer("scale", torch.tensor(scale))

    def forward(self, x: Any) -> Any:
        return self.inner(x) * self.scale


def other_buffer() -> Program:
    return _program(
        _Scaled(1.0 + dist.get_rank()), "scale before the call: bug", "rank 1 has another than rank 0", after=_all
    )


def local_statistics() -> Program:
    """Batch norm over each process's own share."""
    names = "1.running_mean after the call: bug", "missing collective of op 'sub'", "is a term of a mean"
    return _program(_model(nn.BatchNorm1d), *names, after=_all)


def other_rows() -> Program:
    return _program(
        DistributedDataParallel(_model()), "data order: bug", "row 3 is on ranks 0, 1", "no rank has row 7", off=1
    )


def reduced_twice() -> Program:
    """Gradients are summed over processes after each part of the batch: those of the first part twice."""
    return _accumulation(lambda k, parts: True)._replace(
        names=("0.weight.grad after the call: bug", "of op 'add'", "is the whole, v"),
    )  # fmt: skip


def _accumulation(reduces: Callable[[int, int], bool], parts: int = 2) -> Program:
    model = _model()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

    def step(x: Any, y: Any) -> None:
        optimizer.zero_grad()
        for k in range(parts):
            loss = loss_of(model(x[k::parts]), y[k::parts]) / parts / dist.get_world_size()
            loss.backward()
            if reduces(k, parts):
                _averages(model.parameters(), divide=False)
        optimizer.step()

    return Program(step, *_batch())


WRONG = (
    missing_all_reduce, one_left_out, wrong_axis, double_mean, averaged_again, summed, first_of_all, stale, other_seed,
    same_masks, other_buffer, local_statistics, other_rows, reduced_twice,
)  # fmt: skip
