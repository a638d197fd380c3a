"""Files of PyTorch's format: valid ones, changes behind the checksums of their members, and hostile ones by hand.

`python -m tests.readers.checkpoints` reads the hostile ones in a process with 1 GiB to spare, and prints what became
of each.
"""

from __future__ import annotations

import io
import pickletools
import random
import struct
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np

import eager as torch
from graphc.errors import TensorFileError
from tests.readers.mutations import changed_bytes
from tests.readers.watch import limit_memory, nothing_runs

Members = list[tuple[str, bytes]]


def saved(value: Any, legacy: bool = False) -> bytes:
    """The bytes of a file that holds `value`."""
    file = io.BytesIO()
    torch.save(value, file, _use_new_zipfile_serialization=not legacy)
    return file.getvalue()


def checkpoint_values() -> dict[str, Any]:
    """Objects of every kind that a file may hold."""
    x = torch.arange(12.0).reshape(3, 4)
    model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.BatchNorm1d(2))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.ones(2, 3)).sum().backward()
    optimizer.step()
    return {
        "shared": {"all": x, "row": x[1], "turned": x.t(), "again": x, "wide": x[:1].expand(5, 4)},
        "plain": [1, -2.5, "text", None, True, (1, 2), {3}, frozenset({4}), 2**70, 1 - 2j, b"bytes", slice(1, None),
                  range(3), torch.Size([2, 3]), torch.float16, torch.device("cpu"), 2**3000, bytearray(b"a"), 70_000],
        "training": {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3},
        "others": [torch.tensor([True, False]), torch.ones(2, dtype=torch.complex64), np.arange(3), np.float32(1.5),
                   torch.Generator().manual_seed(3), torch.nn.Parameter(torch.ones(2)), torch.zeros(0, 3),
                   torch.tensor(7), torch.ones(2, dtype=torch.bfloat16), torch.ones(2, dtype=torch.uint16)],
    }  # fmt: skip


def members_of(data: bytes) -> Members:
    """The members of a valid zip file."""
    with zipfile.ZipFile(io.BytesIO(data)) as file:
        return [(entry.filename, file.read(entry)) for entry in file.infolist()]


