"""Save a checkpoint, at once or in the background. As `torch.distributed.checkpoint.state_dict_saver`."""

from __future__ import annotations

import atexit
import math
import os
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any, NamedTuple

import numpy as np

from eager.distributed.checkpoint import nested
from eager.distributed.checkpoint.api import CheckpointException
from eager.distributed.checkpoint.blocks import Region, blocks_of, numpy_of
from eager.distributed.checkpoint.default_planner import DefaultSavePlanner
from eager.distributed.checkpoint.filesystem import FileSystemWriter, Part, Piece
from eager.distributed.checkpoint.index import Entry, describe
from eager.distributed.checkpoint.metadata import Metadata
from eager.distributed.checkpoint.peers import Peers, peers
from eager.distributed.checkpoint.stateful import Stateful

NO_PLACE = "`checkpoint_id` must be specified if storage_{kind} is None."
NO_PLANNER = "{kind} planners of one's own are not supported, got {found}. Remedy: change the state dict instead"
LATE = "the other ranks have not saved their parts within {seconds:,} seconds"
FAILED_BEFORE = "the checkpoint before, which was saved in the background, has failed"
WAIT_SECONDS = 1800.0  # for the slowest rank
_LOOK_SECONDS = 0.02


class Job(NamedTuple):
    """A save that has been agreed on."""

    writer: FileSystemWriter
    peers: Peers
    save_id: str
    part: Part

    def write(self) -> Metadata:
        """Write this rank's part, and with the last rank the whole."""
        return self.writer.write(self.part, self.peers.rank, self.peers.size, self.save_id)

    def write_and_wait(self) -> Metadata:
        """Write, and wait until the ranks of the process group have written theirs."""
        metadata = self.write()
        start = time.monotonic()
        while self.peers.connected and not self.writer.is_whole(self.save_id):
            if time.monotonic() - start > WAIT_SECONDS:
                raise CheckpointException(LATE.format(seconds=WAIT_SECONDS))
            time.sleep(_LOOK_SECONDS)
        return metadata


