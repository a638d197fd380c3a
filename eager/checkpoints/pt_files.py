"""PyTorch's `.pt` files, read: a pickle that tells of tensors, and the bytes of their storages.

Since PyTorch 1.6 they are zip files with the members `<name>/data.pkl`, `<name>/data/<key>` and `<name>/byteorder`.
Before, four pickles followed each other, then the storages' keys, and for each storage the number of its elements (8
bytes) and the elements.
"""

from __future__ import annotations

import functools
import sys
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import IO, Any, NamedTuple, final

import numpy as np

from eager.checkpoints import safe_globals
from eager.checkpoints.pickle_globals import Storage, StorageType, build, named
from eager.checkpoints.trusted import Trust, TrustedReader
from eager.core import dtypes
from eager.core.devices import device
from eager.core.state import separate
from eager.core.tensor import Tensor
from eager.rng.generator import Generator
from graphc.errors import TensorFileError, WeightsError
from graphc.files import zipped
from graphc.files.contents import Refuse, contents, mapped, printable
from graphc.files.pickled import Meaning, Unpickler

MAGIC, PROTOCOL = 0x1950A86A20F9469CFC6C, 1001
PICKLE_SIZE = 2**28  # bytes of a pickle; tensors are elsewhere
VALUES, DEPTH = 6_000_000, 256  # in a pickle: 100,000 tensors
RECORDS = 100  # bytes of the other records
NO_RECORD = "PytorchStreamReader failed locating file {name}: file not found"
SCRIPT = "Cannot use ``weights_only=True`` with TorchScript archives passed to ``torch.load``: they are programs"
TAR = "Cannot use ``weights_only=True`` with files saved in the legacy .tar format"
NO_FORMAT = "Invalid magic number; corrupt file? It is neither a zip file nor a pickle, nor of safetensors"
NO_MMAP = (
    "mmap can only be used with files saved with `torch.save({name}_use_new_zipfile_serialization=True), please "
    "torch.save your checkpoint with this option in order to use mmap."
)
ZIP_PARTS, LEGACY_PARTS = 5, 6  # of a storage's persistent id
TOO_DEEP = f"values more than {DEPTH} deep in each other"
NO_VALUE = "a value of type {kind}, which is none by itself"
_LEAVES = (type(None), bool, int, float, complex, str, bytes, bytearray, slice, range, dtypes.dtype, device, Tensor,
           Generator, np.ndarray, np.generic)  # fmt: skip
_NESTS = (list, tuple, dict, set, frozenset)

Move = Callable[[np.ndarray, str], np.ndarray]  # the bytes of a storage, and where it was -> its bytes here


class Claim(NamedTuple):
    """What a pickle says of a storage."""

    key: str
    size: int
    location: str
    dtype: dtypes.dtype | None


def _claim(about: Any, parts: int) -> Claim:
    """A storage's persistent id: ("storage", type, key, location, number of elements, ...)."""
    if type(about) is not tuple or len(about) != parts or about[0] != "storage":
        raise TypeError("Only persistent_load of storage is allowed")
    _, kind, key, location, count, *_ = about
    if not isinstance(kind, StorageType) or type(key) is not str or type(location) is not str:
        raise TypeError("a storage without a type, a key and a location")
    if type(count) is not int or not 0 <= count < 2**60:
        raise ValueError("a storage without a number of elements")
    return Claim(key, count * _itemsize(kind.dtype), location, kind.dtype)


class _Moved(Exception):
    """What `map_location` has raised, which is not the file's fault: carried through its reader."""

    def __init__(self, error: Exception):
        super().__init__()
        self.error = error


