"""Which of the tensors that are there after a call are one tensor, and which share memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from eager.core.tensor import Tensor

WORK: Any = 10_000  # that NumPy may take to find out whether arrays have an element in common (its stubs know -1 and 0)
SAME, SHARED = "one tensor", "shared memory"
Sharing = Mapping[tuple[str, str], str]


def sharing_of(named: Mapping[str, Any]) -> Sharing:
    """How each two of the tensors belong together, by their names in this order; others are left out.

    Memory that the first write copies is nobody else's.
    """
    tensors = {name: t for name, t in named.items() if isinstance(t, Tensor)}
    order = {name: k for k, name in enumerate(tensors)}
    arrays = {name: t._array() for name, t in tensors.items()}
    found: dict[tuple[str, str], str] = {}
    for one, two in _close(arrays):
        a, b = sorted((one, two), key=order.__getitem__)
        if tensors[a] is tensors[b]:
            found[a, b] = SAME
        elif _is_written(arrays[a]) and _is_written(arrays[b]) and np.may_share_memory(arrays[a], arrays[b], WORK):
            found[a, b] = SHARED
    return found


def _close(arrays: Mapping[str, np.ndarray]) -> Iterator[tuple[str, str]]:
    """Pairs whose memory may overlap, by their first and last bytes."""
    bounds = [(*np.lib.array_utils.byte_bounds(a), name) for name, a in arrays.items() if a.size]
    open_: list[tuple[int, str]] = []
    for low, high, name in sorted(bounds):
        open_ = [(end, other) for end, other in open_ if end > low]
        yield from ((other, name) for _, other in open_)
        open_.append((high, name))


def _is_written(array: np.ndarray) -> bool:
    """Whether a write to a tensor of this array goes to its memory, or is refused because elements are repeated."""
    return array.flags.writeable or any(s == 0 and n > 1 for n, s in zip(array.shape, array.strides, strict=True))


def differences(found: Sharing, expected: Sharing) -> Iterator[tuple[str, str]]:
    """(what, detail) of each pair of tensors that belong together otherwise than expected."""
    for pair in dict.fromkeys([*expected, *found]):
        ours, theirs = found.get(pair, "memory of their own"), expected.get(pair, "memory of their own")
        if ours != theirs:
            yield f"memory of {pair[0]} and {pair[1]}", f"{ours}, eager has {theirs}"
