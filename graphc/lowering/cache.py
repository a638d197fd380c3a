"""The cache of compiled programs on disk: a later process loads a program that is known, instead of compiling it.

It lies in the user's cache directory unless GRAPHC_CACHE_DIR names another; GRAPHC_CACHE=0 turns it off. If the user
has configured a cache in JAX, that one is used instead: it keeps what XLA makes, but JAX still traces and lowers.

Whatever is wrong with it, programs are compiled anew: see `graphc.lowering.programs` for what a file must be.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from graphc import logs
from graphc.errors import ProgramFileError
from graphc.files import writing
from graphc.lowering import programs
from graphc.lowering.loading import jax

WORTHWHILE = 0.25  # seconds of compilation, from which on a program is kept
LARGEST = 2**30  # bytes of all programs: the ones that have not been used for longest go first
DROPPED = "%s. The program is compiled anew."
NOT_TRUSTED = (
    "the folder %s belongs to another user, or others may write to it: compiled programs, which are code, are neither "
    "read there nor kept. Remedy: chmod go-w, or another folder in GRAPHC_CACHE_DIR."
)
_OURS = re.compile(rf"[0-9a-f]{{64}}|\.[0-9a-f]{{40}}\.[0-9a-f]{{16}}{re.escape(writing.DRAFT)}")  # names of files
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
    """The program of that key (`jax.stages.Compiled`) for a device; None if it is not there. A file that is not what
    was kept for this key is dropped, and logged."""
    directory = _trusted_directory()
    if directory is None:
        return None
    path = directory / key
    refuse = ProgramFileError.of(str(path))
    try:
        found = programs.loaded(key, programs.content_of(path, refuse), refuse, device)
        logs.cache.info("loaded %s", path)
        return found
    except FileNotFoundError:
        return None
    # also a file that cannot be opened, and whatever another build of XLA says to it
    except Exception as error:
        logs.cache.warning(DROPPED, error if isinstance(error, ProgramFileError) else f"{path}: {error!r}")
        with contextlib.suppress(OSError):
            path.unlink()
        return None


def store(key: str, program: Any, device: Any) -> None:
    """Keep a program. Without a word if it cannot be: everything works, only slower the next time."""
    directory = cache_directory()
    if directory is None:
        return
    try:
        content = programs.packed(key, program, device)
    except Exception:  # not every backend's programs can be kept, nor those that call Python
        return
    with contextlib.suppress(OSError):  # a read-only home, a full disk
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        if _trusted_directory() is not None:
            writing.write(directory / key, content, mode=0o600, durable=False)
            logs.cache.info("kept %s, %s bytes", directory / key, f"{len(content):,}")
            _make_room(directory)


def _trusted_directory() -> Path | None:
    """Where programs are; None if that is not there, or others may write to it."""
    directory = cache_directory()
    try:
        if directory is None or programs.trusted(directory.stat()):
            return directory
    except OSError:
        return None
    _tell(directory)
    return None


@functools.cache
def _tell(directory: Path) -> None:
    logs.cache.warning(NOT_TRUSTED, directory)


def _make_room(directory: Path) -> None:
    """Remove what has not been used for longest, until no more than `LARGEST` bytes are left. Other files, in a folder
    that GRAPHC_CACHE_DIR names, are not ours to remove."""
    found: list[tuple[float, int, str]] = []
    for entry in os.scandir(directory):
        with contextlib.suppress(FileNotFoundError):  # another process makes room, too
            if _OURS.fullmatch(entry.name) and entry.is_file(follow_symlinks=False):
                status = entry.stat(follow_symlinks=False)
                found.append((status.st_mtime, status.st_size, entry.path))
    total = 0
    for _, size, path in sorted(found, reverse=True):
        total += size
        if total > LARGEST:
            with contextlib.suppress(FileNotFoundError):
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