@final
class _Storages:
    """The storages of a file, each made once: `made` by key, as `claims` say. `later` is run when they are filled."""

    def __init__(self, make: Callable[[Claim], np.ndarray], move: Move, parts: int):
        self._make, self._move, self._parts = make, move, parts
        self.made: dict[str, np.ndarray] = {}
        self.claims: dict[str, Claim] = {}
        self.later: list[Callable[[], None]] = []

    def storage(self, about: Any) -> Storage:
        """The storage of a persistent id."""
        claim = _claim(about, self._parts)
        if claim.key not in self.made:
            self.made[claim.key], self.claims[claim.key] = self._moved(self._make(claim), claim.location), claim
        if self.claims[claim.key].size != claim.size:
            raise ValueError(f"storage {claim.key[:40]!a} of two sizes")
        memory = self.made[claim.key]
        if self._parts == LEGACY_PARTS and about[5] is not None:
            memory = _view(memory, about[5], claim)
        return Storage(memory, claim.dtype, self.later)

    def _moved(self, memory: np.ndarray, location: str) -> np.ndarray:
        try:
            return self._move(memory, location)
        except Exception as error:
            raise _Moved(error) from error

    def reader(self, pickle: bytes, refuse: Refuse, trust: Trust | None) -> Unpickler | TrustedReader:
        """For the pickles that name them."""
        if trust is not None:
            return TrustedReader(pickle, self.storage, trust)
        meaning = Meaning(named, self.storage, functools.partial(build, self.later))
        return Unpickler(pickle, meaning, refuse, VALUES)


def _itemsize(kind: dtypes.dtype | None) -> int:
    return 1 if kind is None else kind.itemsize


def _unit(kind: dtypes.dtype | None) -> int:
    """Bytes that lie in the order of the machine that wrote them."""
    if kind is None:
        return 1
    return kind.itemsize // 2 if kind.is_complex else kind.itemsize


def _view(memory: np.ndarray, about: Any, claim: Claim) -> np.ndarray:
    """Part of a storage: (key, offset, number of elements), as files of before PyTorch 0.4 have it."""
    unit = _itemsize(claim.dtype)
    if type(about) is not tuple or len(about) != 3 or any(type(n) is not int for n in about[1:]):
        raise TypeError("a view of a storage without offset and size")
    start, end = about[1] * unit, (about[1] + about[2]) * unit
    if not 0 <= start <= end <= memory.size:
        raise ValueError("a view of a storage that leads out of it")
    return memory[start:end]


def load_zip(
    file: IO[bytes], members: Mapping[str, zipped.Member], move: Move, name: str, mmap: bool, trust: Trust | None = None
) -> Any:
    """The object in a zip file of PyTorch, of which the directory has been read. `trust` lets its code run.

    Raises TensorFileError; WeightsError, a kind of it, where its pickle is wrong.
    """
    refuse = TensorFileError.of(name)
    folder = next(iter(members), "").partition("/")[0]
    if f"{folder}/constants.pkl" in members:
        raise refuse(SCRIPT, "")

    def member(what: str) -> zipped.Member:
        found = members.get(f"{folder}/{what}")
        if found is None:
            raise refuse(NO_RECORD.format(name=printable(what)), "")
        return found

    def read(what: str, most: int) -> bytes:
        found = member(what)
        if found.size > most:
            raise refuse(f"{found.size:,} bytes, at most {most:,} are read", what)
        return bytes(zipped.content(file, found, what, refuse))

    pickle = read("data.pkl", PICKLE_SIZE)
    order = read("byteorder", RECORDS).decode("latin1") if f"{folder}/byteorder" in members else "little"
    if order not in ("little", "big"):
        raise refuse("Unknown endianness type", "byteorder")
    whole = mapped(file) if mmap else None

    def make(claim: Claim) -> np.ndarray:
        found = member(what := f"data/{claim.key}")
        if found.size != claim.size:
            raise ValueError(f"storage {claim.key[:40]!a} of {claim.size:,} bytes, {found.size:,} are in the file")
        if whole is None or found.packed is not None:
            memory = np.frombuffer(zipped.content(file, found, what, refuse), np.uint8)
        else:
            memory = whole[found.start : found.start + found.size]
            # memory of its own, as storages have; and numbers may not lie anywhere
            memory = memory.copy() if found.start % 8 else separate(memory)
        _to_native(memory, _unit(claim.dtype), order)
        return memory

    storages = _Storages(make, move, ZIP_PARTS)
    failed = WeightsError.of(name)
    reader = storages.reader(pickle, lambda what, place: failed(what, f"data.pkl, {place}"), trust)
    value = _read(reader)
    if reader.at != len(pickle):
        raise failed("there is more behind its end", "data.pkl")
    return _finished(value, storages.later, failed, trust)


