"""Ranks of a process group: here threads, with the few functions of `torch.distributed` that checkpoints call."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import eager as torch
import eager.distributed
import eager.distributed.checkpoint as dcp
from eager.distributed.checkpoint import state_dict_saver
from eager.distributed.checkpoint.state_dict_loader import read_tree
from eager.utils.data import DistributedSampler
from tests.checkpoints.sharded import Sharded

SIZE = 3


@pytest.fixture
def ranks(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[int], Any]], list[Any]]:
    """Calls a function with each rank, and returns the results, or the errors, in their order."""
    here, table, barrier = threading.local(), [None] * SIZE, threading.Barrier(SIZE, timeout=60)

    def all_gather_object(found: list[Any], value: Any, group: Any = None) -> None:
        table[here.rank] = value
        barrier.wait()
        found[:] = table
        barrier.wait()

    for name, value in {
        "is_available": lambda: True, "is_initialized": lambda: True, "get_world_size": lambda group=None: SIZE,
        "get_rank": lambda group=None: here.rank, "all_gather_object": all_gather_object,
    }.items():  # fmt: skip
        monkeypatch.setattr(eager.distributed, name, value, raising=False)

    def each(function: Callable[[int], Any]) -> list[Any]:
        def run(rank: int) -> Any:
            here.rank = rank
            try:
                return function(rank)
            except Exception as error:
                return error

        with ThreadPoolExecutor(SIZE) as pool:
            return list(pool.map(run, range(SIZE)))

    return each


def test_ranks_save_and_load_together(tmp_path: Path, ranks: Any) -> None:
    x, same = torch.rand(7, 2), {f"y{k}": torch.rand(10) for k in range(SIZE)}
    results = ranks(lambda r: dcp.save({"x": Sharded.part(x, r, SIZE), **same, f"r{r}": r}, checkpoint_id=tmp_path))
    assert all(isinstance(result, dcp.Metadata) for result in results), results
    files = [torch.load(path) for path in tmp_path.glob("*.safetensors")]
    assert sorted(name for file in files for name in file if "y" in name) == sorted(same)  # each once
    assert all(len(file) == 2 for file in files)
    new = torch.zeros(7, 2)
    states = [{"x": Sharded.part(new, r, SIZE), "y1": torch.zeros(10), f"r{r}": -1} for r in range(SIZE)]
    assert ranks(lambda r: dcp.load(states[r], checkpoint_id=tmp_path)) == [None] * SIZE
    assert torch.equal(new, x) and all(torch.equal(s["y1"], same["y1"]) for s in states)
    assert [s[f"r{r}"] for r, s in enumerate(states)] == [0, 1, 2]


def test_an_error_of_one_rank_comes_out_at_all(tmp_path: Path, ranks: Any) -> None:
    ranks(lambda r: dcp.save({"x": torch.ones(2)}, checkpoint_id=tmp_path))
    before = sorted(tmp_path.iterdir())
    errors = ranks(lambda r: dcp.save({"x": print if r == 1 else torch.zeros(2)}, checkpoint_id=tmp_path))
    assert isinstance(errors[1], TypeError) and sorted(tmp_path.iterdir()) == before
    assert [e.failures.keys() for e in (errors[0], errors[2])] == [{1}] * 2 and "(rank 1) TypeError" in str(errors[0])
    targets = [{"x": torch.zeros(2)}, {"x": torch.zeros(3)}, {"x": torch.zeros(2)}]
    errors = ranks(lambda r: dcp.load(targets[r], checkpoint_id=tmp_path))
    assert all(isinstance(e, dcp.CheckpointException) for e in errors)
    assert all(t["x"].sum() == 0 for t in targets)  # no rank has been changed


def test_a_save_in_the_background_ends_when_all_have_saved(tmp_path: Path, ranks: Any) -> None:
    """The jobs are made together; then rank 2 is late."""
    x = torch.rand(6, 2)

    def job(rank: int) -> Any:
        return state_dict_saver.prepared({"x": Sharded.part(x, rank, SIZE)}, tmp_path, None, None, None, False)

    jobs = ranks(job)
    futures = [state_dict_saver.started(job.write_and_wait) for job in jobs[:2]]
    assert not any(future.done() for future in futures)
    jobs[2].write_and_wait()
    assert all(isinstance(future.result(60), dcp.Metadata) for future in futures)
    assert torch.equal(read_tree(dcp.FileSystemReader(tmp_path))["x"], x)


def test_a_manager_of_each_rank(tmp_path: Path, ranks: Any) -> None:
    weights = torch.arange(6.0)

    def save(rank: int) -> None:
        states = {"model": {"w": Sharded.part(weights, rank, SIZE)}, "data": {"at": rank}}
        dcp.CheckpointManager(tmp_path, states, background=False).save(5)

    assert ranks(save) == [None] * SIZE
    new, found = torch.zeros(6), [{"at": -1} for _ in range(SIZE)]

    def load(rank: int) -> int:
        states = {"model": {"w": Sharded.part(new, rank, SIZE)}, "data": found[rank]}
        return dcp.CheckpointManager(tmp_path, states).load()

    assert ranks(load) == [5] * SIZE and torch.equal(new, weights)
    assert found == [{"at": 0}, {"at": 1}, {"at": 2}]


def test_a_sampler_asks_the_process_group(ranks: Any) -> None:
    assert ranks(lambda r: list(DistributedSampler(range(6), shuffle=False))) == [[0, 3], [1, 4], [2, 5]]
