"""What the whole engine shares: gradient mode, the node counter, the mutation clock, the gates of the fast paths.

The node counter gives each recorded operation a number; `backward()` visits nodes from the highest down. In-place
writes take a number from the same counter (the *mutation clock*), so "was anything written after this node was
recorded" is one comparison, and the fast path pays nothing for it.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections import deque
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import numpy as np

from graphc import forking

GRAD_ENABLED: ContextVar[bool] = ContextVar("grad_enabled", default=True)
grad_enabled = GRAD_ENABLED.get
sequence = itertools.count(1)
# the function transforms (eager.func) that the running code is inside of, outermost first
TRANSFORMS: ContextVar[tuple[Any, ...]] = ContextVar("transforms", default=())
active_transforms = TRANSFORMS.get

waiters: list[Callable[[], None]] = []  # what waits for the programs that have begun
_gate_lock = forking.renewed(threading.Lock())
closed = 0  # how many times the fast paths are closed
_gates: list[Callable[[bool], None]] = []


def add_gate(set_open: Callable[[bool], None]) -> None:
    """Register a fast path; `set_open(False)` makes it hand every call to `dispatch.apply`."""
    _gates.append(set_open)
    set_open(not closed)


class Closing:
    """Someone who may want the fast paths closed; they are open while nobody does."""

    def __init__(self) -> None:
        self._wanted = False

    def set(self, wanted: bool) -> None:
        """Want them closed from now on, or no longer. To say so twice, after an interrupt, changes nothing."""
        global closed
        with _gate_lock:
            if self._wanted is not wanted:
                closed += 1 if wanted else -1
                self._wanted = wanted
            for set_open in _gates:
                set_open(not closed)


class Recent(list[Any]):
    """Weak references to tensors. Dead ones are dropped when the list has doubled."""

    limit = 16

    def add(self, tensor: Any) -> None:
        self.append(weakref.ref(tensor))
        if len(self) > self.limit:
            self[:] = [ref for ref in self if ref() is not None]
            self.limit = 2 * max(len(self), 8)

    def live(self) -> list[Any]:
        return [tensor for ref in self if (tensor := ref()) is not None]


# the tensors made in inference mode, which it seals at its end; None outside of it
INFERENCE: ContextVar[Recent | None] = ContextVar("inference", default=None)
made_in_inference = INFERENCE.get
tracking = 0  # how many threads are in inference mode: only then do new tensors have to be noted
_makers: list[Callable[[Any], None]] = []


def tracked_new(cls: Any) -> Any:
    """`object.__new__`, for tensors, while a thread is in inference mode."""
    tensor = object.__new__(cls)
    made = made_in_inference()
    if made is not None:
        made.add(tensor)
    return tensor


def add_maker(set_new: Callable[[Any], None]) -> None:
    """Register code that makes tensors; `set_new(new)` tells it with what."""
    _makers.append(set_new)
    set_new(tracked_new if tracking else object.__new__)


def track_tensors(by: int) -> None:
    """Note new tensors once more (+1) or once less (-1)."""
    global tracking
    with _gate_lock:
        tracking += by
        for set_new in _makers:
            set_new(tracked_new if tracking else object.__new__)


class Anomaly:
    """Whether anomaly mode is on, and whether it looks for nan."""

    enabled = False
    check_nan = True


anomaly = Anomaly()
# (pack, unpack) pairs in force for what nodes save
SAVED_HOOKS: ContextVar[tuple[Any, ...]] = ContextVar("saved_hooks", default=())
saved_hooks = SAVED_HOOKS.get

latest_mutation = 0
_RECENT = 8
_writes: dict[int, tuple[Any, list[Any]]] = {}  # id(storage) -> (weak reference, [count, recent numbers, writer])


def storage_of(array: np.ndarray) -> Any:
    """The object that owns the memory of `array`."""
    base = array.base
    while isinstance(base, np.ndarray):
        array, base = base, base.base
    return array


def writeable(array: np.ndarray) -> np.ndarray | None:
    """`array`, or a view of it that may be written where only repeated places forbid it; None if its memory does."""
    if array.flags.writeable:
        return array
    owner = storage_of(array)
    if not (isinstance(owner, np.ndarray) and owner.flags.writeable):
        return None
    view = array.view()
    view.flags.writeable = True
    return view


class _Memory:
    """The memory of an array under another owner."""

    def __init__(self, array: np.ndarray):
        self.__array_interface__ = array.__array_interface__
        self.array = array


def separate(array: np.ndarray) -> np.ndarray:
    """The same elements in a memory of their own, in which in-place writes are counted apart."""
    apart = np.asarray(_Memory(array)).view(array.dtype)
    apart.flags.writeable = array.flags.writeable
    return apart


def separate_view(array: np.ndarray) -> np.ndarray:
    """The same elements, as far from the first one of their memory, in which in-place writes are counted apart.

    It stays as writeable as it is: an expanded tensor is not, and what it shows is.
    """
    owner = storage_of(array)
    whole = separate(owner)
    if array is owner:
        return whole
    flat = whole if whole.flags.c_contiguous else whole.T
    offset = array.__array_interface__["data"][0] - owner.__array_interface__["data"][0]
    apart = np.ndarray(array.shape, array.dtype, flat, offset, array.strides)
    apart.flags.writeable = array.flags.writeable
    return apart


def memory_of(data: Any) -> Any:
    """`storage_of` an array, or of what stands in its place (`eager.core.placed`)."""
    return storage_of(data) if isinstance(data, np.ndarray) else getattr(data, "memory", data)


def note_write(array: Any) -> None:
    """Record that the memory of `array`, or a memory elsewhere, has just been written in place."""
    global latest_mutation
    owner = storage_of(array)
    entry = _writes.get(id(owner))
    if entry is None:
        entry = _remember(owner, [0, deque(maxlen=_RECENT), None])
    latest_mutation = next(sequence)
    entry[1][0] += 1
    entry[1][1].append(latest_mutation)


def _remember(owner: np.ndarray, writes: list[Any]) -> Any:
    key = id(owner)
    entry = _writes[key] = (weakref.ref(owner, lambda _: _writes.pop(key, None)), writes)
    return entry


def note_move(old: np.ndarray, new: np.ndarray) -> None:
    """Record that `new` takes the place of `old`, which nobody else can see: it has been written as often."""
    entry = _writes.get(id(storage_of(old)))
    if entry is not None:
        _remember(storage_of(new), entry[1])


def note_writer(array: np.ndarray, name: str) -> None:
    """Remember that the last write to the memory of `array`, just noted, has been recorded as a node called `name`."""
    _writes[id(memory_of(array))][1][2] = name, array.shape


def writer_of(array: np.ndarray) -> tuple[str, tuple[int, ...]] | None:
    """Of the last recorded write to the memory of `array`, the name of the node and the shape of the base; or None."""
    entry = _writes.get(id(memory_of(array)))
    return entry[1][2] if entry else None


def version_of(array: Any) -> int:
    """How many in-place writes the memory of `array` has seen."""
    entry = _writes.get(id(memory_of(array)))
    return entry[1][0] if entry else 0


def writes_since(array: np.ndarray, number: int) -> int:
    """How many in-place writes (at most 8 are remembered) the memory of `array` has seen since `number`."""
    entry = _writes.get(id(memory_of(array)))
    return sum(n > number for n in entry[1][1]) if entry else 0
