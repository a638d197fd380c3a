"""The index of a checkpoint: which values it has, and in which file, at which byte, the blocks of each array lie.

    {"version": 1, "crc32": ..., "content": {
        "save": "5f1c...", "files": {"5f1c...-0.safetensors": 4096},
        "entries": {
            "model.weight": {"path": [["dict", "model"], ["ordered", "weight"]], "kind": "tensor", "dtype": "float32",
                "shape": [4, 2], "blocks": [{"offsets": [0, 0], "shape": [4, 2], "file": "5f1c...-0.safetensors",
                                             "at": 128, "crc32": 2768625435}]},
            "step": {"path": [["dict", "step"]], "value": 12}}}}

Each rank writes such a text about its own blocks; the last one to do so merges them to the index of the whole, which is
written in one step: a folder is a checkpoint if, and only if, it has an index. Reading one runs no code.
"""

from __future__ import annotations

import json
import math
import os
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from eager.checkpoints.description import DTYPES, Reader, Writer
from eager.core.dtypes import Size
from eager.distributed.checkpoint import nested
from eager.distributed.checkpoint.api import CheckpointException, DamagedCheckpointError
from eager.distributed.checkpoint.blocks import KINDS, Region, dtype_of, numpy_of
from eager.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    TensorProperties,
    TensorStorageMetadata,
)
from graphc.files.contents import Refuse, contents
from graphc.files.json_text import Limits, parsed
from graphc.files.schema import Anything, OneOf, Record, Row, Table, Text, Tuple, Whole
from graphc.files.writing import write

INDEX = "index.json"
VERSION = 1
LIMITS = Limits(2**28, 64, 20_000_000)
ENTRIES = "content.entries."
SAVE_ID = r"[A-Za-z0-9_-]{1,20}"  # so that the names of drafts have all of it
FILE = rf"{SAVE_ID}-[0-9]{{1,7}}\.safetensors"
NO_CHECKPOINT = "there is no checkpoint in it: no whole one has been saved there"
WRONG_SUM = "its checksum is {found}, and {expected} is expected"
INCOMPLETE = "the blocks of {name} hold {found:,} of its {expected:,} elements: not every rank has saved its part"
OVERLAPPING = "blocks of {name} overlap: the ranks have divided it in different ways"
DISAGREE = "the ranks disagree about {name}: {first} and {second}"

_ANY, _WHOLE, _EXTENTS = Anything(), Whole(0), Row(Whole(0), most=64)
_NAME, _SUM = Text(most=LIMITS.size), Whole(0, 2**32 - 1)
_PATH = Row(Tuple((OneOf(("dict", "ordered", "list", "tuple")), _ANY)))
_FILE = Text(FILE, "the name of a file of a checkpoint")
_BLOCK = Record({"offsets": _EXTENTS, "shape": _EXTENTS, "file": _FILE, "at": _WHOLE, "crc32": _SUM})
_ARRAY = Record({
    "path": _PATH, "kind": OneOf(KINDS), "dtype": OneOf(tuple(DTYPES)), "shape": _EXTENTS, "blocks": Row(_BLOCK),
})  # fmt: skip
_VALUE = Record({"path": _PATH, "value": _ANY})
_CONTENT = Record({"save": Text(SAVE_ID, "an id"), "files": Table(_FILE, _WHOLE), "entries": Table(_NAME, _ANY)})
_INDEX = Record({"version": _WHOLE, "crc32": _SUM, "content": _ANY})


class Block(NamedTuple):
    """A block of an array in a file: `at` is its first byte."""

    region: Region
    file: str
    at: int
    crc32: int


class Entry(NamedTuple):
    """A value of a checkpoint: an array, with `kind`, or any other, with `node`, which describes it."""

    path: nested.Path
    node: Any = None
    kind: str = ""
    dtype: str = ""
    shape: tuple[int, ...] = ()
    blocks: tuple[Block, ...] = ()

    def value(self, refuse: Refuse) -> Any:
        """What `node` describes."""
        return Reader({}, refuse).value(self.node)


class Index(NamedTuple):
    """What a checkpoint, or the part of one rank, has. files: their sizes by name."""

    save: str
    files: dict[str, int]
    entries: dict[str, Entry]

    def metadata(self) -> Metadata:
        """The same as PyTorch describes it."""

        def of(entry: Entry) -> TensorStorageMetadata | BytesStorageMetadata:
            if not entry.kind:
                return BytesStorageMetadata()
            chunks = [ChunkStorageMetadata(Size(b.region.offsets), Size(b.region.shape)) for b in entry.blocks]
            return TensorStorageMetadata(TensorProperties(dtype_of(entry.dtype)), Size(entry.shape), chunks)

        paths = {name: tuple(key for _, key in entry.path) for name, entry in self.entries.items()}
        return Metadata({name: of(entry) for name, entry in self.entries.items()}, paths)


def describe(value: Any, place: str) -> Any:
    """A value that is no array as JSON. TypeError that names its `place` for what cannot be kept."""
    writer = Writer()
    node = writer.node(value, place)
    if writer.arrays():
        kind = type(value).__name__
        raise TypeError(f"cannot save {place}: arrays inside of a {kind}. Remedy: put them into dicts, lists or tuples")
    return node


