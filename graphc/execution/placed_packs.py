"""Packs of state on a device (see `graphc.execution.packs`): the memories of tensors are parts of one memory there.

Nobody has to be told: a `Memory` that lies in another one is read from there, and leaves it when it is written.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, MutableMapping, Sequence
from itertools import accumulate
from sys import getrefcount
from typing import Any, TypeVar, final

import numpy as np

from eager.core.device_memory import Memory
from eager.core.devices import device
from eager.core.placed import Placed, backing
from eager.core.runtime import runtime
from eager.core.tensor import Tensor
from graphc.capture.state.words import Word, slot_of
from graphc.ops import OPS
from graphc.ops.aval import Aval
from graphc.ops.steps import Step, steps_of

# references to a gradient that only its tensor has: that, a row of the pack, a variable, an argument; to its memory:
# what stands for it, a variable, an argument
ALONE, ALONE_IN_MEMORY = 4, 3
_T = TypeVar("_T")
_CAT, _RESHAPE, _SLICE = OPS["cat"], OPS["reshape"], OPS["slice"]


def hidden_tensor() -> Tensor:
    """A tensor that no user sees, still without data."""
    tensor = object.__new__(Tensor)
    tensor._d, tensor._n, tensor._g = None, None, None
    return tensor


def shared(
    known: MutableMapping[tuple[Any, ...], _T], make: Callable[..., _T], tensors: Sequence[Tensor], *more: Any
) -> _T:
    """What another program has made for the same tensors, as they are, and `more`, or what `make` gives for them."""
    key = (*more, *[(id(t), tuple(t._d.shape), t._dtype()) for t in tensors])
    found = known.get(key)
    if found is None:
        found = known[key] = make(tensors, *more)
    return found


def is_whole(tensor: Tensor, where: device) -> bool:
    """Whether `tensor` is all of a memory on the device `where`, in row-major order."""
    d = tensor._d
    there = d.__class__ is Placed and d.device is where and where.mesh is None
    return there and not d.steps and d.stride is None and d.memory.stride is None


def places(avals: Sequence[Aval]) -> list[tuple[Step, ...]]:
    """What leads to each of several arrays that lie side by side in one."""
    sizes = [math.prod(a.shape) for a in avals]
    whole = Aval((sum(sizes),), avals[0].dtype)
    found: list[tuple[Step, ...]] = []
    for aval, size, stop in zip(avals, sizes, accumulate(sizes), strict=True):
        cut = {"start": (stop - size,), "stop": (stop,), "step": (1,)}
        part = Aval((size,), aval.dtype)
        found.append((*steps_of(_SLICE, cut, whole), *steps_of(_RESHAPE, {"shape": aval.shape}, part)))
    return found


def _avals(tensors: Sequence[Tensor]) -> list[Aval]:
    return [Aval(tuple(t._d.shape), t._d.numpy_dtype) for t in tensors]


@final
class PlacedPack:
    """Tensors whose memories lie in that of the hidden `tensor`.

    equal  all have one value: the memory is that
    parts  the data of the members
    """

    def __init__(self, members: Sequence[Tensor], equal: bool, parts: Sequence[Placed]):
        self.members = list(members)
        self.equal = equal
        self.parts = list(parts)
        self._steps = [()] * len(self.members) if equal else places(_avals(members))
        self.memory = Memory(None, None)
        self.tensor = hidden_tensor()

    @staticmethod
    def of(members: Sequence[Tensor], equal: bool) -> PlacedPack:
        """That of another program, if it has the same members, in the same memories."""
        return shared(_known, PlacedPack, members, equal, tuple([t._d for t in members]))

    def settled(self, name: Callable[[Any], str]) -> str:
        """The expression that is true if all members lie in the pack."""
        memories = [d.memory for d in self.parts]
        return (
            f"{name(self.parts)} == [t._d for t in {name(self.members)}]"
            f" and [m.pack for m in {name(memories)}].count({name(self.memory)}) == {len(memories)}"
        )

    @property
    def words(self) -> list[list[Word] | None]:
        """The words of memory that say so."""
        data = [slot_of(t, "_d", part) for t, part in zip(self.members, self.parts, strict=True)]
        return data + [slot_of(part.memory, "pack", self.memory) for part in self.parts]

    def _apart(self) -> list[int]:
        return [k for k, part in enumerate(self.parts) if part.memory.pack is not self.memory]

    def misfit(self) -> str:
        """Why the members cannot lie in the pack any more; "" if they can."""
        if any(t._d is not part for t, part in zip(self.members, self.parts, strict=True)):
            return "state was moved to another device, or other memory"
        if self.equal and self._apart() and len({part.values.tobytes() for part in self.parts}) > 1:
            return "numbers that were equal differ"
        return ""

    def gather(self, own: Callable[[Any], Any]) -> list[Tensor]:
        """Lay the members that have been written into the pack."""
        apart = self._apart()
        if not apart:
            return []
        arrays = [self.parts[k].memory.array for k in apart]
        if self.equal:
            whole = own(arrays[0])
        elif len(apart) == len(self.parts):
            flat = [runtime().run(_RESHAPE, [a], {"shape": (math.prod(a.shape),)}) for a in arrays]
            whole = runtime().run(_CAT, flat, {"axis": 0})
        else:
            whole = self.memory.array
            for k, array in zip(apart, arrays, strict=True):
                whole = runtime().write(whole, self._steps[k], array)
        self.memory.array = whole
        self.memory.version += 1
        self.tensor._d = Placed(whole, self.parts[0].device, self.memory)
        for k in apart:  # an interrupt between them leaves some apart, with the values that they have in the pack
            self.parts[k].memory.lie_in(self.memory, self._steps[k])
        return []


_known: weakref.WeakValueDictionary[tuple[Any, ...], PlacedPack] = weakref.WeakValueDictionary()


@final
class PlacedGradients:
    """New gradients of the tensors `of`, whose memories lie in one. That of a single tensor is as the gradient is."""

    def __init__(self, of: Sequence[Tensor]):
        self._of = list(of)
        self._avals = _avals(of)
        self._steps = places(self._avals) if len(of) > 1 else [()]
        self._memory = Memory(None, None)
        self._is_taken = False
        self._rows: list[tuple[Tensor, Tensor, Placed]] = []

    @staticmethod
    def of(tensors: Sequence[Tensor]) -> PlacedGradients:
        """That of another program, if it gives gradients of the same tensors: programs may take turns."""
        return shared(_gradients, PlacedGradients, tensors)

    def _alone(self) -> bool:
        """Whether the latest ones are still there, or gone, and nobody else has any of them."""
        for t, g, d in self._rows:
            if t._g is not g and t._g is not None:
                return False
            if getrefcount(g) > ALONE or g._d is not d or g._n is not None:
                return False
            memory = d.memory
            if getrefcount(d) > ALONE or getrefcount(memory) > ALONE_IN_MEMORY or memory.pack is not self._memory:
                return False
        return bool(self._rows)

    def take(self) -> Any:
        """The array of the latest ones if nobody else has any of them, else a new one."""
        self._is_taken = self._alone()
        if self._is_taken:
            return self._memory.array
        first, *others = self._avals
        shape = (sum(math.prod(a.shape) for a in self._avals),) if others else first.shape
        return runtime().put(np.zeros(shape, first.dtype), backing(self._of[0]._d.device))

    def restored(self, array: Any) -> None:
        """The program that has taken the old ones has returned them, or the new ones."""
        if self._is_taken:
            self._memory.array = array
            self._memory.version += 1

    def give(self, array: Any) -> None:
        """Let the gradients be those in `array`, in the tensors of the latest ones if they were taken."""
        if not self._is_taken:
            memory, where, rows = Memory(array, None), self._of[0]._d.device, []
            for t, aval, steps in zip(self._of, self._avals, self._steps, strict=True):
                part = Placed.lying_in(memory, steps, aval, where)
                rows.append((t, Tensor._wrap(part), part))
            self._memory, self._rows, self._is_taken = memory, rows, True
        for t, g, _ in self._rows:
            t._g = g


_gradients: weakref.WeakValueDictionary[tuple[Any, ...], PlacedGradients] = weakref.WeakValueDictionary()
