"""Memory for what a program computes on the way, planned before it runs: values that are not alive together share it.

A program takes its memory from a pool, and puts it back at its end. A call that finds the pool empty, because another
thread is inside the program or an error has ended it, makes new memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, final

import numpy as np

from graphc.ops.aval import Aval

ALIGNMENT = 64  # bytes: a line of the cache
MOST_KEPT = 1 << 26  # bytes that a program keeps between calls


class Place(NamedTuple):
    """A block of memory, by number, and the array that lies in it."""

    block: int
    aval: Aval


@final
class Plan:
    """The blocks of memory of one program, while they are given out."""

    def __init__(self) -> None:
        self.places: list[Place] = []
        self._sizes: list[int] = []
        self._free: list[int] = []

    def take(self, aval: Aval) -> int:
        """The number of a place for an array: in a block that is free, if one is large enough or can grow."""
        need = max(aval.size * aval.dtype.itemsize, 1)
        best = None
        for block in self._free:
            if best is None or self._distance(block, need) < self._distance(best, need):
                best = block
        if best is None:
            best = len(self._sizes)
            self._sizes.append(need)
        else:
            self._free.remove(best)
            self._sizes[best] = max(self._sizes[best], need)
        place = Place(best, aval)
        if place in self.places:
            return self.places.index(place)
        self.places.append(place)
        return len(self.places) - 1

    def _distance(self, block: int, need: int) -> int:
        return abs(self._sizes[block] - need)

    def again(self, number: int, aval: Aval) -> int | None:
        """A place for an array in the block of place `number`, which it takes over; None if that is another."""
        place = Place(self.places[number].block, aval)
        return number if self.places[number] == place else None

    def put_back(self, number: int) -> None:
        """Free the block of a place."""
        self._free.append(self.places[number].block)

    @property
    def size(self) -> int:
        """The bytes of all blocks."""
        return sum(self._sizes)

    def maker(self) -> Callable[[], tuple[np.ndarray, ...]]:
        """f(): new memory, as the arrays of the places."""
        sizes, places = tuple(self._sizes), tuple(self.places)

        def make() -> tuple[np.ndarray, ...]:
            blocks = [_aligned(size) for size in sizes]
            return tuple(_array(blocks[place.block], place.aval) for place in places)

        return make


def _aligned(size: int) -> np.ndarray:
    memory = np.empty(size + ALIGNMENT, np.uint8)
    start = -memory.ctypes.data % ALIGNMENT
    return memory[start : start + size]


def _array(block: np.ndarray, aval: Aval) -> np.ndarray:
    return np.ndarray(aval.shape, aval.dtype, block)


def last_uses(reads: Sequence[Sequence[Any]]) -> dict[Any, int]:
    """For each thing that is read, the number of the step that reads it last."""
    return {thing: k for k, things in enumerate(reads) for thing in things}
