"""Checkpoints in folders: each rank writes its blocks as one safetensors file, and an index says where each lies.

    index.json                the index of the whole, written last, in one step
    ID-0.safetensors          the blocks of rank 0; any reader of the format shows them
    ID-0.json                 what rank 0 has written, until the index is there

ID is one for all ranks of a save, so that what a killed one has left is never taken for a part of the next.
"""

from __future__ import annotations

import json
import math
import os
import re
import uuid
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from eager.checkpoints.description import METADATA
from eager.checkpoints.safetensors_files import NUMPY_OF
from eager.distributed.checkpoint.api import DamagedCheckpointError
from eager.distributed.checkpoint.blocks import Region, as_stored, numpy_of
from eager.distributed.checkpoint.index import (
    INDEX,
    SAVE_ID,
    WRONG_SUM,
    Block,
    Entry,
    Index,
    load_index,
    merge,
    save_index,
    synchronize_folder,
)
from eager.distributed.checkpoint.metadata import Metadata
from graphc.files.writing import DRAFT, draft

NO_SAVE_ID = (
    "ranks that save one checkpoint without a process group have to be told the same save_id, another one for each run "
    "of the program"
)
BAD_SAVE_ID = "save_id must match {pattern}, got {found!r}"
BAD_RANK = "Invalid rank {rank}, rank should be in the interval [0, {last}]"
GIVEN_ID = r"[A-Za-z0-9-]{1,12}"
SHORT = "it has {found:,} bytes, and {expected:,} are expected"
MISSING = "it is missing"
STAGED_BYTES = 1 << 24  # of what a checksum is taken of, or copied, at once

# (folder, save_id, rank) -> how often it has been saved: each save has names of its own, none writes over another
_SAVES: Counter[tuple[str, str, int]] = Counter()
_KIND_OF = {numpy: kind for kind, numpy in NUMPY_OF.items()}


class Piece(NamedTuple):
    """A block that is to be written: of the value named `name`."""

    name: str
    region: Region
    array: Callable[[], np.ndarray]


class Part(NamedTuple):
    """All that one rank has to write. entries: still without blocks"""

    entries: dict[str, Entry]
    pieces: list[Piece]


