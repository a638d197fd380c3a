"""Loaders: PyTorch's order of samples for a seed, and what workers promise. What they print is in snippets/data.md."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eager
from eager.utils import data
from tests.depth import one_in
from tests.oracle import asked_of_torch, torch_or_skip

# JAX, which other tests load, warns of every fork; a worker runs NumPy only
pytestmark = pytest.mark.filterwarnings("ignore:os.fork")


class Numbers(data.Dataset[int]):
    def __init__(self, count: int, read: Callable[[int], Any] = lambda i: i):
        self.count, self.read = count, read

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: Any) -> Any:
        return self.read(index)


class Stream(data.IterableDataset[int]):
    def __init__(self, count: int):
        self.count = count

    def __iter__(self):
        info = data.get_worker_info()
        return iter(range(self.count)) if info is None else iter(range(info.id, self.count, info.num_workers))


LOADERS: dict[str, dict[str, Any]] = {
    "shuffle": {"shuffle": True, "batch_size": 3},
    "drop_last": {"shuffle": True, "batch_size": 4, "drop_last": True},
    "no batches": {"shuffle": True, "batch_size": None},
    "workers": {"shuffle": True, "batch_size": 3, "num_workers": 2},
    "persistent": {"shuffle": True, "batch_size": 3, "num_workers": 2, "persistent_workers": True},
    "prefetch": {"shuffle": True, "batch_size": 2, "num_workers": 1, "prefetch_factor": 5},
}


@asked_of_torch("own_generator", one_in(2, [True, False]))
@asked_of_torch("settings", LOADERS.values(), ids=list(LOADERS))
def test_order_and_stream_are_pytorchs_over_epochs(settings: dict[str, Any], own_generator: bool):
    torch = torch_or_skip()

    def epochs(module: Any) -> list[Any]:
        module.manual_seed(3)
        generator = module.Generator().manual_seed(5) if own_generator else None
        loader = module.utils.data.DataLoader(range(11), generator=generator, **settings)
        seen = [[np.asarray(batch).tolist() for batch in loader] for _ in range(3)]
        return [*seen, module.rand(2).tolist()]

    assert epochs(eager) == epochs(torch)


@asked_of_torch("size", [1, 20, 1000])
@asked_of_torch(("samples", "replacement"), [(1, False), (1, True), (64, True)])
@asked_of_torch("dtype", ["float32", "float64"])
def test_multinomial_draws_pytorchs_numbers(size: int, samples: int, replacement: bool, dtype: str):
    torch = torch_or_skip()
    weights = np.random.default_rng(size).random((3, size)) + 0.01
    found = []
    for module in (torch, eager):
        module.manual_seed(2)
        p = module.tensor(weights, dtype=getattr(module, dtype))
        found.append(module.multinomial(p, samples, replacement).tolist())
    assert found[0] == found[1]


def test_multinomial_without_replacement_draws_each_once():
    eager.manual_seed(0)
    drawn = eager.multinomial(eager.ones(5, 100), 100)
    assert [sorted(row) for row in drawn.tolist()] == [list(range(100))] * 5
    counts = np.bincount(eager.multinomial(eager.tensor([1.0, 2.0, 7.0]), 20_000, True).numpy(), minlength=3)
    np.testing.assert_allclose(counts / 20_000, [0.1, 0.2, 0.7], atol=0.02)


def test_workers_are_processes_that_seed_every_generator():
    def read(index: int) -> Any:
        info = data.get_worker_info()
        assert info is not None
        return os.getpid(), info.id, info.seed, random.random(), float(np.random.rand()), eager.rand(1).item()

    eager.manual_seed(0)
    first = [batch[0] for batch in data.DataLoader(Numbers(4, read), num_workers=2, collate_fn=list)]
    eager.manual_seed(0)
    again = [batch[0] for batch in data.DataLoader(Numbers(4, read), num_workers=2, collate_fn=list)]
    assert [row[1:] for row in first] == [row[1:] for row in again]
    assert len({row[0] for row in first}) == 2 and os.getpid() not in {row[0] for row in first}
    assert first[1][2] == first[0][2] + 1
    assert len({row[-1] for row in first}) == 4
    assert data.get_worker_info() is None


def test_a_late_batch_waits_for_its_turn_unless_order_does_not_matter(tmp_path: Path):
    def reader(done: Path, last: int | None = None) -> Callable[[int], int]:
        """What is late with 0: until there is the file `done`, which reading the `last` index makes."""

        def read(index: int) -> int:
            if index == last:
                done.touch()
            while index == 0 and not done.exists():
                time.sleep(0.01)
            return index

        return read

    settings = {"batch_size": None, "num_workers": 2, "prefetch_factor": 3}
    ordered = data.DataLoader(Numbers(6, reader(tmp_path / "the last has begun", last=5)), **settings)
    assert list(ordered) == list(range(6))
    done = tmp_path / "one has come"
    loose = iter(data.DataLoader(Numbers(6, reader(done)), **settings, in_order=False, timeout=300))
    first = next(loose)
    done.touch()
    assert first != 0
    assert sorted([first, *loose]) == list(range(6))


COUNTS = [(count, replacement) for count in (1, 31, 32, 33, 64, 70) for replacement in (False, True)]


def random_indices(module: Any, loaders: Any, count: int, replacement: bool) -> list[int]:
    generator = module.Generator().manual_seed(5)
    return list(loaders.RandomSampler(range(32), replacement, count, generator))


@pytest.mark.parametrize(("count", "replacement"), COUNTS)
def test_a_random_sampler_yields_as_many_as_it_says(count: int, replacement: bool):
    found = random_indices(eager, data, count, replacement)
    assert len(found) == count == len(data.RandomSampler(range(32), replacement, count))
    assert set(found) <= set(range(32)) and (replacement or len(set(found)) == min(count, 32))


@asked_of_torch(("count", "replacement"), COUNTS)
def test_a_random_sampler_draws_pytorchs_numbers(count: int, replacement: bool):
    torch = torch_or_skip()
    expected = random_indices(torch, torch.utils.data, count, replacement)
    assert random_indices(eager, data, count, replacement) == expected


class Strange(Exception):
    """Takes no single message."""

    def __init__(self, a: int, b: int):
        super().__init__(a, b)


@pytest.mark.parametrize(("error", "kind"), [(ValueError("v"), ValueError), (Strange(1, 2), RuntimeError)])
def test_an_error_in_a_worker_is_raised_again_with_its_traceback(error: Exception, kind: type[Exception]):
    def read(index: int) -> int:
        if index == 1:
            raise error
        return index

    batches = iter(data.DataLoader(Numbers(4, read), num_workers=2))
    assert next(batches).item() == 0
    with pytest.raises(kind, match=rf"(?s)Caught {type(error).__name__} in DataLoader worker process 1.*Traceback"):
        next(batches)
    assert next(batches).item() == 2


def test_an_error_in_worker_init_fn_is_raised():
    def init(worker: int) -> None:
        raise OSError("no such disk")

    with pytest.raises(OSError, match="no such disk"):
        list(data.DataLoader(range(4), num_workers=1, worker_init_fn=init))


def test_what_cannot_be_sent_is_an_error_and_no_hang():
    with pytest.raises(Exception, match=r"(?i)pickle|local object"):
        list(data.DataLoader(Numbers(2, lambda i: lambda: i), batch_size=None, num_workers=1))


def test_a_worker_that_dies_is_reported():
    def read(index: int) -> int:
        os._exit(1)

    message = r"DataLoader worker \(pid\(s\) \d+\) exited unexpectedly: worker 0 ended with exit code 1|timed out"
    with pytest.raises(RuntimeError, match=message):
        list(data.DataLoader(Numbers(2, read), num_workers=1, timeout=1))


def test_workers_end_with_the_pass_and_with_the_iterator():
    batches: Any = iter(data.DataLoader(range(100), num_workers=2))
    next(batches)
    processes = batches._processes
    del batches
    assert not any(process.is_alive() for process in processes)
    whole: Any = iter(data.DataLoader(range(4), num_workers=2))
    processes = whole._processes
    assert len(list(whole)) == 4
    assert not any(process.is_alive() for process in processes)
    with pytest.raises(StopIteration):
        next(whole)


def test_persistent_workers_live_on_and_start_again_after_a_pass_that_was_left():
    loader = data.DataLoader(Stream(10), batch_size=2, num_workers=2, persistent_workers=True)
    expected = [batch.tolist() for batch in loader]
    first: Any = loader._iterator
    pids = [process.pid for process in first._processes]
    for _ in loader:
        break
    assert [batch.tolist() for batch in loader] == expected
    assert loader._iterator is first and [process.pid for process in first._processes] == pids


def test_workers_can_be_spawned():
    loader = data.DataLoader(range(5), batch_size=2, num_workers=1, multiprocessing_context="spawn")
    assert [batch.tolist() for batch in loader] == [[0, 1], [2, 3], [4]]


def test_gradients_and_training_work_in_the_main_process_after_a_fork():
    loader = data.DataLoader(data.TensorDataset(eager.ones(4, 2)), batch_size=2, num_workers=1)
    w = eager.ones(2, requires_grad=True)
    for (x,) in loader:
        (x @ w).sum().backward()
    assert w.grad is not None and w.grad.tolist() == [4.0, 4.0]


@pytest.mark.parametrize(("length", "seen"), [(3, 4), (10, None)])
def test_a_stream_that_is_longer_than_it_says_warns(length: int, seen: int | None):
    class Wrong(Stream):
        def __len__(self) -> int:
            return length

    loader = data.DataLoader(Wrong(5), batch_size=1)
    assert len(loader) == length
    if seen is None:
        assert len(list(loader)) == 5
        return
    with pytest.warns(UserWarning, match=f"was reported to be {length}.*but {seen} samples have been fetched"):
        batches = iter(loader)
        for _ in range(seen):
            next(batches)


def test_more_workers_than_cores_and_pinned_memory_warn():
    with pytest.warns(UserWarning, match="will create 1000 worker processes"):
        data.DataLoader(range(4), num_workers=1000)
    with pytest.warns(UserWarning, match="no accelerator is found"):
        iter(data.DataLoader(range(4), pin_memory=True))


def test_getitems_fetches_a_batch_at_once():
    class Many(Numbers):
        calls = 0

        def __getitems__(self, indices: list[int]) -> list[int]:
            Many.calls += 1
            return [10 * i for i in indices]

    assert [b.tolist() for b in data.DataLoader(Many(4), batch_size=2)] == [[0, 10], [20, 30]]
    assert Many.calls == 2
    assert data.Subset(Many(4), [3, 1]).__getitems__([0, 1]) == [30, 10]
    with pytest.raises(NotImplementedError, match="__getitems__"):
        type("Half", (data.Subset,), {"__getitem__": lambda self, i: i})([1], [0])


def test_collate_keeps_the_kind_of_containers_and_takes_types_of_ones_own():
    from collections import OrderedDict

    from eager.utils.data.collate import collate, default_collate_fn_map

    made = data.default_collate([OrderedDict(b=1, a=2), OrderedDict(b=3, a=4)])
    assert type(made) is OrderedDict and list(made) == ["b", "a"]
    table = {complex: lambda batch, *, collate_fn_map: sum(batch), **default_collate_fn_map}
    assert collate([(1j, 1), (2j, 2)], collate_fn_map=table)[0] == 3j
