"""A run that ends in the middle and goes on in the same process; and what is lost if a state is."""

from __future__ import annotations

from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
import pytest

import eager as torch
from eager.distributed.checkpoint import CheckpointException, CheckpointManager, DamagedCheckpointError
from eager.utils.data import (
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    SubsetRandomSampler,
    get_worker_info,
)
from tests.checkpoints import runs


def halves(folder: Path, lost: str = "", compiled: bool = False) -> list[str]:
    runs.train(Event(), folder, "first", compiled, steps=7)
    return runs.train(Event(), folder, "second", compiled, lost=lost)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return runs.train(Event(), tmp_path_factory.mktemp("whole"), "a")


@pytest.mark.on_numpy
def test_a_resumed_run_has_the_losses_of_one_that_was_not_disturbed(tmp_path: Path, undisturbed: list[str]) -> None:
    assert halves(tmp_path) == undisturbed
    assert len(undisturbed) == runs.STEPS and len(set(undisturbed)) > runs.STEPS // 2


@pytest.mark.on_numpy
def test_a_resumed_run_has_the_same_losses_when_its_step_is_compiled(tmp_path: Path) -> None:
    compiled = True
    whole = runs.train(Event(), tmp_path / "whole", "a", compiled)
    assert halves(tmp_path / "halves", compiled=compiled) == whole


@pytest.mark.parametrize("lost", ["model", "optimizer", "schedule", "scaler", "data", "random"])
def test_each_state_is_needed(tmp_path: Path, undisturbed: list[str], lost: str) -> None:
    """The tests before are able to fail: without one of the states the losses are others."""
    resumed = halves(tmp_path, lost)
    assert resumed[:7] == undisturbed[:7]
    assert (resumed == undisturbed) is (lost == "scaler")  # to scale by a power of two is exact


class Squares(Dataset[Any]):
    def __len__(self) -> int:
        return 23

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.tensor(index**2)


class Stream(IterableDataset[Any]):
    def __iter__(self) -> Any:
        for k in range(23):
            yield k + torch.rand(()) + np.random.rand()


def loaders(workers: int) -> list[DataLoader[Any]]:
    given = torch.Generator().manual_seed(5)
    return [
        DataLoader(Squares(), 3, num_workers=workers),
        DataLoader(Squares(), 3, shuffle=True, num_workers=workers),
        DataLoader(Squares(), 3, shuffle=True, generator=given, num_workers=workers, drop_last=True),
        DataLoader(Squares(), 3, sampler=SubsetRandomSampler(range(4, 20)), num_workers=workers),
        DataLoader(Squares(), 2, sampler=DistributedSampler(Squares(), 2, 1), num_workers=workers),
        DataLoader(Squares(), batch_size=None, shuffle=True, num_workers=workers),
        DataLoader(Stream(), 3, num_workers=workers),
        DataLoader(runs.Noisy(), 3, shuffle=True, num_workers=workers),
    ]


