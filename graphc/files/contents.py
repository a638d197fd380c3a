"""The bytes of a file, up to a limit; and what else bounds the work that content from outside can make."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from typing import IO, Any, Final

import numpy as np

FileLike = str | os.PathLike[str] | IO[bytes]
Refuse = Callable[[str, str], Exception]  # the error for (problem, place in the file)

DIGITS: Final = 40  # characters of a number: int() is quadratic in them; a float64 has at most 25, a 64-bit integer 20
SAME_HASH = 64  # keys of a dict or set

ONE_HASH = f"more than {SAME_HASH} keys with the same hash: a dict of them takes quadratic time"
TOO_LARGE = "more than {limit:,} bytes, which is all that is read of such a file"
NOT_BINARY = "the file object must be binary: its read() returned {kind}"
_PIECE = 1 << 24
_SHOWN = 100  # characters of a name in a message


def contents(file: FileLike, most: int, refuse: Refuse) -> bytes:
    """All of a file, or of what is left of a binary file object. Raises what `refuse` makes if it is longer than `most`
    bytes; OSError as `open`; TypeError for a file object that gives no bytes."""
    if isinstance(file, (str, os.PathLike)):
        with open(file, "rb", buffering=0) as opened:
            return _upto(opened, most, refuse)
    return _upto(file, most, refuse)


def _upto(opened: IO[bytes], most: int, refuse: Refuse) -> bytes:
    pieces: list[bytes] = []
    left = most + 1
    while left > 0:  # a pipe, or an unbuffered file, may give less than it is asked for
        piece = opened.read(min(left, _PIECE))
        if not isinstance(piece, (bytes, bytearray, memoryview)):
            raise TypeError(NOT_BINARY.format(kind=type(piece).__name__))
        if not piece:
            return pieces[0] if len(pieces) == 1 and type(pieces[0]) is bytes else b"".join(pieces)
        pieces.append(piece)
        left -= len(piece)
    raise refuse(TOO_LARGE.format(limit=most), "")


def check_keys(keys: Sequence[Hashable], place: str, refuse: Refuse) -> None:
    """Raise what `refuse` makes if `keys` were chosen so that a dict of them is slow: hashes of numbers, and of tuples
    of them, are the same in each process, those of texts are not."""
    if len(keys) > SAME_HASH and max(Counter(map(hash, keys)).values()) > SAME_HASH:
        raise refuse(ONE_HASH, place)


def printable(text: str) -> str:
    """A name from a file as messages show it: on one line, and no longer than that."""
    return text if text.isprintable() and len(text) <= _SHOWN else ascii(text[:_SHOWN])


def exactly(file: IO[bytes], count: int, refuse: Refuse, what: str) -> bytearray:
    """The next `count` bytes, in memory that may be written, of which no more is taken than the file has."""
    found = bytearray()
    while len(found) < count:
        piece = file.read(min(count - len(found), _PIECE))
        if not piece:
            raise refuse(f"it ends {count - len(found):,} bytes early", what)
        found += piece
    return found


def mapped(file: IO[bytes]) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The bytes of an open file in place. What is written to them stays in memory."""
    return np.memmap(file, np.uint8, mode="c").view(np.ndarray)  # type: ignore[call-overload]