class FileSystemWriter:
    """Writes checkpoints to the folder `path`. As `torch.distributed.checkpoint.FileSystemWriter`.

    sync_files  wait until the files are on the disk. Without, a crash of the machine, not of the process, can damage
                the newest checkpoint, which is noticed when it is loaded
    overwrite   whether a checkpoint in the folder may be replaced, which is done in one step; else RuntimeError
    rank, world_size, save_id
                without a process group: which of how many writers this is, and what names the save

    The other arguments of PyTorch's change nothing: there is one file for each rank, written by one thread.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        single_file_per_rank: bool = True,
        sync_files: bool = True,
        thread_count: int = 1,
        per_thread_copy_ahead: int = 10_000_000,
        cache_staged_state_dict: bool = False,
        overwrite: bool = True,
        *,
        rank: int = 0,
        world_size: int = 1,
        save_id: str | None = None,
    ):
        if not 0 <= rank < world_size:
            raise ValueError(BAD_RANK.format(rank=rank, last=world_size - 1))
        if save_id is None and world_size > 1:
            raise ValueError(NO_SAVE_ID)
        if save_id is not None and not re.fullmatch(GIVEN_ID, save_id):
            raise ValueError(BAD_SAVE_ID.format(pattern=GIVEN_ID, found=save_id))
        self.path = Path(path)
        self.sync_files, self.overwrite = sync_files, overwrite
        self.rank, self.world_size, self.save_id = rank, world_size, save_id

    @property
    def checkpoint_id(self) -> Path:
        """The folder."""
        return self.path

    def begin(self) -> str:
        """Make the folder; returns the id of a new save. RuntimeError if one is there, and may not be replaced."""
        self.path.mkdir(parents=True, exist_ok=True)
        if not self.overwrite and (self.path / INDEX).exists():
            raise RuntimeError(f"Checkpoint already exists and self.overwrite={self.overwrite!r}.")
        if self.save_id is None:
            return uuid.uuid4().hex[:16]
        key = (str(self.path.resolve()), self.save_id, self.rank)
        _SAVES[key] += 1
        return f"{self.save_id}_{_SAVES[key]}"

    def write(self, part: Part, rank: int, world_size: int, save_id: str) -> Metadata:
        """Write a rank's part, and the index if all the others are there. Returns what this rank knows of it."""
        self._remove(lambda found, owner: found != save_id and (owner == rank or owner >= world_size))
        own = self._write_blocks(part, f"{save_id}-{rank}.safetensors", save_id)
        if world_size == 1:
            return self._commit(merge([own])).metadata()
        save_index(self.path / f"{save_id}-{rank}.json", own, self.sync_files)
        names = [self.path / f"{save_id}-{k}.json" for k in range(world_size)]
        if not all(name.exists() for name in names):
            return own.metadata()
        try:
            parts = [load_index(name) for name in names]
        except DamagedCheckpointError:  # two ranks were the last: the other one has removed them
            if not self.is_whole(save_id):
                raise
            return load_index(self.path / INDEX).metadata()
        whole = self._commit(merge(parts))
        for name in names:
            name.unlink(missing_ok=True)
        return whole.metadata()

    def is_whole(self, save_id: str) -> bool:
        """Whether the save named so is the checkpoint in the folder."""
        return (self.path / INDEX).exists() and load_index(self.path / INDEX).save == save_id

    def finish(self) -> None:
        """Called by the rank that has made the checkpoint whole."""

    def _write_blocks(self, part: Part, name: str, save_id: str) -> Index:
        if not part.pieces:
            return Index(save_id, {}, part.entries)
        arrays = [as_stored(piece.array()) for piece in part.pieces]
        # largest elements first: then each begins where its elements may be mapped
        order = sorted(range(len(arrays)), key=lambda k: -arrays[k].itemsize)
        header: dict[str, Any] = {}
        at = 0
        for k in order:
            array = arrays[k]
            name_in_file = _unused(part.pieces[k], part.entries, header)
            spot = {"shape": array.shape, "data_offsets": [at, at + array.nbytes]}
            header[name_in_file] = {"dtype": _KIND_OF[array.dtype.name], **spot}
            at += array.nbytes
        text = json.dumps(header, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 8)
        blocks: dict[str, list[Block]] = {}
        at = 8 + len(text)
        with draft(self.path / name, durable=self.sync_files) as new, open(new, "wb") as file:
            file.write(len(text).to_bytes(8, "little") + text)
            for k in order:
                data = arrays[k].reshape(-1).view(np.uint8)
                piece = part.pieces[k]
                blocks.setdefault(piece.name, []).append(Block(piece.region, name, at, _written(data, file)))
                at += data.size
        entries = {key: e._replace(blocks=tuple(blocks.get(key, ()))) for key, e in part.entries.items()}
        return Index(save_id, {name: at}, entries)

    def _commit(self, index: Index) -> Index:
        if self.sync_files:
            synchronize_folder(self.path)
        save_index(self.path / INDEX, index, self.sync_files)
        self._remove(lambda found, owner: found != index.save)
        self.finish()
        return index

    def _remove(self, unwanted: Callable[[str, int], bool]) -> None:
        """Remove files of this format that are `unwanted` (save id, rank), unless the checkpoint there has them."""
        known: dict[str, int] = {}
        if (self.path / INDEX).exists():
            try:
                known = load_index(self.path / INDEX).files
            except DamagedCheckpointError:  # nobody knows which files it needs
                return
        for file in self.path.iterdir():
            name = re.sub(rf"^\.(.*)\.[0-9a-f]+{re.escape(DRAFT)}$", r"\1", file.name)  # also what is half written
            found = re.fullmatch(rf"({SAVE_ID})-([0-9]+)\.(safetensors|json)", name)
            if found and name not in known and unwanted(found[1], int(found[2])):
                file.unlink(missing_ok=True)


