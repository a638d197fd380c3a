"""The bookkeeping of the walk over a function's state: what has been found, and what is still to be looked at."""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from types import FunctionType
from typing import Any, NamedTuple

from graphc.capture.state import bytecode
from graphc.capture.state.objects import is_iterator
from graphc.capture.state.owners import is_impure
from graphc.capture.state.places import DictItem, Path, Place
from graphc.capture.state.snapshots import MISSING, SCALARS, UNALTERABLE

CALLED = "{} is called once, when the function is traced"
ADVANCED = "{} is an iterator: it is advanced once, when the function is traced"


class Method(NamedTuple):
    """A function that is called with the object that it was taken from; its code has been reached."""

    function: Any


class Worklist:
    """What a walk has found.

    names   id of a tensor -> how the function knows it
    impure  messages about calls whose results no guard can hold
    """

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self.impure: dict[str, None] = {}
        self.asks_types = False  # whether some code calls `type`, which sees a traced number for what it is
        self._places: dict[tuple[int, Any, type], Place] = {}
        self._todo: deque[Callable[[], None]] = deque()
        self._escaped: dict[int, tuple[Any, Path]] = {}
        self._loose: set[str] = set()  # attributes that the code takes from values that are not known
        self._probed: set[str] = set()  # those of them that it asks for, so that it matters that they are missing
        self._stored: set[str] = set()  # attributes that the code gives to values that are not known
        self._reflective = False  # whether it reads attributes that it does not name
        self._noted: set[int] = set()  # functions and iterators in `impure`

    @abstractmethod
    def _function(self, fn: FunctionType, path: Path, owner: tuple[Any, Path] | None) -> None:
        """Reach what the code of a function reads; `owner` is what its first parameter is known to be."""

    @abstractmethod
    def _escape(self, value: Any, path: Path) -> None:
        """A value is used in a way that the code does not show: reach whatever is in it."""

    @property
    def met(self) -> frozenset[int]:
        """The ids of the values that it has looked into, or will: they are there already."""
        return frozenset(self._escaped)

    @property
    def places(self) -> list[Place]:
        return list(self._places.values())

    def _place(self, kind: type[Place], owner: Any, key: Any, path: Path, guarded: bool = True) -> Place:
        known = self._places.get((id(owner), key, kind))
        if known is None:
            known = self._places[id(owner), key, kind] = kind(owner, key, path, guarded)
        elif guarded:
            known.guarded = True
        return known

    def _entry(self, owner: Any, key: Any, path: Path, guarded: bool = True) -> Any:
        return self._place(DictItem, owner, key, path, guarded).before

    def _take_loose(self, steps: Sequence[bytecode.Step], stored: bool) -> None:
        self._loose.update(step.key for step in steps if step.kind == bytecode.ATTRIBUTE)
        if stored and steps and steps[-1].kind == bytecode.ATTRIBUTE:
            self._stored.add(steps[-1].key)

    def _note_impure(self, value: Any, path: Path, where: Iterable[str]) -> None:
        if id(value) in self._noted:
            return
        if is_impure(value):
            self.impure |= dict.fromkeys(CALLED.format(f"{path.shown}() at {line}") for line in where)
        elif is_iterator(value):
            self._noted.add(id(value))
            self.impure[ADVANCED.format(f"`{path.shown}` at {next(iter(where))}")] = None

    def _later_function(self, function: Any, path: Path, owner: tuple[Any, Path] | None) -> None:
        if isinstance(function, FunctionType):
            self._todo.append(lambda: self._function(function, path, owner))
        else:
            self._escape_later(function, path)

    def _escape_later(self, value: Any, path: Path) -> None:
        if isinstance(value, (*SCALARS, *UNALTERABLE)) or value is MISSING or isinstance(value, Method):
            return
        if value is sys.modules:
            return  # what is imported meanwhile does not matter to what has been
        if id(value) not in self._escaped:
            self._escaped[id(value)] = (value, path)
            self._todo.append(lambda: self._escape(value, path))
