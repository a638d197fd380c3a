"""A condition of a program that writes: the tensors of a call share memory as those did that it was traced with."""

from __future__ import annotations

import itertools
from typing import Any, final

import numpy as np

from eager.state import storage_of
from eager.tensor import Tensor
from graphc.capture.sources import Argument, Captured, GradOf, LeafFlag, MemoryOf, Owner, PastOf, Reached
from graphc.capture.storage.inputs import relation
from graphc.capture.trace import Program


def given(source: Owner, tensors: list[Tensor]) -> Tensor:
    """The tensor behind a source, in a call with `tensors`."""
    match source:
        case Argument(position):
            return tensors[position]
        case Captured(tensor):
            return tensor
        case Reached():
            return source.get()
        case MemoryOf(of):
            return given(of, tensors)
    raise AssertionError(source)


@final
class Sharing:
    """Which inputs of a program share memory.

    Two captured tensors stay as they were. What is written must share no memory with anything else that a call
    brings: an argument, or a tensor in a moving place. `needed`: there is something to ask.
    """

    def __init__(self, program: Program):
        self._known = {(a, b): how for a, b, how in program.overlaps}
        written = {owner_of(effect.target) for effect in program.effects}
        inputs = dict.fromkeys(owner_of(s) for s in program.sources if not hasattr(s, "draw"))
        brought = [s for s in inputs if not isinstance(s, Captured) and getattr(s, "kind", None) is None]
        if not written:
            brought = []
        some_brought = any(s in written for s in brought)
        captured = [s for s in inputs if isinstance(s, Captured) and (some_brought or s in written)] if brought else []
        self._brought = brought
        self._captured = [s.tensor for s in captured]
        self._sources: list[Owner] = [*brought, *captured]
        self._disjoint = len(self._sources) > 1
        self.needed = self._disjoint or bool(self._known)

    def holds(self, tensors: list[Tensor]) -> bool:
        """Whether the tensors share memory as they did."""
        for (a, b), how in self._known.items():
            if relation(given(a, tensors), given(b, tensors)) != how:
                return False
        return not self._disjoint or self._apart(tensors)

    def _apart(self, tensors: list[Tensor]) -> bool:
        keys: dict[int, int] = {}  # id of what owns memory -> the first that shows it
        for k, source in enumerate(self._brought):
            d = given(source, tensors)._d
            key = id(storage_of(d)) if d.__class__ is np.ndarray else id(d)
            if key in keys:
                return self._all_known(tensors)
            keys[key] = k
        for t in self._captured:
            d = t._d
            if (id(d) if d.__class__ is not np.ndarray else id(storage_of(d))) in keys:
                return self._all_known(tensors)
        return True

    def _all_known(self, tensors: list[Tensor]) -> bool:
        """Whether those that share memory did so when the program was traced."""
        found = [(s, given(s, tensors)) for s in self._sources]
        for (a, x), (b, y) in itertools.combinations(found, 2):
            if isinstance(a, Captured) and isinstance(b, Captured):
                continue
            if (a, b) not in self._known and (b, a) not in self._known and relation(x, y) is not None:
                return False
        return True


def owner_of(source: Any) -> Any:
    """The tensor that a source, or an effect, is about."""
    return owner_of(source.of) if isinstance(source, (GradOf, LeafFlag, MemoryOf, PastOf)) else source
