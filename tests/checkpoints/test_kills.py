"""A process that is killed at any moment leaves a whole checkpoint, and the run that goes on from it is the same."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

import eager as torch
from eager.distributed.checkpoint import CheckpointManager, DamagedCheckpointError, FileSystemReader
from tests.checkpoints import runs

KILLS = 30


def _is_whole(folder: Path) -> int:
    """The step of the newest checkpoint, all of which is as it was saved; 0 if there is none."""
    state: dict[str, object] = {}
    manager = CheckpointManager(folder, {"state": state})
    step = manager.load()
    if step:
        for other in manager.steps():
            FileSystemReader(manager._folder(other)).verify()
        assert state["text"] == f"step {step}"
        for n in runs.SIZES:
            assert torch.equal(state[f"x{n}"], torch.full((n,), float(step)))
    return step


@pytest.mark.parametrize("background", [False, True])
def test_a_killed_save_leaves_the_one_before(tmp_path: Path, background: bool) -> None:
    moments, steps = random.Random(background), [0]
    for _ in range(KILLS // 2):
        assert not runs.finishes(runs.fill, (tmp_path, background), moments.uniform(0, 0.1))
        steps.append(_is_whole(tmp_path))
    assert steps == sorted(steps)
    assert steps[-1] > 0


def _losses(folder: Path) -> list[str]:
    return json.loads((folder / "losses.json").read_text())


@pytest.mark.parametrize(
    ("compiled", "kills_wanted"),
    [(False, 8), *(pytest.param(compiled, KILLS, marks=pytest.mark.deep) for compiled in (False, True))],
)
def test_a_run_that_is_killed_again_and_again_has_the_same_losses(
    tmp_path: Path, compiled: bool, kills_wanted: int
) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert runs.finishes(runs.train, (whole, "a", compiled), 300)
    moments, attempt, kills = random.Random(1), 0, 0
    while kills < kills_wanted:
        done = runs.finishes(runs.train, (killed, f"r{attempt}", compiled), moments.uniform(0, 0.15))
        attempt, kills = attempt + 1, kills + (not done)
        if done and kills < kills_wanted:  # it was over too soon: again, from the start
            assert _losses(killed) == _losses(whole)
            killed = tmp_path / f"killed{attempt}"
    assert runs.finishes(runs.train, (killed, "last", compiled), 300)
    assert _losses(killed) == _losses(whole)
    assert len(_losses(whole)) == runs.STEPS


@pytest.mark.deep
def test_a_run_with_workers_that_draw_random_numbers_has_the_same_losses(tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert runs.finishes(runs.train, (whole, "a", False, 2), 300)
    for attempt in range(5):
        runs.finishes(runs.train, (killed, f"r{attempt}", False, 2), 0.5 + 0.1 * attempt)
    assert runs.finishes(runs.train, (killed, "last", False, 2), 300)
    assert _losses(killed) == _losses(whole)


def test_a_checkpoint_of_two_runs_is_none(tmp_path: Path) -> None:
    """What a killed run has left of a step is not taken for a part of the next run's."""
    for rank, save_id in ((0, "first"), (1, "second")):
        manager = CheckpointManager(
            tmp_path, {"x": {"x": torch.ones(2)}}, rank=rank, world_size=2, save_id=save_id, background=False
        )
        manager.save(1)
    assert manager.latest() is None and manager.steps() == []
    with pytest.raises(DamagedCheckpointError, match="no whole one has been saved"):
        FileSystemReader(manager._folder(1)).verify()