@pytest.mark.parametrize("which", range(8))
@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.deep)])
def test_a_loader_goes_on_where_it_was(workers: int, which: int) -> None:
    """With the same numbers of the default generator in between, two passes long."""
    from eager.rng.state import RandomState

    def seed() -> None:
        torch.manual_seed(3)
        np.random.seed(3)

    def go(loader: Any, found: list[Any], states: list[Any]) -> None:
        for batch in loader:
            found.append((batch, torch.rand(())))
            states.append((loader.state_dict(), RandomState().state_dict()))

    seed()
    loader, found, states = loaders(workers)[which], [], []
    for _ in range(2):
        go(loader, found, states)
    for at in (0, len(states) // 2 - 2, len(states) // 2, len(states) - 3):
        seed()
        other = loaders(workers)[which]
        torch.rand(7)
        state, generators = states[at]
        other.load_state_dict(state)
        RandomState().load_state_dict(generators)
        assert other.state_dict() is state
        rest: list[Any] = []
        go(other, rest, [])
        if at < len(states) // 2:
            go(other, rest, [])
        expected = found[at + 1 :]
        assert len(rest) == len(expected)
        assert [*map(plain, rest)] == [*map(plain, expected)]


def plain(value: Any) -> Any:
    """Lists of numbers, for comparison."""
    return value.tolist() if isinstance(value, torch.Tensor) else [*map(plain, value)]


class Workers(Dataset[Any]):
    def __len__(self) -> int:
        return 9

    def __getitem__(self, index: int) -> tuple[int, int]:
        info: Any = get_worker_info()
        return index, info.id


def test_each_worker_goes_on_with_its_own_share() -> None:
    loader = DataLoader(Workers(), None, num_workers=2)
    batches = iter(loader)
    for _ in range(3):
        next(batches)
    other = DataLoader(Workers(), None, num_workers=2)
    other.load_state_dict(loader.state_dict())
    assert list(other) == list(batches) and len(list(other)) == 9


def share(replicas: int, rank: int, size: int) -> DataLoader[Any]:
    return DataLoader(range(48), size, sampler=DistributedSampler(range(48), replicas, rank))


@pytest.mark.parametrize("replicas", [1, 2, 3, 4, 6])
def test_another_number_of_replicas_goes_on_with_what_is_left(replicas: int) -> None:
    old = [share(2, rank, 3) for rank in range(2)]
    states = []
    for loader in old:
        batches = iter(loader)
        seen = [next(batches) for _ in range(2)]
        states.append(loader.state_dict())
        assert len(seen) == 2
    new = [share(replicas, rank, 12 // replicas) for rank in range(replicas)]
    left: list[int] = []
    for loader in new:
        loader.load_state_dict(states[0])
        left += torch.cat(list(loader)).tolist()
    order = [i for pair in zip(*(list(loader.sampler) for loader in old), strict=True) for i in pair]
    assert sorted(left) == sorted(order[12:])


@pytest.mark.parametrize("workers", [0, 2])
def test_a_pass_that_was_resumed_can_be_resumed_again(workers: int) -> None:
    def loader() -> DataLoader[Any]:
        return DataLoader(range(9), 1, num_workers=workers)

    first, second, third = loader(), loader(), loader()
    next(iter(first))
    second.load_state_dict(first.state_dict())
    assert second.state_dict() == first.state_dict()  # no pass has begun from it yet
    batches = iter(second)
    next(batches)
    third.load_state_dict(second.state_dict())
    left = [int(batch) for batch in third]
    assert left == [int(batch) for batch in batches] == [2, 3, 4, 5, 6, 7, 8]


def test_a_place_between_batches_is_refused() -> None:
    loader = share(2, 0, 3)
    next(iter(loader))
    other = share(2, 0, 4)
    with pytest.raises(ValueError, match="no whole number of batches"):
        other.load_state_dict(loader.state_dict())
    assert len(list(other)) == 6


def manager(folder: Path, state: dict[str, Any], **settings: Any) -> CheckpointManager:
    return CheckpointManager(folder, {"state": state}, background=False, **settings)


def test_the_last_ones_are_kept(tmp_path: Path) -> None:
    state: dict[str, Any] = {"x": torch.zeros(3)}
    saving = manager(tmp_path, state, keep=2)
    assert saving.load() == 0 and saving.latest() is None
    for step in (1, 2, 10, 11):
        state["x"] += 1
        saving.save(step)
    assert saving.steps() == [10, 11] and saving.latest() == 11
    assert sorted(path.name for path in tmp_path.iterdir()) == ["latest", "step-00000010", "step-00000011"]
    assert saving.load(10) == 10 and state["x"].tolist() == [3.0] * 3
    saving.save(11)  # the same step again
    assert saving.load() == 11 and state["x"].tolist() == [3.0] * 3


def test_a_damaged_checkpoint_is_refused_and_others_are_named(tmp_path: Path) -> None:
    state: dict[str, Any] = {"x": torch.arange(100.0), "y": torch.ones(3)}
    saving = manager(tmp_path, state)
    saving.save(1)
    saving.save(2)
    [file] = (tmp_path / "step-00000002").glob("*.safetensors")
    data = bytearray(file.read_bytes())
    data[-20] ^= 1
    file.write_bytes(data)
    state["x"].fill_(-1.0)
    state["y"].fill_(-1.0)
    with pytest.raises(DamagedCheckpointError) as caught:
        saving.load()
    assert file.name in str(caught.value) and caught.value.place == "random.0.torch"
    assert "load(step=...); there are [1, 2]" in caught.value.__notes__[0]
    assert state["x"].tolist() == [-1.0] * 100 and state["y"].tolist() == [-1.0] * 3
    assert saving.load(1) == 1 and state["x"].tolist() == list(range(100))


def test_a_failed_save_in_the_background_comes_out_at_the_next(tmp_path: Path) -> None:
    saving = CheckpointManager(tmp_path, {"state": {"x": torch.zeros(3)}})
    saving.save(1)
    (tmp_path / "step-00000002").write_text("in the way")
    with pytest.raises(FileExistsError):
        saving.save(2)
    saving.save(3)
    saving.wait()
    (tmp_path / "latest").unlink()
    (tmp_path / "latest").mkdir()
    saving.save(4)
    with pytest.raises(CheckpointException, match="the checkpoint before") as caught:
        saving.save(5)
    assert isinstance(caught.value.__cause__, OSError)
    saving.wait()


def test_states_that_can_be_none_are_refused(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="'x' has to be a dict or to have state_dict"):
        CheckpointManager(tmp_path, {"x": 3})
    with pytest.raises(ValueError, match="manager's own"):
        CheckpointManager(tmp_path, {"random": {}})
    with pytest.raises(ValueError, match="keep"):
        CheckpointManager(tmp_path, {}, keep=0)
    with pytest.raises(ValueError, match="same save_id"):
        CheckpointManager(tmp_path, {}, rank=1, world_size=2)
    with pytest.raises(ValueError, match="interval"):
        CheckpointManager(tmp_path, {}, rank=2, world_size=2, save_id="a")


def test_a_state_that_was_not_saved_is_an_error(tmp_path: Path) -> None:
    manager(tmp_path, {"x": 1}).save(1)
    other = CheckpointManager(tmp_path, {"other": {"y": 2}})
    with pytest.raises(CheckpointException, match=r"\['other'\]"):
        other.load()