def _written(data: Any, file: Any) -> int:
    """Write bytes; returns their checksum."""
    total = 0
    for start in range(0, data.size, STAGED_BYTES):
        piece = data[start : start + STAGED_BYTES]
        total = zlib.crc32(piece, total)
        file.write(piece)
    return total


def _unused(piece: Piece, entries: dict[str, Entry], taken: dict[str, Any]) -> str:
    """The name of a block in its file: the value's own if it is all of it."""
    whole = piece.region == Region.whole(entries[piece.name].shape)
    name = piece.name if whole else f"{piece.name}@{','.join(map(str, piece.region.offsets))}"
    while name in taken or name == METADATA:
        name += "_"
    return name


class FileSystemReader:
    """Reads the checkpoint in the folder `path`. As `torch.distributed.checkpoint.FileSystemReader`."""

    def __init__(self, path: str | os.PathLike[str]):
        self.path = Path(path)

    @property
    def checkpoint_id(self) -> Path:
        """The folder."""
        return self.path

    def read_metadata(self) -> Metadata:
        """What the checkpoint holds. DamagedCheckpointError if there is none, or its index is damaged."""
        return self.read_index().metadata()

    def read_index(self) -> Index:
        """The index. DamagedCheckpointError if there is none, or it is damaged."""
        return load_index(self.path / INDEX)

    def open(self, index: Index) -> Blocks:
        """The blocks of an index, for reading."""
        return Blocks(self.path, index)

    def verify(self) -> Metadata:
        """Check every byte. DamagedCheckpointError that names the file and the value in it that is damaged."""
        index = self.read_index()
        blocks = self.open(index)
        for name, entry in index.entries.items():
            blocks.check(name, entry, [Region.whole(entry.shape)])
        return index.metadata()


class Blocks:
    """Reads blocks out of the files of a checkpoint, each mapped into memory when it is first needed."""

    def __init__(self, path: Path, index: Index):
        self._path, self._index = path, index
        self._files: dict[str, np.ndarray] = {}

    def check(self, name: str, entry: Entry, wanted: list[Region]) -> None:
        """Compare the checksums of the blocks that `wanted` regions need. DamagedCheckpointError names a wrong one."""
        for block in entry.blocks:
            if not any(block.region.common(region) for region in wanted):
                continue
            data: Any = self._bytes(name, entry, block)
            total = 0
            for start in range(0, data.size, STAGED_BYTES):
                total = zlib.crc32(data[start : start + STAGED_BYTES], total)
            if total != block.crc32:
                raise self._damaged(block.file, WRONG_SUM.format(found=total, expected=block.crc32), name)

    def read(self, name: str, entry: Entry, region: Region) -> np.ndarray:
        """The data of a region, in memory of their own."""
        dtype = numpy_of(entry.dtype)
        result = np.empty(region.shape, dtype)
        for block in entry.blocks:
            common = block.region.common(region)
            if common is not None:
                stored = self._bytes(name, entry, block).view(dtype).reshape(block.region.shape)
                result[common.within(region)] = stored[common.within(block.region)]
        return result

    def _bytes(self, name: str, entry: Entry, block: Block) -> np.ndarray:
        size = math.prod(block.region.shape) * numpy_of(entry.dtype).itemsize
        data = self._mapped(block.file)
        if block.at + size > data.size:
            raise self._damaged(block.file, SHORT.format(found=data.size, expected=block.at + size), name)
        return data[block.at : block.at + size]

    def _mapped(self, file: str) -> np.ndarray:
        if file not in self._files:
            path = self._path / file
            if not path.is_file():
                raise self._damaged(file, MISSING, "")
            if (found := path.stat().st_size) != (expected := self._index.files[file]):
                raise self._damaged(file, SHORT.format(found=found, expected=expected), "")
            self._files[file] = np.memmap(path, np.uint8, "r").view(np.ndarray)
        return self._files[file]

    def _damaged(self, file: str, problem: str, place: str) -> DamagedCheckpointError:
        return DamagedCheckpointError(problem, file=f"'{self._path / file}'", place=place)
