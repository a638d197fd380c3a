"""Files of compiled programs: which one it is, what it holds, and who may have written it.

    magic and version, the key that it was written for, sizes | the program, compressed | SHA-256 of all before

A file is read once, from one descriptor, and believed only if all of it is as it was written: a renamed, exchanged,
linked, cut or joined file is refused, and so is one of another version. That finds accidents. A program is machine
code, so no check of its content makes it safe to run: whoever can write it with a fitting digest can run code as the
user. Hence files and folders count only if they belong to the user (or to root) and nobody else may write to them.
"""

from __future__ import annotations

import functools
import hashlib
import io
import os
import pickle
import pickletools
import stat
import struct
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from graphc.errors import ProgramFileError
from graphc.files.contents import Refuse, contents
from graphc.lowering.loading import jax

LARGEST = 2**30  # bytes of a program
_MAGIC = b"graphc program 2"  # the number is the version of the format
_HEAD = struct.Struct(">16s64sIIQQ")  # magic, key, numbers of arguments and results, bytes of program and compressed
_DIGEST = hashlib.sha256().digest_size
_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_LIBRARY = b"_ffi"  # in the names of the functions that programs call in the libraries of JAX
_PACKAGES = ("jax", "jaxlib")  # of whose classes the description of a program consists; and of dtypes
_REBUILDS = "_unpickle"  # how their functions begin that do so, too
_KEEP = ("PUT", "LONG_BINPUT")  # opcodes that say where pickle keeps a part: it takes memory for all places up to that

NO_PROGRAM = "not a program in format 2"
OTHER_KEY = "the program of another key, {key}"
CUT = "{found:,} bytes, {stated:,} are stated"
CHANGED = "its content has changed since it was written (sha256 differs)"
FOREIGN = "it belongs to another user, or others may write to it"
NO_FILE = "not a file"
FAR = "it keeps a part at place {place:,}, where memory for as many would be taken"
UNKNOWN_PART = "it names {module}.{name}, which no program consists of"


class Unsupported(Exception):
    """A program cannot be kept."""


def packed(key: str, program: Any, device: Any) -> bytes:
    """The content of the file of a program (`jax.stages.Compiled`). Raises Unsupported, or whatever JAX raises."""
    from jax.experimental import serialize_executable

    data, arguments, results = serialize_executable.serialize(program)
    counts = arguments.num_leaves, results.num_leaves
    if (arguments, results) != _trees(*counts):
        raise Unsupported("a program with nested arguments or results")
    if _LIBRARY in data and device.platform != "cpu":  # whose libraries we do not know how to prepare
        raise Unsupported("a program that calls libraries")
    kept = zlib.compress(data, 1)
    content = _HEAD.pack(_MAGIC, key.encode(), *counts, len(data), len(kept)) + kept
    return content + hashlib.sha256(content).digest()


def unpacked(key: str, content: bytes, refuse: Refuse) -> tuple[bytes, int, int]:
    """What JAX has written, and the numbers of arguments and results. Raises what `refuse` makes if `content` is not
    the file of the program of that key, exactly as it was written."""
    if len(content) < _HEAD.size + _DIGEST or not content.startswith(_MAGIC):
        raise refuse(NO_PROGRAM, "")
    _, found, inputs, outputs, size, kept = _HEAD.unpack_from(content)
    if len(content) != _HEAD.size + kept + _DIGEST:
        raise refuse(CUT.format(found=len(content), stated=_HEAD.size + kept + _DIGEST), "its length")
    if hashlib.sha256(content[:-_DIGEST]).digest() != content[-_DIGEST:]:
        raise refuse(CHANGED, "")
    if found != key.encode():
        raise refuse(OTHER_KEY.format(key=found.decode("ascii", "replace")), "its key")
    if size > LARGEST:
        raise refuse(CUT.format(found=size, stated=LARGEST), "its size")
    packing = zlib.decompressobj()
    try:
        data = packing.decompress(content[_HEAD.size : -_DIGEST], size + 1)
    except zlib.error as error:
        raise refuse(str(error), "the program") from None
    if len(data) != size or not packing.eof or packing.unused_data:
        raise refuse(CUT.format(found=len(data), stated=size), "the program")
    return data, inputs, outputs


