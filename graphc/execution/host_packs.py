"""Packs of state of the CPU (see `graphc.execution.packs`): tensors whose data are parts of one array of XLA's.

The small ones have a `Part` for data: it says where they lie, and shows their values to whoever looks. Whoever writes
to one of them gives it data of its own; the next call lays those into the pack again.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable, Sequence
from sys import getrefcount
from typing import Any, final

import numpy as np

from eager.core.placed import Placed
from eager.core.stand_ins import Deferred
from eager.core.state import note_write
from eager.core.tensor import Tensor
from graphc import forking
from graphc.capture.state.words import Word, slot_of
from graphc.capture.storage.sharing import is_whole
from graphc.execution.placed_packs import ALONE, hidden_tensor, shared
from graphc.ops.stand_in import StandIn


@final
class Part(StandIn):
    """The data of a tensor that lies in the array of the hidden tensor `pack`, from element `start` on."""

    __slots__ = ("_known", "numpy_dtype", "pack", "shape", "size", "start")

    def __init__(self, pack: Tensor, start: int, shape: tuple[int, ...], dtype: np.dtype):
        self.pack = pack
        self.start = start
        self.shape = shape
        self.numpy_dtype = dtype
        self.size = int(np.prod(shape))
        self._known: Any = None

    def __eq__(self, other: object) -> bool:  # lists of data are compared, which may hold arrays
        return self is other

    __hash__ = StandIn.__hash__

    def values(self) -> np.ndarray:
        """A copy of the values."""
        array = self.pack._d.array
        if forking.process.lost and not array.is_ready():
            forking.refuse("a result that was still being computed,")
        return np.asarray(array).reshape(-1)[self.start : self.start + self.size].reshape(self.shape).copy()

    @property
    def array(self) -> np.ndarray:
        """The values, for programs that only read them: one object, as long as they are the same."""
        array = self.pack._d.array
        if self._known is None or self._known[0]() is not array:
            self._known = weakref.ref(array), self.values()  # who holds the array keeps programs from taking it over
        return self._known[1]

    def force(self, tensor: Tensor) -> np.ndarray:
        tensor._d = self.values()
        return tensor._d


def _parts(pack: Tensor, like: Iterable[Tensor], equal: bool) -> list[Part]:
    parts: list[Part] = []
    start = 0
    for t in like:
        parts.append(Part(pack, start, tuple(t._d.shape), t._dtype()))
        start += 0 if equal else parts[-1].size
    return parts


@final
class StatePack:
    """Tensors that lie in the array of the hidden `tensor`; with the `parts` for data, while they do.

    equal  all have one value: the array is that
    """

    def __init__(self, members: Sequence[Tensor], equal: bool):
        self.tensor = hidden_tensor()
        self.members = list(members)
        self.equal = equal
        self.parts = _parts(self.tensor, members, equal)

    @staticmethod
    def of(members: Sequence[Tensor], equal: bool) -> StatePack:
        """That of another program, if it has the same members."""
        return shared(_known, StatePack, members, equal)

    def settled(self, name: Callable[[Any], str]) -> str:
        """The expression that is true if all members lie in the pack."""
        return f"{name(self.parts)} == [t._d for t in {name(self.members)}]"

    @property
    def words(self) -> list[list[Word] | None]:
        """The words of memory that say so."""
        return [slot_of(t, "_d", part) for t, part in zip(self.members, self.parts, strict=True)]

    def misfit(self) -> str:
        """Why the members cannot lie in the pack any more; "" if they can."""
        apart = [t for t, part in zip(self.members, self.parts, strict=True) if t._d is not part]
        if any(t._d.__class__ is Placed or (is_committed(t) and not self.equal) for t in apart):
            return "state was moved to another device"
        if self.equal and apart and len({values_of(t).tobytes() for t in self.members}) > 1:
            return "numbers that were equal differ"
        return ""

    def gather(self, own: Callable[[np.ndarray], Any]) -> list[Tensor]:
        """Lay the members that have other data into the pack. Returns those that keep theirs, since others see them.

        own  (array): a copy that a program may take over
        """
        apart = [k for k, t in enumerate(self.members) if t._d is not self.parts[k]]
        if not apart:
            return []
        first, last = self.parts[0], self.parts[-1]
        if self.equal:
            whole = np.array(values_of(self.members[apart[0]]))
        elif len(apart) == len(self.members):
            whole = np.empty(last.start + last.size, first.numpy_dtype)
        else:
            whole = np.array(self.tensor._d.array)
        if not self.equal:
            for k in apart:
                part = self.parts[k]
                whole[part.start : part.start + part.size] = values_of(self.members[k]).reshape(-1)
        self.tensor._d = Deferred(own(whole), whole.shape, whole.dtype)
        seen: list[Tensor] = []
        for k in apart:  # an interrupt between them leaves some apart, with the values that they have in the pack
            if _is_seen(self.members[k]):
                seen.append(self.members[k])
            else:
                self.members[k]._d = self.parts[k]
        return seen

    def put_back(self, seen: Iterable[Tensor]) -> None:
        """Write the values of those members that keep their own memory to it."""
        for t in seen:
            part = self.parts[next(k for k, member in enumerate(self.members) if member is t)]
            np.copyto(t._d, part.values())
            note_write(t._d)


_known: weakref.WeakValueDictionary[tuple[Any, ...], StatePack] = weakref.WeakValueDictionary()


def values_of(tensor: Tensor) -> np.ndarray:
    """The values of a tensor whose data stay as they are."""
    d = tensor._d
    return d if d.__class__ is np.ndarray else np.asarray(d.array)


def is_committed(tensor: Tensor) -> bool:
    """Whether the values of a tensor of the CPU lie on devices that were chosen for them, and are to stay there."""
    d = tensor._d
    return d.__class__ is Deferred and getattr(d.array, "committed", False)


def _is_seen(tensor: Tensor) -> bool:
    """Whether someone else may see the memory of a tensor."""
    d = tensor._d
    # the tensor, `d` and the argument of getrefcount
    return d.__class__ is np.ndarray and (getrefcount(d) > 3 or not is_whole(d)) and d.flags.writeable


@final
class GradientPack:
    """New gradients of the tensors `of`, side by side in one array."""

    def __init__(self, of: Sequence[Tensor]):
        self._of = list(of)
        self._pack = hidden_tensor()
        self._rows: list[tuple[Tensor, Tensor, Part]] = []

    @staticmethod
    def of(tensors: Sequence[Tensor]) -> GradientPack:
        """That of another program, if it gives gradients of the same tensors: programs may take turns."""
        return shared(_gradients, GradientPack, tensors)

    def give(self, array: Any) -> None:
        """Let the gradients be those in `array`: the tensors of the latest ones, where nobody else has any of them."""
        rows = self._rows
        for t, g, d in rows:
            if t._g is not g or getrefcount(g) > ALONE or g._d is not d or g._n is not None:
                rows = []
                break
        if rows:
            self._pack._d.array = array
            return
        self._pack = hidden_tensor()
        self._pack._d = Deferred(array, array.shape, array.dtype)
        self._rows = [
            (t, Tensor._wrap(part), part) for t, part in zip(self._of, _parts(self._pack, self._of, False), strict=True)
        ]
        for t, g, _ in self._rows:
            t._g = g


_gradients: weakref.WeakValueDictionary[tuple[Any, ...], GradientPack] = weakref.WeakValueDictionary()
