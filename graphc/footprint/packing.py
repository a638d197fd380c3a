"""Where XLA puts values that need not be there at the same time (heap_simulator.cc, GlobalDecreasingSizeBestFitHeap).

The largest first, or that which lives longest; each into the smallest gap in which it fits all the while. So there may
be gaps, and more memory taken than is ever alive at one time.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

ALIGNED = 64  # bytes, to which values are laid


def packed(lives: Sequence[tuple[int, int, int]]) -> int:
    """The bytes that values take together: of each its bytes, the step that writes it, the last that reads it."""
    sized = [life for life in lives if life[0]]
    times = _clocked(sized)
    by_size = sorted(range(len(sized)), key=lambda k: (-sized[k][0], times[k][0] - times[k][1]))
    by_time = sorted(by_size, key=lambda k: times[k][0] - times[k][1])
    return min(_laid(order, sized, times) for order in (by_size, by_time))


def _clocked(lives: Sequence[tuple[int, int, int]]) -> list[tuple[int, int]]:
    """When memory is taken and given back, as XLA counts: in each step first what is taken, one at a time."""
    order = sorted(range(len(lives)), key=lambda k: lives[k][1:])
    events = [(lives[k][1], 0, n, k) for n, k in enumerate(order)] + [
        (lives[k][2], 1, n, k) for n, k in enumerate(order)
    ]
    taken, given = [0] * len(lives), [0] * len(lives)
    for now, (_, ends, _, k) in enumerate(sorted(events)):
        (given if ends else taken)[k] = now
    return list(zip(taken, given, strict=True))


def _laid(order: Sequence[int], lives: Sequence[tuple[int, int, int]], times: Sequence[tuple[int, int]]) -> int:
    """The bytes up to the end of the last value, if they are laid in this order."""
    placed = np.zeros((4, len(order)), np.int64)  # of each: when it is taken, given back, where it begins and ends
    for n, k in enumerate(order):
        size, (start, stop) = lives[k][0], times[k]
        taken, given, begins, ends = placed[:, :n]
        meanwhile = (taken <= stop) & (given >= start)
        at = _gap(size, begins[meanwhile], ends[meanwhile])
        placed[:, n] = start, stop, at, at + size
    return int(placed[3].max(initial=0))


def _gap(size: int, begins: np.ndarray, ends: np.ndarray) -> int:
    """The begin of the smallest gap of `size` bytes between what is there, or after all of it."""
    order = np.argsort(begins, kind="stable")
    after = np.maximum.accumulate(np.concatenate([[0], -(-ends[order] // ALIGNED) * ALIGNED]))
    room = begins[order] - after[:-1]
    fits = np.flatnonzero(room >= size)
    return int(after[fits[room[fits].argmin()]] if len(fits) else after[-1])