def save_index(path: Path, index: Index, durable: bool) -> None:
    """Write it in one step, and wait until it is on the disk if it is to be `durable`."""
    entries: dict[str, Any] = {}
    for name, entry in index.entries.items():
        steps = [[kind, describe(key, f"the key {key!r}")] for kind, key in entry.path]
        entries[name] = {"path": steps, "value": entry.node} if not entry.kind else {
            "path": steps, "kind": entry.kind, "dtype": entry.dtype, "shape": entry.shape,
            "blocks": [{**b.region._asdict(), "file": b.file, "at": b.at, "crc32": b.crc32} for b in entry.blocks],
        }  # fmt: skip
    content = {"save": index.save, "files": index.files, "entries": entries}
    text = json.dumps({"version": VERSION, "crc32": _checksum(content), "content": content})
    write(path, text, durable=durable)
    if durable:
        synchronize_folder(path.parent)


def _checksum(content: Any) -> int:
    return zlib.crc32(json.dumps(content, sort_keys=True).encode())


def load_index(path: Path) -> Index:
    """Read one, all of which is checked, that of the whole also for gaps.

    DamagedCheckpointError that names the file and the place in it.
    """
    refuse = DamagedCheckpointError.of(f"'{path}'")
    try:
        data = contents(path, LIMITS.size, refuse)
    except FileNotFoundError:
        raise DamagedCheckpointError(NO_CHECKPOINT, file=f"'{path.parent}'") from None
    outer = parsed(data, LIMITS, refuse)
    _INDEX.check(outer, "", refuse)
    if outer["version"] != VERSION:
        raise refuse(f"it was written in version {outer['version']} of the format, and {VERSION} is known", "version")
    content = outer["content"]
    if (found := _checksum(content)) != outer["crc32"]:
        raise refuse(WRONG_SUM.format(found=found, expected=outer["crc32"]), "content")
    _CONTENT.check(content, "content", refuse)
    entries = {
        name: _entry(record, f"{ENTRIES}{name}", content["files"], refuse)
        for name, record in content["entries"].items()
    }
    if path.name == INDEX:
        check_whole(entries, content["files"], refuse)
    return Index(content["save"], content["files"], entries)


def _entry(record: Any, place: str, files: dict[str, int], refuse: Refuse) -> Entry:
    is_array = isinstance(record, dict) and "blocks" in record
    (_ARRAY if is_array else _VALUE).check(record, place, refuse)
    reader = Reader({}, refuse)
    path = tuple((kind, reader.value(key)) for kind, key in record["path"])
    if not path or nested.joined(path) != place.removeprefix(ENTRIES):
        raise refuse(f"its path leads to {nested.joined(path)!r}", place)
    if not is_array:
        return Entry(path, record["value"])
    blocks: list[Block] = []
    for b in record["blocks"]:
        block = Block(Region(tuple(b["offsets"]), tuple(b["shape"])), b["file"], b["at"], b["crc32"])
        blocks.append(block)
        ends = [low + size for low, size in zip(b["offsets"], b["shape"], strict=False)]
        fits = len(b["offsets"]) == len(b["shape"]) == len(record["shape"])
        if not fits or any(end > size for end, size in zip(ends, record["shape"], strict=True)):
            raise refuse(
                f"a block of shape {b['shape']} at {b['offsets']} of a tensor of shape {record['shape']}", place
            )
        if b["file"] not in files:
            raise refuse(f"the index has no file {b['file']}", place)
    return Entry(path, None, record["kind"], record["dtype"], tuple(record["shape"]), tuple(blocks))


def merge(parts: Iterable[Index]) -> Index:
    """The index of the whole of those of all ranks, in the order of ranks: the first one's copy of a value is kept.

    CheckpointException unless they agree on dtypes and shapes, and have every element once.
    """
    save, files, entries = "", {}, {}
    for part in parts:
        save = part.save
        files |= part.files
        for name, entry in part.entries.items():
            known = entries.setdefault(name, entry)
            if known is entry or not (entry.kind or known.kind):
                continue
            first, second = ((e.kind, e.dtype, e.shape) for e in (known, entry))
            if first != second:
                raise CheckpointException(DISAGREE.format(name=name, first=first, second=second))
            seen = {block.region for block in known.blocks}
            entries[name] = known._replace(blocks=known.blocks + tuple(b for b in entry.blocks if b.region not in seen))
    check_whole(entries, files, lambda problem, place: CheckpointException(problem))
    return Index(save, files, entries)


def check_whole(entries: dict[str, Entry], files: dict[str, int], refuse: Refuse) -> None:
    """Raise what `refuse` makes unless the blocks of each array hold each element once, in bytes of their own."""
    room = dict(files)
    for name, entry in entries.items():
        blocks = [b for b in entry.blocks if math.prod(b.region.shape)]
        found, expected = sum(math.prod(b.region.shape) for b in blocks), math.prod(entry.shape)
        if entry.kind and found != expected:
            raise refuse(INCOMPLETE.format(name=name, found=found, expected=expected), name)
        lows = np.array([b.region.offsets for b in blocks], np.int64)
        highs = lows + np.array([b.region.shape for b in blocks], np.int64)
        for k in range(1, len(blocks)):
            if ((lows[:k] < highs[k]) & (lows[k] < highs[:k])).all(1).any():
                raise refuse(OVERLAPPING.format(name=name), name)
        for block in blocks:
            room[block.file] -= math.prod(block.region.shape) * numpy_of(entry.dtype).itemsize
    for file, left in room.items():
        if left < 0:
            raise refuse(f"blocks of {files[file] - left:,} bytes cannot lie in {file}, which has {files[file]:,}", "")


def synchronize_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk, where the platform can."""
    if os.name != "posix":
        return
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
