"""Files that are written in one step: a reader sees the old content or the new one, never half of either."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

DRAFT = ".part"  # how the names of files end that are not complete


@contextlib.contextmanager
def draft(path: str | os.PathLike[str], mode: int = 0o666, durable: bool = True) -> Iterator[str]:
    """Context: the name of an empty file beside `path`, to write to. It takes the place of `path` if the block ends
    well, and is removed if it raises: then `path` is as it was.

    mode     permissions of a new file, less the process's mask; one that is replaced keeps its own
    durable  wait until the content is on the disk, so that a crash of the machine loses neither

    A link is followed. What is there and no file, such as a terminal, is written to directly. Raises OSError.
    """
    target = os.path.realpath(path)
    before = _status(target)
    if before is not None and not stat.S_ISREG(before.st_mode) and not stat.S_ISDIR(before.st_mode):
        yield target
        return
    folder, name = os.path.split(target)
    new = os.path.join(folder, f".{name[:40]}.{secrets.token_hex(8)}{DRAFT}")
    os.close(os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
    try:
        yield new
        if before is not None:
            os.chmod(new, stat.S_IMODE(before.st_mode))
        if durable:
            _synchronize(new)
        os.replace(new, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.remove(new)
        raise


def write(path: str | os.PathLike[str], content: bytes | str, mode: int = 0o666, durable: bool = True) -> None:
    """Replace the content of a file, as `draft` does. Text is encoded as UTF-8."""
    data = content.encode() if isinstance(content, str) else content
    with draft(path, mode, durable) as name:
        Path(name).write_bytes(data)


def _status(path: str) -> os.stat_result | None:
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _synchronize(path: str) -> None:
    number = os.open(path, os.O_RDWR)
    try:
        os.fsync(number)
    finally:
        os.close(number)
