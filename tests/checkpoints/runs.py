"""Programs that tests kill: each runs in a process of its own, forked off a server that has loaded what they need."""

from __future__ import annotations

import json
import multiprocessing
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import eager as torch
import eager.amp
import eager.nn.functional
import eager.optim.lr_scheduler  # so that the server has loaded them
from eager.distributed.checkpoint import CheckpointManager
from eager.utils.data import DataLoader, Dataset, DistributedSampler
from tests.checkpoints.sharded import ShardedState

SIZES = (3, 50_000, 7)  # of the arrays that `fill` saves: one is larger than a write to a pipe or a file's buffer
STEPS = 16
RANKS = 2


def server() -> Any:
    """A context whose processes are forked off a server."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.checkpoints.runs"])
    return context


def finishes(run: Callable[..., None], arguments: tuple[Any, ...], seconds: float) -> bool:
    """Whether a program ends by itself in that time after it has begun; else it is killed. AssertionError if it
    fails."""
    context = server()
    begun = context.Event()
    process = context.Process(target=run, args=(begun, *arguments))
    process.start()
    while process.is_alive() and not begun.wait(0.01):
        pass
    process.join(seconds)
    ended = not process.is_alive()
    process.kill()
    process.join()
    assert not ended or process.exitcode == 0, process.exitcode
    process.close()
    return ended


def fill(begun: Any, folder: Path, background: bool) -> None:
    """Save values that tell their step, for ever. It has begun when it has saved once."""
    state: dict[str, Any] = {}
    manager = CheckpointManager(folder, {"state": state}, keep=2, background=background, sync_files=background)
    step = manager.load()
    while True:
        step += 1
        state.update({f"x{n}": torch.full((n,), float(step)) for n in SIZES})
        state["text"] = f"step {step}"
        manager.save(step)
        if not begun.is_set():  # a busy machine may take longer for one than it is given
            manager.wait()
            begun.set()


class Noisy(Dataset[Any]):
    """Samples with noise, drawn from all three generators of the process that makes them."""

    def __len__(self) -> int:
        return 37

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        noise = torch.rand(4) + random.random() + np.random.rand()
        return index / 37 + 0.1 * noise, torch.tensor(index % 3)


def train(
    begun: Any, folder: Path, save_id: str, compiled: bool = False, workers: int = 0, steps: int = STEPS, lost: str = ""
) -> list[str]:
    """Train with two ranks in one process, each of which saves its half of every tensor. Returns the losses of all
    steps, bit for bit; at the end, `losses.json` has them. `lost` is a state that is forgotten when it is loaded."""
    torch.manual_seed(0)
    random.seed(0)
    np.random.seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 9), torch.nn.Dropout(0.3), torch.nn.Linear(9, 3))
    optimizer = torch.optim.AdamW(model.parameters(), 0.02)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    scaler = torch.amp.GradScaler("cpu", init_scale=256.0, growth_interval=3)
    samplers = [DistributedSampler(Noisy(), RANKS, rank) for rank in range(RANKS)]
    loaders = [DataLoader(s.dataset, 4, sampler=s, num_workers=workers) for s in samplers]
    run: dict[str, Any] = {"epoch": 0, "losses": []}
    managers: list[CheckpointManager] = []
    for rank in range(RANKS):
        states = {
            "model": ShardedState(model, rank, RANKS), "optimizer": ShardedState(optimizer, rank, RANKS),
            "schedule": schedule, "scaler": scaler, "data": loaders[rank], "run": run,
        }  # fmt: skip
        kept = {"keep": 2, "sync_files": False, "rank": rank, "world_size": RANKS, "save_id": save_id}
        managers.append(CheckpointManager(folder, states, **kept))
        if lost:
            managers[-1].states[lost] = {}

    def update(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        return loss

    if compiled:
        import graphc
        from tests import quick

        graphc.lowering.executable.Executable._compilation = quick.compilation
        update = graphc.compile(update)
    step = max([manager.load() for manager in managers])
    begun.set()
    while step < steps:
        for sampler in samplers:
            sampler.set_epoch(run["epoch"])
        for batches in zip(*loaders, strict=True):
            loss = update(*(torch.cat(parts) for parts in zip(*batches, strict=True)))
            scaler.step(optimizer)
            scaler.update()
            schedule.step()
            step += 1
            run["losses"].append(loss.item().hex())
            for manager in managers:
                manager.save(step)
            if step == steps:
                break
        run["epoch"] += 1
    managers[0].wait()
    (folder / "losses.json").write_text(json.dumps(run["losses"]))
    return run["losses"]
