"""The cache of compiled programs on disk: a later process loads a program that is known, instead of compiling it.

It lies in the user's cache directory unless GRAPHC_CACHE_DIR names another; GRAPHC_CACHE=0 turns it off. If the user
has configured a cache in JAX, that one is used instead: it keeps what XLA makes, but JAX still traces and lowers.

The files are as trustworthy as the directory: they hold machine code.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import pickle
import sys
import tempfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from graphc.lowering.loading import jax

WORTHWHILE = 0.25  # seconds of compilation, from which on a program is kept
LARGEST = 2**30  # bytes of all programs: the ones that have not been used for longest go first
_CHECKSUM = hashlib.sha256().digest_size
_LIBRARY = b"_ffi"  # in the names of the functions that programs call in the libraries of JAX
_off = 0  # contexts that are open


def cache_directory() -> Path | None:
    """Where compiled programs are kept; None if they are not."""
    if os.environ.get("GRAPHC_CACHE", "") == "0":
        return None
    if named := os.environ.get("GRAPHC_CACHE_DIR"):
        return Path(named).expanduser()
    if sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "graphc" / "programs"


def in_use() -> bool:
    """Whether programs are looked for, and kept."""
    return not _off and not getattr(jax.config, "jax_compilation_cache_dir", None) and cache_directory() is not None


def load(key: str, device: Any) -> Any:
    """The program of that key (`jax.stages.Compiled`) for a device; None if it is not there, or damaged."""
    directory = cache_directory()
    if directory is None:
        return None
    path = directory / key
    try:
        data = path.read_bytes()
        os.utime(path)  # it has been used
    except OSError:
        return None
    if hashlib.sha256(data[_CHECKSUM:]).digest() != data[:_CHECKSUM]:
        return None
    from jax.experimental import serialize_executable

    try:
        kept = zlib.decompress(data[_CHECKSUM:])
        if _LIBRARY in kept:
            _prepare_libraries()
        return serialize_executable.deserialize_and_load(*pickle.loads(kept), execution_devices=[device])
    except Exception:  # whatever another build of XLA says to it: the program is compiled, and kept anew
        return None


def store(key: str, program: Any, device: Any) -> None:
    """Keep a program. Without a word if it cannot be: everything works, only slower the next time."""
    directory = cache_directory()
    if directory is None:
        return
    from jax.experimental import serialize_executable

    try:
        kept = pickle.dumps(serialize_executable.serialize(program))
    except Exception:  # not every backend's programs can be kept, nor those that call Python
        return
    if _LIBRARY in kept and device.platform != "cpu":  # whose libraries we do not know how to prepare
        return
    data = zlib.compress(kept, 1)
    with contextlib.suppress(OSError):  # a read-only home, a full disk
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        _write(directory / key, hashlib.sha256(data).digest() + data)
        _make_room(directory)


@functools.cache
def _prepare_libraries() -> None:
    """Let JAX set LAPACK up, as it does when it lowers the first operation that needs it: programs call addresses."""
    jax.jit(jax.lax.linalg.cholesky).lower(np.eye(1, dtype=np.float32))


def _write(path: Path, data: bytes) -> None:
    """Write a file that nobody sees before it is complete."""
    number, name = tempfile.mkstemp(dir=path.parent, prefix="writing-")
    try:
        with os.fdopen(number, "wb") as file:
            file.write(data)
        os.replace(name, path)
    finally:
        Path(name).unlink(missing_ok=True)


def _make_room(directory: Path) -> None:
    """Remove what has not been used for longest, until no more than `LARGEST` bytes are left."""
    found = sorted(((e.stat().st_mtime, e.stat().st_size, e.path) for e in os.scandir(directory)), reverse=True)
    total = 0
    for _, size, path in found:
        total += size
        if total > LARGEST:
            os.unlink(path)


@contextlib.contextmanager
def uncached() -> Iterator[None]:
    """Context: programs are compiled although a cache has them, so that this can be timed. For the whole process."""
    global _off
    from jax.experimental.compilation_cache import compilation_cache

    before = getattr(jax.config, "jax_enable_compilation_cache", True)
    jax.config.update("jax_enable_compilation_cache", False)
    compilation_cache.reset_cache()  # JAX looks at the option once
    _off += 1
    try:
        yield
    finally:
        _off -= 1
        jax.config.update("jax_enable_compilation_cache", before)
        compilation_cache.reset_cache()