def zip_of(members: Members, method: int = zipfile.ZIP_STORED) -> bytes:
    """A zip file whose checksums are right, whatever it says. Names may occur twice."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, data in members:
            archive.NameToInfo.clear()  # else it warns of two members of one name
            archive.writestr(name, data)
    return file.getvalue()


def with_pickle(pickle: bytes, storages: dict[str, bytes] | None = None) -> bytes:
    """A file with this pickle and these storages."""
    return zip_of([("a/data.pkl", pickle), *((f"a/data/{key}", data) for key, data in (storages or {}).items()),
                   ("a/version", b"3\n")])  # fmt: skip


_NAMES = ["os\nsystem", "builtins\neval", "torch\nTensor", "torch\nBoolStorage", "torch.storage\nUntypedStorage",
          "__builtin__\nset", "numpy\nndarray", "torch._utils\n_rebuild_tensor_v3"]  # fmt: skip
_OPERANDS = [
    *b"N ) ] } ( t e u s a 0 2 R b Q i o (t \x81 \x87 \x88 \x8f \x90 \x91 \x92 \x93 \x94 \x97".split(),
    b"\x85", b"\x86",
    b"K\0", b"K\x40", b"J\xff\xff\xff\xff", b"\x8a\x09" + b"\xff" * 8 + b"\x7f", b"G\x7f\xf8" + bytes(6), b"X\0\0\0\0",
    b"X\x02\0\0\0cu", b"h\0", b"h\1", b"P1\n", *(f"c{name}\n".encode() for name in _NAMES),
]  # fmt: skip


def changed_pickle(data: bytes, rng: random.Random) -> bytes:
    """A pickle with one or two instructions left out, doubled, moved or exchanged for others."""
    starts = [at for _, _, at in pickletools.genops(data)]
    pieces = [data[a:b] for a, b in zip(starts, [*starts[1:], len(data)], strict=True)]
    for _ in range(rng.choice([1, 1, 1, 2])):
        k, other = rng.randrange(len(pieces)), rng.randrange(len(pieces))
        kind = rng.randrange(6)
        if kind == 0:
            del pieces[k]
        elif kind == 1:
            pieces.insert(other, pieces[k])
        elif kind == 2:
            pieces[k], pieces[other] = pieces[other], pieces[k]
        elif kind == 3 and len(pieces[k]) == 2 and pieces[k][:1] == b"K":  # a size, a stride, an offset
            pieces[k] = rng.choice([b"K%c" % rng.randrange(256), b"J" + struct.pack("<i", rng.choice([-1, 2**31 - 1]))])
        else:
            pieces[k] = rng.choice(_OPERANDS)
    return b"".join(pieces)


def deeper_zip(data: bytes, rng: random.Random) -> bytes:
    """A file whose members have other content, under checksums that are right."""
    members = members_of(data)
    k = rng.randrange(len(members))
    name, content = members[k]
    kind = rng.randrange(10 if any(name.endswith(".pkl") for name, _ in members) else 4)
    if kind == 0:
        members[k] = (rng.choice([name + "0", "../" + name, "/" + name, members[0][0], "b/data/0"]), content)
    elif kind == 1:
        members[k] = (name, changed_bytes(content, rng, [content or b"0"]))
    elif kind == 2:
        del members[k]
    elif kind == 3:
        members.insert(rng.randrange(len(members)), members[k])
    else:
        members = [(n, changed_pickle(c, rng) if n.endswith(".pkl") else c) for n, c in members]
    return zip_of(members)


def deeper_legacy(data: bytes, rng: random.Random) -> bytes:
    """A file of the format of before, with another instruction in one of its pickles."""
    ends, at = [0], 0
    for _ in range(5):
        file = io.BytesIO(data[at:])
        for _ in pickletools.genops(file):
            pass
        at += file.tell()
        ends.append(at)
    k = rng.choice([0, 1, 2, 3, 3, 3, 3, 4])
    return data[: ends[k]] + changed_pickle(data[ends[k] : ends[k + 1]], rng) + data[ends[k + 1] :]


# --- by hand

_TENSOR = b"ctorch._utils\n_rebuild_tensor_v2\n"


def text(value: str) -> bytes:
    """The instruction for a text."""
    return b"X" + struct.pack("<I", len(value.encode())) + value.encode()


def number(value: int) -> bytes:
    """The instruction for an integer."""
    data = value.to_bytes(20, "little", signed=True)
    return b"\x8a\x14" + data


def storage(key: str = "0", count: int = 4, kind: str = "torch\nFloatStorage", where: str = "cpu") -> bytes:
    """The instructions for a storage."""
    return b"(" + text("storage") + b"c" + kind.encode() + b"\n" + text(key) + text(where) + number(count) + b"tQ"


def numbers(*values: int) -> bytes:
    """The instructions for a tuple of integers."""
    return b"(" + b"".join(map(number, values)) + b"t"


def tensor(size: tuple[int, ...] = (4,), stride: tuple[int, ...] = (1,), offset: int = 0, of: bytes = storage(),
           rest: bytes = b"\x89N") -> bytes:  # fmt: skip
    """The instructions for a tensor."""
    return _TENSOR + b"(" + of + number(offset) + numbers(*size) + numbers(*stride) + rest + b"tR"


def _file(instructions: bytes) -> Callable[[], bytes]:
    return lambda: with_pickle(b"\x80\x02" + instructions + b".", {"0": bytes(16)})


def _zip(change: Callable[[Members], Members], method: int = zipfile.ZIP_STORED) -> Callable[[], bytes]:
    return lambda: zip_of(change(members_of(saved({"x": torch.ones(4)}))), method)


def _patched(offset: int, value: bytes, entry: int = 0) -> Callable[[], bytes]:
    """A file with other bytes in an entry of its directory."""

    def made() -> bytes:
        data = bytearray(saved({"x": torch.ones(4)}))
        at = data.index(b"PK\x01\x02")
        for _ in range(entry):
            at = data.index(b"PK\x01\x02", at + 1)
        data[at + offset : at + offset + len(value)] = value
        return bytes(data)

    return made


def _renamed(old: bytes, new: bytes) -> Callable[[], bytes]:
    return lambda: saved({"x": torch.ones(4)}).replace(old, new, 1)  # in its header, not in the directory


def _legacy_with_keys(keys: bytes) -> Callable[[], bytes]:
    return lambda: saved(torch.ones(4), legacy=True).replace(b"X\1\0\0\x000q\1e.", keys + b"e.")


_DEEP = 20_000
_SAME_HASH = [number(k * (2**61 - 1)) for k in range(1, 3000)]
_BIG_LIST = b"](" + b"".join(b"M" + struct.pack("<H", k) for k in range(60_000)) + b"eq\0"
_LEGACY_HEAD = saved(0, legacy=True)[: saved(0, legacy=True).index(b"K\0.")]
HOSTILE: dict[str, Callable[[], bytes]] = {
    "os.system": _file(b"cos\nsystem\n" + text("touch hacked") + b"\x85R"),
    "posix.system": _file(b"cposix\nsystem\n" + text("touch hacked") + b"\x85R"),
    "eval": _file(b"cbuiltins\neval\n" + text("1") + b"\x85R"),
    "eval of python 2": _file(b"c__builtin__\neval\n" + text("1") + b"\x85R"),
    "getattr": _file(b"cbuiltins\ngetattr\nctorch\nTensor\n" + text("__class__") + b"\x86R"),
    "stack global": _file(text("os") + text("system") + b"\x93" + text("ls") + b"\x85R"),
    "a global of dots": _file(b"ctorch\nserialization.os.system\n" + text("ls") + b"\x85R"),
    "inst": _file(b"(" + text("ls") + b"ios\nsystem\n"),
    "obj": _file(b"(cos\nsystem\n" + text("ls") + b"o"),
    "newobj": _file(b"cbuiltins\nexec\n" + text("1") + b"\x85\x81"),
    "an extension": _file(b"\x82\x01"),
    "another's persistent id": _file(b"(" + text("module") + b"cos\nsystem\nNNtQ"),
    "a persistent id of text": _file(b"P0\n"),
    "a global by itself": _file(b"ctorch._utils\n_rebuild_tensor_v2\n"),
    "a storage by itself": _file(storage()),
    "a storage type in a dict": _file(b"}" + text("a") + b"ctorch\nFloatStorage\ns"),
    "a stand-in as a key": _file(b"}ctorch\nFloatStorage\nNs"),
    "a dtype of numpy": _file(b"cnumpy\ndtype\n" + text("f4") + b"\x89\x88\x87R"),
    "an array of objects": _file(b"cnumpy\ndtype\n" + text("O8") + b"\x89\x88\x87R"),
    "numpy's load": _file(b"cnumpy\nload\n" + text("x") + b"\x85R"),
    "calls what it has made": _file(b"]" + b")R"),
    "builds a tensor": _file(tensor() + b"}b"),
    "builds a class": _file(b"ctorch\nTensor\n}b"),
    "attributes over methods": _file(b"ccollections\nOrderedDict\n)R}" + text("items") + b"Nsb"),
    "class of an OrderedDict": _file(b"ccollections\nOrderedDict\n)R}" + text("__class__") + b"Nsb"),
    "a name with an escape": _file(b"cos\x1b[2J\nsystem\n)R"),
    "a storage with an escape": _file(tensor(of=storage("\x1b[2J"))),
    "hooks": _file(tensor(rest=b"\x89}" + text("a") + b"Ns")),
    "stack underflow": _file(b"R"),
    "underflow at a mark": _file(b"K\1(\x86"),
    "no mark": _file(b"K\1t"),
    "nothing to stop with": _file(b""),
    "a memo that is empty": _file(b"h\7"),
    "a memo of nothing": _file(b"q\0"),
    "a key without a value": _file(b"}(" + text("a") + b"u"),
    "a list as a key": _file(b"}]Ns"),
    "items of a tuple": _file(b")" + text("a") + b"Ns"),
    "another protocol": lambda: with_pickle(b"\x80\x09N."),
    "text opcodes": _file(b"I1\n"),
    "no pickle": lambda: with_pickle(b""),
    "an end within a text": lambda: with_pickle(b"\x80\x02X\xff\xff\xff\x7fab."),
    "a text of 2**60": lambda: with_pickle(b"\x80\x04\x8d" + struct.pack("<Q", 2**60) + b"ab."),
    "a text of a negative length": lambda: with_pickle(b"\x80\x02T\xff\xff\xff\xffab."),
    "more behind the end": lambda: with_pickle(b"\x80\x02N.N."),
    "deep lists": _file(b"](" * _DEEP + b"e" * _DEEP),
    "deep tuples": _file(b")" + b"\x85" * _DEEP),
    "deep dicts": _file(b"}" + b"".join(b"N}" for _ in range(_DEEP)) + b"s" * _DEEP),
    "deep by the memo": _file(b"]q\0" + b"]q\1h\0a0h\1q\0" * 3000),
    "marks only": _file(b"(" * 200_000),
    "keys of one hash": _file(b"}(" + b"".join(k + b"N" for k in _SAME_HASH) + b"u"),
    "keys of one hash, one by one": _file(b"}" + b"".join(k + b"Ns" for k in _SAME_HASH)),
    "a set of one hash": _file(b"c__builtin__\nset\n](" + b"".join(_SAME_HASH) + b"e\x85R"),
    "a frozen set of one hash": _file(b"(" + b"".join(_SAME_HASH) + b"\x91"),
    "a set of one hash, one by one": _file(b"\x8f" + b"".join(b"(" + k + b"\x90" for k in _SAME_HASH)),
    "a key of 2**60 parts": _file(b"}N" + b"2\x86" * 60 + b"Ns"),
    "a set of 2**60 parts": _file(b"c__builtin__\nset\n]N" + b"2\x86" * 60 + b"a\x85R"),
    "a million copies of a list": _file(_BIG_LIST + b"0](" + b"c__builtin__\nset\nh\0\x85R" * 10_000 + b"e"),
    "a million copies of a text": _file(
        text("a" * 100_000) + b"q\0](" + (b"c_codecs\nencode\nh\0" + text("latin1") + b"\x86R") * 20_000 + b"e"
    ),
    "sets only": _file(b"](" + b"\x8f" * 1_300_000 + b"e"),
    "a size that is negative": _file(tensor(size=(-4,))),
    "a stride that is negative": _file(tensor(stride=(-1,), offset=3)),
    "an offset that is negative": _file(tensor(offset=-1)),
    "a stride that leads out": _file(tensor(stride=(2,))),
    "an offset that leads out": _file(tensor(offset=1)),
    "a size that leads out": _file(tensor(size=(5,))),
    "strides for other dims": _file(tensor(stride=(1, 1))),
    "65 dims": _file(tensor(size=(1,) * 65, stride=(1,) * 65)),
    "sizes that overflow": _file(tensor(size=(2**40, 2**40), stride=(0, 0))),
    "strides that overflow": _file(tensor(size=(2, 2), stride=(2**63, 2**63))),
    "an empty one that overflows": _file(tensor(size=(0, 2**62, 2**62), stride=(1, 1, 1))),
    "a size that is True": _file(_TENSOR + b"(" + storage() + b"K\0\x88\x85K\1\x85\x89Nt" + b"R"),
    "sizes that are floats": _file(_TENSOR + b"(" + storage() + b"K\0G" + bytes(8) + b"\x85K\1\x85\x89NtR"),
    "a tensor of a list": _file(tensor(of=b"]")),
    "a tensor without a storage": _file(_TENSOR + b")R"),
    "a storage that is not there": _file(tensor(of=storage("7"))),
    "a storage of another folder": _file(tensor(of=storage("../data.pkl"))),
    "a storage that is larger": _file(tensor(of=storage(count=5))),
    "a storage that is smaller": _file(tensor(of=storage(count=3), size=(3,))),
    "a storage of 2**59": _file(tensor(of=storage(count=2**59))),
    "a storage of -1": _file(tensor(of=storage(count=-1))),
    "a storage of two sizes": _file(b"](" + tensor() + tensor(of=storage(count=2)) + b"e"),
    "a storage of a stranger": _file(tensor(of=storage(where="nowhere"))),
    "a storage of a GPU": _file(tensor(of=storage(where="cuda:0"))),
    "a location with an escape": _file(tensor(of=storage(where="cpu:\x1b[2J"))),
    "bools that are none": lambda: with_pickle(
        b"\x80\x02" + tensor(of=storage(count=2, kind="torch\nBoolStorage"), size=(2,)) + b".", {"0": b"\2\3"}
    ),
    "integers with gradients": _file(tensor(of=storage(kind="torch\nIntStorage"), rest=b"\x88N")),
    "a parameter of nothing": _file(b"ctorch._utils\n_rebuild_parameter\nN\x88N\x87R"),
    "rebuilt from a function": _file(
        b"ctorch._tensor\n_rebuild_from_type_v2\n(ccollections\nOrderedDict\nctorch\nTensor\n)}tR"
    ),
    "a member with an escape": _zip(lambda members: [*members, ("a/\x1b[2J", b"x"), ("a/\x1b[2J", b"x")]),
    "not there": _zip(lambda members: [m for m in members if "pkl" not in m[0]]),
    "a name that leads out": _zip(lambda members: [*members, ("../../etc/passwd", b"x")]),
    "an absolute name": _zip(lambda members: [*members, ("/etc/passwd", b"x")]),
    "a name of windows": _zip(lambda members: [*members, ("c:\\x", b"x")]),
    "the same name twice": _zip(lambda members: [*members, members[0]]),
    "a program": _zip(lambda members: [*members, (members[0][0].replace("data.pkl", "constants.pkl"), b"x")]),
    "another byte order": _zip(lambda members: [(n, b"middle" if "order" in n else c) for n, c in members]),
    "a byte order of a megabyte": _zip(lambda members: [(n, c * 200_000 if "order" in n else c) for n, c in members]),
    "compressed by another method": _zip(lambda members: members, zipfile.ZIP_BZIP2),
    "compressed, as its directory says": _patched(10, b"\x08\0"),
    "compressed, and of two sizes": lambda: zip_of(
        members_of(saved({"x": torch.ones(4)})), zipfile.ZIP_DEFLATED
    ).replace(struct.pack("<I", 16), struct.pack("<I", 20)),
    "stored, and of two sizes": _patched(20, struct.pack("<I", 3)),
    "a bomb": _zip(lambda members: [(n, bytes(50_000_000) if "data/" in n else c) for n, c in members],
                   zipfile.ZIP_DEFLATED),
    "encrypted": _patched(8, b"\1\0"),
    "overlapping": _patched(42, b"\0\0\0\0", entry=1),
    "a size beyond the file": _patched(20, struct.pack("<II", 2**31, 2**31)),
    "a size within the next": _patched(20, struct.pack("<II", 400, 400)),
    "an offset beyond the file": _patched(42, struct.pack("<I", 2**31)),
    "another checksum": _patched(16, b"\1\2\3\4"),
    "another name in its header": _renamed(b"archive/version", b"archive/verslon"),
    "no directory": lambda: saved(1)[:-30],
    "a directory of 2**31 bytes": lambda: saved(1)[:-10] + struct.pack("<II", 2**31, 0) + b"\0\0",
    "a directory that starts behind": lambda: saved(1)[:-6] + struct.pack("<I", 2**31) + b"\0\0",
    "legacy: another number": lambda: b"\x80\x02K\1.",
    "legacy: a list for the number": lambda: b"\x80\x02].",
    "legacy: a global for the number": lambda: b"\x80\x02cos\nsystem\n" + text("ls") + b"\x85R.",
    "legacy: another version": lambda: saved(0, legacy=True).replace(b"M\xe9\x03", b"M\xea\x03", 1),
    "legacy: storages that are not there": lambda: saved(torch.ones(4), legacy=True)[:-10],
    "legacy: no keys": lambda: saved(torch.ones(4), legacy=True)[:-50],
    "legacy: a storage of 2**59": lambda: _LEGACY_HEAD + tensor(of=storage(count=2**59)[:-2] + b"NtQ") + b".\x80\x02].",
    "legacy: a view that leads out": lambda: (
        _LEGACY_HEAD + tensor(of=storage(count=1)[:-2] + b"(" + text("v") + b"K\0K\7ttQ") + b".\x80\x02](" + text("0")
        + b"e." + b"\1" + bytes(11)
    ),
    "legacy: a number for a key": _legacy_with_keys(b"K\0"),
    "legacy: keys twice": _legacy_with_keys(b"X\1\0\0\x000q\1h\1"),
    "legacy: a dict for the keys": _legacy_with_keys(b"e}("),
    "legacy: a tar": lambda: b"storages" + bytes(249) + b"ustar" + bytes(1000),
    "text": lambda: b"these are no tensors at all",
    "a page": lambda: b"<!DOCTYPE html><html>404</html>",
}  # fmt: skip


def refusal(data: bytes) -> str:
    """Why a hostile file is refused. AssertionError if it is read, or code is run."""
    file = io.BytesIO(data)
    with nothing_runs():
        try:
            found = torch.load(file)
        except TensorFileError as error:
            assert len(str(error)) < 5000 and error.problem and str(error).isprintable()
            return str(error)
    raise AssertionError(f"it is read as {str(found)[:200]}")


def main() -> None:
    for value in checkpoint_values().values():  # loads what is loaded late
        torch.load(io.BytesIO(saved(value)))
    made = {name: make() for name, make in HOSTILE.items()}
    limit_memory()
    for name, data in made.items():
        print(f"{name}: {refusal(data)}")


if __name__ == "__main__":
    main()