def load_legacy(file: IO[bytes], move: Move, name: str, mmap: bool, trust: Trust | None = None) -> Any:
    """The object in a file as `torch.save(..., _use_new_zipfile_serialization=False)` writes it. As `load_zip`.

    Leaves `file` behind it: another may follow.
    """
    refuse, failed = TensorFileError.of(name), WeightsError.of(name)
    if mmap:
        raise refuse(NO_MMAP.format(name=f"{name}, "), "")
    begin = file.tell()
    data = contents(file, sys.maxsize - 1, refuse)
    if data[257:262] == b"ustar":
        raise refuse(TAR, "")
    if data[:1] != b"\x80":
        raise refuse(NO_FORMAT, "")
    left = len(data)

    def make(claim: Claim) -> np.ndarray:
        nonlocal left
        left -= claim.size
        if left < 0:
            raise ValueError("storages of more bytes than the file has")
        return np.zeros(claim.size, np.uint8)

    storages = _Storages(make, move, LEGACY_PARTS)
    reader = storages.reader(data, failed, trust)
    for known, wrong in ((MAGIC, "Invalid magic number; corrupt file?"), (PROTOCOL, "Invalid protocol version")):
        found = _read(reader)
        if type(found) is not int or found != known:
            raise refuse(wrong, "")
    _read(reader)  # sizes of C's integers where it was written
    value: Any = _read(reader)
    keys: Any = _read(reader)
    # `repr`, since a number is no key
    if not isinstance(keys, list) or sorted(map(repr, keys)) != sorted(map(repr, storages.made)):
        raise refuse("the storages that follow are others than its pickle names", "")
    at = reader.at
    for key in keys:
        memory, claim = storages.made[key], storages.claims[key]
        size = claim.size
        count = int.from_bytes(data[at : at + 8], "little", signed=True)
        at += 8
        if count * _itemsize(claim.dtype) != size or at + size > len(data) or memory.size != size:
            raise refuse(f"it has not the {size:,} bytes of storage {key[:40]!a}", "")
        memory[:] = np.frombuffer(data, np.uint8, size, at)
        _to_native(memory, _unit(claim.dtype), "little")
        at += size
    file.seek(begin + at)
    return _finished(value, storages.later, failed, trust)


def _read(reader: Unpickler | TrustedReader) -> Any:
    try:
        return reader.load()
    except _Moved as moved:
        raise moved.error from None


def _to_native(memory: np.ndarray, unit: int, order: str) -> None:
    if order != sys.byteorder and unit > 1:
        memory.view(f"u{unit}").byteswap(inplace=True)


def _finished(value: Any, later: list[Callable[[], None]], refuse: Refuse, trust: Trust | None) -> Any:
    """The value, checked, when its tensors have their content."""
    try:
        if trust is None:
            _check(value)
        for step in later:
            step()
    except (ArithmeticError, RuntimeError, TypeError, ValueError) as error:
        raise refuse(str(error), "") from None
    return value


def _check(root: Any) -> None:
    """TypeError if a stand-in is left in a value, ValueError if it is too deep for those who walk it."""
    heights: dict[int, int] = {}  # of nests that are done; 0 while their members are looked at
    pending = [root]
    while pending:
        value = pending[-1]
        if not isinstance(value, _NESTS):
            if not isinstance(value, _LEAVES) and not safe_globals.made(value):
                raise TypeError(NO_VALUE.format(kind=type(value).__name__))
            pending.pop()
            continue
        members = _members(value)
        if id(value) not in heights:
            heights[id(value)] = 0
            pending += [m for m in members if id(m) not in heights]
            continue
        pending.pop()
        height = 1 + max((heights.get(id(m), 0) for m in members), default=0)
        if height > DEPTH:
            raise ValueError(TOO_DEEP)
        heights[id(value)] = max(height, heights[id(value)])


def _members(nest: Any) -> list[Any]:
    if not isinstance(nest, dict):
        return list(nest)
    found = [*nest, *nest.values()]
    return [*found, vars(nest)] if type(nest) is OrderedDict and vars(nest) else found
