"""A condition of a program that writes: the tensors of a call share memory as those did that it was traced with."""

from __future__ import annotations

import itertools
from sys import getrefcount
from typing import Any, final

import numpy as np

from eager.core.stand_ins import Deferred
from eager.core.tensor import Tensor
from graphc.capture.program import Program
from graphc.capture.sources import Argument, Captured, GradOf, Lifted, MemoryOf, Of, Owner, Source
from graphc.capture.storage.inputs import memory_of, relation


def is_whole(d: np.ndarray) -> bool:
    """Whether `d` is all of its memory, which no other array shows: it may be an array that was reshaped."""
    base = d.base
    if base is None:
        return True
    # `d`, the variable and the argument of getrefcount
    return isinstance(base, np.ndarray) and base.base is None and base.nbytes == d.nbytes and getrefcount(base) <= 3


def given(source: Source, tensors: list[Tensor]) -> Tensor:
    """The tensor behind a source, in a call with `tensors`."""
    match source:
        case Argument(position):
            return tensors[position]
        case Captured(tensor):
            return tensor
        case Lifted():
            return source.get()
        case MemoryOf(of):
            return given(of, tensors)
    raise AssertionError(source)


@final
class Sharing:
    """Which inputs of a program share memory.

    Two captured tensors stay as they were. What is written must share no memory with anything else that a call
    brings: an argument, or a tensor in a lifted place.

    needed      there is something to ask
    watched     the captured tensors that are written, or that what is written may share memory with
    arguments   the positions of the arguments that are inputs
    only_alone  all is well if no one else can see the memory of those, and none of them is an argument, too
    """

    def __init__(self, program: Program):
        self._known = {(a, b): how for a, b, how in program.guarded.overlaps}
        self._written = written = written_by(program)
        owners = dict.fromkeys([*(owner_of(s) for s in program.sources if not hasattr(s, "draw")), *written])
        brought = [s for s in owners if not isinstance(s, Captured) and getattr(s, "kind", None) is None]
        self._some_brought = any(s in written for s in brought)
        captured = [s for s in owners if isinstance(s, Captured) and (self._some_brought or s in written)]
        self.watched = [s.tensor for s in captured]
        self._sources: list[Owner] = [*brought, *captured]
        self._brought = brought
        self._disjoint = bool(written) and bool(brought) and len(self._sources) > 1
        self.arguments = [s.position for s in brought if isinstance(s, Argument)]
        self.needed = self._disjoint or bool(self._known)
        self.only_alone = not self._known and not self._some_brought

    def holds(self, tensors: list[Tensor]) -> bool:
        """Whether the tensors share memory as they did."""
        for (a, b), how in self._known.items():
            if relation(given(a, tensors), given(b, tensors)) != how:
                return False
        if self._disjoint and (self._some_brought or not self._alone(tensors)):
            return self._apart(tensors) or self._all_known(tensors)
        return True

    def _alone(self, tensors: list[Tensor]) -> bool:
        """Whether no one but the captured tensors can see their memory, and none of them is an argument."""
        if not {id(tensors[k]) for k in self.arguments}.isdisjoint(map(id, self.watched)):
            return False
        for t in self.watched:
            d = t._d
            # a program made it, and only the tensor, `d` and getrefcount hold it
            if d.__class__ is not Deferred or getrefcount(d) > 3:
                return False
        return True

    def _apart(self, tensors: list[Tensor]) -> bool:
        """Whether no two tensors show memory of the same owner, besides captured ones."""
        keys = {_key(given(source, tensors)) for source in self._brought}
        return len(keys) == len(self._brought) and all(_key(t) not in keys for t in self.watched)

    def _all_known(self, tensors: list[Tensor]) -> bool:
        """Whether those that share memory with what is written did so when the program was traced."""
        found = [(s, given(s, tensors)) for s in self._sources]
        for (a, x), (b, y) in itertools.combinations(found, 2):
            captured = isinstance(a, Captured) and isinstance(b, Captured)
            if captured or self._written.isdisjoint((a, b)):
                continue
            if (a, b) not in self._known and (b, a) not in self._known and relation(x, y) is not None:
                return False
        return True


def _key(tensor: Tensor) -> int:
    memory = memory_of(tensor._d)
    return id(tensor._d if memory is None else memory)


def written_by(program: Program) -> set[Any]:
    """The sources whose memory, or that of their gradients, a call may change: not those whose `.grad` it drops only,
    as `zero_grad` does with what is not trained."""
    return {owner_of(e.target) for e in program.effects.tensors if e.id is not None or not isinstance(e.target, GradOf)}


def owner_of(source: Any) -> Any:
    """The tensor that a source, or an effect, is about."""
    return owner_of(source.of) if isinstance(source, Of) else source