def save(
    state_dict: Mapping[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_writer: FileSystemWriter | None = None,
    planner: DefaultSavePlanner | None = None,
    process_group: Any = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> Metadata:
    """Save a nest of tensors, arrays, numbers, texts, and of objects with a `state_dict`, to a folder. As PyTorch's.

    Every rank calls it; each writes the blocks that it has, and one of them those that all have. When the last is done
    the checkpoint takes the place of the one before, in one step. Without a process group, this process saves alone.

    use_collectives  False: without waiting for the other ranks

    Raises ValueError for values of the same name, TypeError that names what cannot be saved, before anything is
    written; CheckpointException with the errors of other ranks; OSError.
    """
    wait()
    job = prepared(state_dict, checkpoint_id, storage_writer, planner, process_group, no_dist)
    if not use_collectives:
        return job.write()
    metadata = None
    with job.peers.agreeing("saving"):
        metadata = job.write()
    assert metadata is not None
    return metadata


def prepared(
    state_dict: Mapping[str, Any], checkpoint_id: Any, writer: Any, planner: Any, group: Any, no_dist: bool
) -> Job:
    """Check what is to be saved, and agree with the other ranks who saves what."""
    if planner is not None and not isinstance(planner, DefaultSavePlanner):
        raise TypeError(NO_PLANNER.format(kind="save", found=type(planner).__name__))
    if writer is None:
        if checkpoint_id is None:
            raise RuntimeError(NO_PLACE.format(kind="writer"))
        writer = FileSystemWriter(checkpoint_id)
    elif checkpoint_id is not None:
        writer.path = type(writer.path)(checkpoint_id)
    others = peers(group, no_dist, writer.rank, writer.world_size)
    part, save_id = Part({}, []), ""
    with others.agreeing("saving"):
        part = described({k: v.state_dict() if isinstance(v, Stateful) else v for k, v in state_dict.items()})
        save_id = writer.begin()
    sizes = {(piece.name, piece.region): _bytes(piece, part.entries) for piece in part.pieces}
    found = others.gather((save_id, sizes))
    owners = shared([sizes for _, sizes in found])
    me = others.rank if others.connected else 0
    pieces = [piece for piece in part.pieces if owners[piece.name, piece.region] == me]
    return Job(writer, others, found[0][0], part._replace(pieces=pieces))


def described(tree: Any) -> Part:
    """What this rank has of a nest. Nothing is copied."""
    entries: dict[str, Entry] = {}
    pieces: list[Piece] = []
    for name, (path, value) in nested.flatten(tree).items():
        found = blocks_of(value, name)
        if found is None:
            entries[name] = Entry(path, describe(value, name))
            continue
        entries[name] = Entry(path, None, found.kind, found.dtype.name, found.shape)
        pieces += [Piece(name, region, data) for region, data in found.blocks]
    return Part(entries, pieces)


def shared(held: list[dict[tuple[str, Region], int]]) -> dict[tuple[str, Region], int]:
    """The rank that saves each block, of the ranks that hold it: the one that has the least to save so far.

    held: for each rank, the sizes of the blocks that it holds
    """
    holders: dict[tuple[str, Region], list[int]] = {}
    for rank, sizes in enumerate(held):
        for key in sizes:
            holders.setdefault(key, []).append(rank)
    load = [0] * len(held)
    owners: dict[tuple[str, Region], int] = {}
    # those without a choice first, then the largest
    for key, ranks in sorted(holders.items(), key=lambda item: (len(item[1]), -held[item[1][0]][item[0]], item[0])):
        owners[key] = owner = min(ranks, key=load.__getitem__)
        load[owner] += held[owner][key]
    return owners


def _bytes(piece: Piece, entries: dict[str, Entry]) -> int:
    return math.prod(piece.region.shape) * numpy_of(entries[piece.name].dtype).itemsize


class SaveFuture(Future[Metadata]):
    """The result of `async_save`. An error that nobody asks for comes out at the next save, or at the end."""

    asked = False

    def result(self, timeout: float | None = None) -> Metadata:
        """The metadata, when the checkpoint is whole. Raises what went wrong."""
        found = super().exception(timeout)
        self.asked = True
        if found is not None:
            raise found
        return super().result()

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """What went wrong, when it is over; None if all is well."""
        found = super().exception(timeout)
        self.asked = True
        return found


class _Save(NamedTuple):
    """A save in the background, and the thread that writes it."""

    future: SaveFuture
    thread: threading.Thread


_saves: list[_Save] = []  # the newest, unless it has been waited for


def async_save(
    state_dict: Mapping[str, Any],
    *,
    checkpoint_id: str | os.PathLike[str] | None = None,
    storage_writer: FileSystemWriter | None = None,
    planner: DefaultSavePlanner | None = None,
    process_group: Any = None,
    async_checkpointer_type: Any = None,
    async_stager: Any = None,
    no_dist: bool = False,
    use_collectives: bool = True,
) -> SaveFuture:
    """`save` in the background: values are copied before it returns, and may then change. As PyTorch's.

    The save before is waited for, so that there is one copy at most; the program ends when the last one is written.
    Returns a future, whose `result()` waits for the checkpoint and raises what went wrong; an error that nobody has
    asked for is raised by the next `save` or `async_save`. `async_checkpointer_type` and `async_stager` change nothing:
    a thread writes.
    """
    wait()
    job = prepared(state_dict, checkpoint_id, storage_writer, planner, process_group, no_dist)
    copies = [piece._replace(array=_copied(piece.array)) for piece in job.part.pieces]
    return started((job._replace(part=job.part._replace(pieces=copies))).write_and_wait)


def _copied(array: Callable[[], np.ndarray]) -> Callable[[], np.ndarray]:
    copy = np.array(array(), order="C")
    return lambda: copy


def started(write: Callable[[], Metadata]) -> SaveFuture:
    """Call `write` in a thread."""
    future = SaveFuture()
    future.set_running_or_notify_cancel()

    def run() -> None:
        try:
            future.set_result(write())
        except BaseException as error:
            future.set_exception(error)

    thread = threading.Thread(target=run, name="checkpoint", daemon=False)
    _saves.append(_Save(future, thread))
    thread.start()
    return future


def wait() -> None:
    """Wait until what is saved in the background is written. Raises what went wrong, if nobody has asked for it."""
    if (error := _unheard()) is not None:
        raise CheckpointException(FAILED_BEFORE) from error


def _unheard() -> BaseException | None:
    while _saves:
        save = _saves.pop()
        save.thread.join()
        if save.future.done() and not save.future.asked:  # a fork has no thread that would do it
            return save.future.exception()
    return None


@atexit.register
def _say_at_exit() -> None:
    if (error := _unheard()) is not None:
        traceback.print_exception(error)
