"""Checkpoints of a training run: saved every so often, the last few kept, the newest resumed from.

runs/a/latest          the name of the newest whole checkpoint
runs/a/step-00000200/  a checkpoint, as `save` writes it
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eager.distributed.checkpoint import nested
from eager.distributed.checkpoint.api import CheckpointException, DamagedCheckpointError
from eager.distributed.checkpoint.filesystem import FileSystemReader, FileSystemWriter
from eager.distributed.checkpoint.index import INDEX, synchronize_folder
from eager.distributed.checkpoint.peers import peers
from eager.distributed.checkpoint.state_dict_loader import Plan, planned
from eager.distributed.checkpoint.state_dict_saver import async_save, save, wait
from eager.distributed.checkpoint.stateful import Stateful
from eager.rng.state import RandomState
from graphc.files.writing import write

LATEST, RANDOM = "latest", "random"
_STEP = re.compile(r"step-([0-9]{8,})")
RESERVED = "'{name}' is the manager's own"
NO_STATE = "'{name}' has to be a dict or to have state_dict and load_state_dict, got {kind}"
OTHER_KEYS = "the checkpoint has {found}, and the manager saves {expected}"
REMEDY = "Remedy: load an older one, by load(step=...); there are {steps}"


class CheckpointManager:
    """Saves and resumes a training run.

        manager = CheckpointManager("runs/a", {"model": model, "optimizer": optimizer, "data": loader, "run": run})
        for step in range(manager.load(), steps):
            ...
            manager.save(step + 1)

    folder      where the checkpoints are; ranks share it
    states      by name, what has `state_dict` and `load_state_dict`, or a dict, whose entries are set when it is loaded
    per_rank    names of states that each rank has its own of, such as the position in its share of the data. The states
                of random generators, which are saved without being named, are of this kind
    keep        how many checkpoints are kept; older ones are removed when a new one is whole
    background  write in a thread; an error comes out at the next `save`, or at `wait`
    sync_files  wait until the files are on the disk: as for FileSystemWriter
    rank, world_size, save_id
                without a process group: as for FileSystemWriter

    A process that is killed at any moment leaves `latest` with the name of a whole checkpoint. TypeError for a state
    that can be none.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        states: Mapping[str, Any],
        *,
        per_rank: tuple[str, ...] = ("data",),
        keep: int = 3,
        background: bool = True,
        sync_files: bool = True,
        process_group: Any = None,
        rank: int = 0,
        world_size: int = 1,
        save_id: str | None = None,
    ):
        for name, state in states.items():
            if name == RANDOM:
                raise ValueError(RESERVED.format(name=name))
            if not isinstance(state, (dict, Stateful)):
                raise TypeError(NO_STATE.format(name=name, kind=type(state).__name__))
        if keep < 1:
            raise ValueError(f"keep should be at least 1, got {keep}")
        self.folder = Path(folder)
        self.states = {**states, RANDOM: RandomState()}
        self.keep, self.background, self._group = keep, background, process_group
        self._own = {name for name in (*per_rank, RANDOM) if name in self.states}
        self._peers = peers(process_group, False, rank, world_size)
        self._writer: dict[str, Any] = {"save_id": save_id, "sync_files": sync_files}
        if not self._peers.connected:
            self._writer |= {"rank": rank, "world_size": world_size}
        FileSystemWriter(self.folder, **self._writer)  # what is wrong with the arguments is said now

    def _key(self, name: str) -> str:
        """What a state is called in a checkpoint."""
        return f"{name}.{self._peers.rank}" if name in self._own else name

    def steps(self) -> list[int]:
        """The steps that whole checkpoints were saved at, the newest last."""
        return [step for step, path in self._folders() if (path / INDEX).exists()]

    def latest(self) -> int | None:
        """The step of the newest whole checkpoint; None if there is none."""
        try:
            found = _STEP.fullmatch((self.folder / LATEST).read_text().strip())
        except FileNotFoundError:
            return None
        if found is None:
            raise DamagedCheckpointError("it names no checkpoint", file=f"'{self.folder / LATEST}'")
        return int(found[1])

    def save(self, step: int) -> None:
        """Save all states as those after `step` steps. Raises as `save`; in the background, also what went wrong
        before."""
        tree = {self._key(name): _state(state) for name, state in self.states.items()}
        writer = _StepWriter(self, step, **self._writer)
        (async_save if self.background else save)(tree, storage_writer=writer, process_group=self._group)

    def load(self, step: int | None = None) -> int:
        """Restore all states from the newest checkpoint, or that of `step`. Returns its step; 0 if there is none.

        All of it is read and checked before anything is changed. Where the saved run had fewer ranks, the new ones take
        over the states of rank 0, but keep the random generators that they have. Raises DamagedCheckpointError that
        names the file, and the steps that there are besides; CheckpointException for a state that was not saved.
        """
        wait()
        if step is None and (step := self.latest()) is None:
            return 0
        with self._peers.agreeing("loading"):
            try:
                found, plan = self._plan(FileSystemReader(self._folder(step)))
            except DamagedCheckpointError as error:
                error.add_note(REMEDY.format(steps=self.steps()))
                raise
        with self._peers.agreeing("loading"):
            tree = plan.tree()
            for name, state in self.states.items():
                if (key := self._saved_as(name, found)) not in found:
                    continue
                if isinstance(state, Stateful):
                    state.load_state_dict(tree[key])
                else:
                    state.clear()
                    state.update(tree[key])
        return step

    def _plan(self, reader: FileSystemReader) -> tuple[set[str], Plan]:
        """The names of the states in a checkpoint, and the plan to read those that this rank needs."""
        index = reader.read_index()
        found = {entry.path[0][1] for entry in index.entries.values()}
        templates = {self._saved_as(name, found): _state(state) for name, state in self.states.items()}
        new = {self._key(RANDOM)} if self._peers.rank else set()
        if missing := [key for key, state in templates.items() if key not in found | new and state]:
            raise CheckpointException(OTHER_KEYS.format(found=sorted(found), expected=missing))
        wanted = {name: entry for name, entry in index.entries.items() if entry.path[0][1] in templates}
        return found, planned(reader, index, wanted, nested.flatten(templates))

    def _saved_as(self, name: str, found: set[str]) -> str:
        """What a state is called in the checkpoint that has `found`."""
        own, first = self._key(name), f"{name}.0"
        return first if name in self._own and name != RANDOM and own not in found and first in found else own

    def wait(self) -> None:
        """Wait until what is saved in the background is written, and raise what went wrong."""
        wait()

    def _folder(self, step: int) -> Path:
        return self.folder / f"step-{step:08}"

    def _folders(self) -> list[tuple[int, Path]]:
        found = ((_STEP.fullmatch(path.name), path) for path in self.folder.iterdir())
        return sorted((int(match[1]), path) for match, path in found if match)

    def _finished(self, step: int) -> None:
        """A checkpoint is whole: it becomes the latest, and those that are not kept are removed."""
        durable = self._writer["sync_files"]
        write(self.folder / LATEST, f"{self._folder(step).name}\n", durable=durable)
        if durable:
            synchronize_folder(self.folder)
        whole = [s for s, path in self._folders() if s <= step and (path / INDEX).exists()]
        oldest = whole[-self.keep :][0]
        for other, path in self._folders():
            if other < oldest:
                (path / INDEX).unlink(missing_ok=True)  # first: from here on it is no checkpoint
                shutil.rmtree(path, ignore_errors=True)  # a rank may be doing the same


def _state(state: Any) -> dict[str, Any]:
    return state.state_dict() if isinstance(state, Stateful) else state


class _StepWriter(FileSystemWriter):
    """Tells the manager when a checkpoint is whole."""

    def __init__(self, manager: CheckpointManager, step: int, **settings: Any):
        super().__init__(manager._folder(step), **settings)
        self._manager, self._step = manager, step

    def finish(self) -> None:
        self._manager._finished(self._step)