def loaded(key: str, content: bytes, refuse: Refuse, device: Any) -> Any:
    """The program in a file, on a device. Raises what `refuse` makes, or whatever another build of XLA says to it."""
    data, inputs, outputs = unpacked(key, content, refuse)
    check_parts(data, refuse)
    if _LIBRARY in data:
        _prepare_libraries()
    from jax.experimental import serialize_executable

    return serialize_executable.deserialize_and_load(data, *_trees(inputs, outputs), execution_devices=[device])


@functools.cache
def _trees(inputs: int, outputs: int) -> tuple[Any, Any]:
    """How JAX describes the arguments and results of our programs: so many arrays, and a tuple of so many."""
    structure = jax.tree_util.tree_structure
    return structure(((0,) * inputs, {})), structure((0,) * outputs)


@functools.cache
def _prepare_libraries() -> None:
    """Let JAX set LAPACK up, as it does when it lowers the first operation that needs it: programs call addresses."""
    jax.jit(jax.lax.linalg.cholesky).lower(np.eye(1, dtype=np.float32))


def check_parts(data: bytes, refuse: Refuse) -> None:
    """Raise what `refuse` makes if the pickle `data`, in which JAX describes a program, names anything but classes of
    JAX and dtypes. Nothing of it is built here: inert objects stand for all that it would call."""
    try:
        for opcode, place, _ in pickletools.genops(data):
            if opcode.name in _KEEP and (place or 0) > len(data):
                raise refuse(FAR.format(place=place), "the program")
        _Names(io.BytesIO(data), refuse).load()
    except ProgramFileError:
        raise
    except Exception as error:  # whatever a broken pickle makes of the stand-ins
        raise refuse(f"{type(error).__name__}: {error}", "the program") from None


class _Inert:
    """Stands for any object of a pickle."""

    def __new__(cls, *_: Any, **__: Any) -> Any:
        return object.__new__(_Inert)

    def __init__(self, *_: Any, **__: Any):
        pass

    def __setstate__(self, state: Any) -> None:
        pass

    def __call__(self, *_: Any, **__: Any) -> Any:
        return _Inert()


class _Names(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, refuse: Refuse):
        super().__init__(file)
        self._refuse = refuse

    def find_class(self, module: str, name: str) -> Any:
        found = getattr(sys.modules.get(module), name, None)
        known = module.partition(".")[0] in _PACKAGES and (isinstance(found, type) or name.startswith(_REBUILDS))
        element = isinstance(found, type) and issubclass(found, np.generic)  # brain floats are not NumPy's own
        if not (known or element or found is np.dtype):
            raise self._refuse(UNKNOWN_PART.format(module=module, name=name), "the program")
        return _Inert

    def persistent_load(self, pid: Any) -> Any:
        return _Inert()


def trusted(status: os.stat_result) -> bool:
    """Whether only the user, or root, can have written what has this status. On Windows the user's profile decides."""
    return not hasattr(os, "geteuid") or (status.st_uid in (os.geteuid(), 0) and not status.st_mode & _OTHERS)


def content_of(path: Path, refuse: Refuse) -> bytes:
    """The content of a file that can be trusted, which has been used now. Raises what `refuse` makes, or OSError."""
    flags = os.O_RDONLY
    for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"):  # a link, a pipe that nobody writes to
        flags |= getattr(os, name, 0)
    with open(os.open(path, flags), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise refuse(NO_FILE, "")
        if not trusted(status):
            raise refuse(FOREIGN, "")
        os.utime(file.fileno() if os.utime in os.supports_fd else path)
        return contents(file, LARGEST, refuse)
