"""NumPy's memory that a program only reads, given to XLA where it lies."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable
from sys import getrefcount
from typing import Any, final

import numpy as np

from eager.core.state import note_move
from eager.core.tensor import Tensor
from graphc.capture.storage.sharing import is_whole
from graphc.lowering import ALIGNMENT, alias, aligned, release


def _nothing() -> None:
    """What a weak reference to nothing returns."""


@final
class ReadInPlace:
    """The arrays that one input of a program is given for ndarrays: aliases, from the second time on that one comes.

    XLA copies what does not begin at a multiple of 64 bytes, and takes long over NumPy's arrays in any case. The
    memory is moved to where it can be read, if nobody else can see it.

    known  the latest ndarray, by weak reference, and its alias: read both at once, for other threads write them
    """

    __slots__ = ("_count", "_patience", "_seen", "known")

    def __init__(self) -> None:
        self.known: tuple[Callable[[], Any], Any] = _nothing, None
        self._seen, self._count, self._patience = 0, 0, 1  # how often the latest has been seen, and is to be

    def fetch(self, tensor: Tensor, d: np.ndarray, held: int = 1) -> Any:
        """The array for `d`, the data of `tensor`, which is not known. `held`: in how many variables the callers do."""
        if self._seen != id(d):
            self._seen, self._count = id(d), 0
        self._count += 1
        if self._count <= self._patience:
            return d
        release()
        # the tensor, `d` and the argument of getrefcount; a view of it would hold it, too
        moved = aligned(d) if getrefcount(d) <= 3 + held and _may_move(d) and d.ctypes.data % ALIGNMENT else d
        found = alias(moved)
        if found is None:  # somebody may hold it for a while
            self._patience, self._count = 2 * self._patience, 0
            return d
        if moved is not d:
            note_move(d, moved)
            tensor._d = moved
        self.known = weakref.ref(moved), found
        return found


def _may_move(d: np.ndarray) -> bool:
    """Whether an array that one tensor holds, and nobody else, may be another: no other thread may write to it."""
    return is_whole(d) and d.flags.writeable and d.flags.c_contiguous and threading.active_count() == 1
