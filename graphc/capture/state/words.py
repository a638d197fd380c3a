"""Words of CPython's memory that tell whether what guards ask for has changed: one look at all of them, at each call.

To ask each of some hundred places takes tens of microseconds, since Python's objects lie all over the memory. Most
places are in a dict, which has a version that each of its changes makes anew and that no dict has had before (PEP 509,
until Python 3.12); or in a slot of a tensor, a cell or a function, whose word is the address of what is there. NumPy
gathers all these words in one microsecond. While they are as they were, so are the places; else the places are asked.

`available()` tries on first use whether the words are where they are expected to be. Where they are not, as from Python
3.13 on, `Place.words` are None, and the places are asked at each call.
"""

from __future__ import annotations

import functools
import gc
import sys
from collections.abc import Callable, Sequence
from types import CellType, FunctionType, SimpleNamespace
from typing import Any, NamedTuple, Protocol, final

import numpy as np

from eager.core.device_memory import Memory
from eager.core.tensor import Tensor
from graphc.capture.generated import Names, indented

_CLASS = 8  # where an object has its class, behind the count of its references
_VERSION = 24  # where a dict has its version, behind its header and its size
_GONE = "(LookupError, AttributeError, ValueError, RuntimeError)"  # what reading raises where there is nothing now
TOGETHER = 8  # conditions that one line of the test asks for: shorter code, which Python compiles faster
RESTLESS = 16  # changes of a word that have meant nothing: then its places are asked at each call


class Word(NamedTuple):
    """A word of memory.

    expected  the address that has to be there; None: whatever is there when the places are asked, for it means the same
              when it is there again
    alive     what has to live for this to be so: what the word is in, and what is expected there
    """

    address: int
    expected: int | None
    alive: tuple[Any, ...]


class Condition(Protocol):
    """Something that has to be so. `words` all change if it changes; None if there are no such words."""

    @property
    def words(self) -> Sequence[Word] | None: ...

    def quick(self, name: Callable[[Any], str]) -> str:
        """Source of a condition that is true, or raises what reads nothing raise, if this may not be so."""
        ...

    def same(self) -> bool:
        """Whether it is so."""
        ...


@final
class Judged:
    """A condition made of its parts."""

    def __init__(
        self, words: Sequence[Word] | None, quick: Callable[[Callable[[Any], str]], str], same: Callable[[], bool]
    ):
        self.words = words
        self._quick, self._same = quick, same

    def quick(self, name: Callable[[Any], str]) -> str:
        return self._quick(name)

    def same(self) -> bool:
        return self._same()


@final
class _Everything:
    """The whole address space, as the memory of an array."""

    __array_interface__ = {"version": 3, "typestr": "=i8", "shape": (1 << 54,), "data": (8, True)}  # noqa: RUF012


_MEMORY = np.asarray(_Everything())
_MEMORY_BEGINS = 8


def _read(address: int) -> int:
    return int(_MEMORY[(address - _MEMORY_BEGINS) // 8])


def version_of(space: dict[Any, Any]) -> list[Word] | None:
    """The word that every change of a dict changes."""
    return [Word(id(space) + _VERSION, None, (space,))] if available() else None


def version_of_class(cls: type) -> list[Word] | None:
    """That of a class's namespace."""
    return version_of(gc.get_referents(vars(cls))[0]) if available() else None


def class_of(value: Any) -> list[Word] | None:
    """The word that holds the class of an object."""
    return [Word(id(value) + _CLASS, id(type(value)), (value, type(value)))] if available() else None


def slot_of(owner: Any, name: str, value: Any = ...) -> list[Word] | None:
    """The word of a slot of a tensor, a memory, a cell or a function, which has to hold `value`, if one is given."""
    offset = _offset_of(owner, name) if available() else None
    if offset is None:
        return None
    empty = isinstance(owner, FunctionType) and value is None
    return [Word(id(owner) + offset, None if value is ... else 0 if empty else id(value), (owner, value))]


def _offset_of(owner: Any, name: str) -> int | None:
    if isinstance(owner, Tensor):
        return _offsets().get((Tensor, name))
    return _offsets().get((type(owner), name))


@functools.cache
def _offsets() -> dict[tuple[type, str], int]:
    """Where tensors, memories, cells and functions have their slots: found in one that holds a known object there."""
    found: dict[tuple[type, str], int] = {}
    tensor: Any = object.__new__(Tensor)

    def function(positional: Any = "given", *, named: Any = "given") -> Any:
        return positional, named

    for name in ("_d", "_n", "_g"):
        setattr(tensor, name, SimpleNamespace())
    memory: Any = Memory(None, None)
    memory.pack = SimpleNamespace()
    examples: list[tuple[Any, Sequence[str]]] = [
        (tensor, ("_d", "_n", "_g")),
        (memory, ("pack",)),
        (CellType(tensor), ("cell_contents",)),
        (function, ("__code__", "__defaults__", "__kwdefaults__")),
    ]
    for example, names in examples:
        words = range(id(example) + 16, id(example) + object.__sizeof__(example), 8)
        for name in names:
            value = getattr(example, name)
            places = [address - id(example) for address in words if _read(address) == id(value)]
            if len(places) == 1:
                found[type(example), name] = places[0]
    return found


@functools.cache
def available() -> bool:
    """Whether dicts of this Python have versions, where they are looked for."""
    wanted = sys.implementation.name == "cpython" and (3, 11) <= sys.version_info < (3, 13) and sys.maxsize == 2**63 - 1
    return wanted and _dicts_have_versions() and all(_read(id(x) + _CLASS) == id(type(x)) for x in (_read, Word))


def _dicts_have_versions() -> bool:
    owner = SimpleNamespace(a=1)
    space, other = vars(owner), {"a": 1}

    def attribute() -> None:
        owner.a = 2

    changes: list[Callable[[], object]] = [
        attribute, lambda: space.__setitem__("b", 1), lambda: space.update(a=3), lambda: space.pop("b"), space.popitem,
        lambda: object.__setattr__(owner, "c", 1), lambda: delattr(owner, "c"), lambda: space.setdefault("d", 1),
        space.clear,
    ]  # fmt: skip
    seen = [_read(id(d) + _VERSION) for d in (space, other)]
    for change in changes:
        change()
        seen.append(_read(id(space) + _VERSION))
    return len(set(seen)) == len(seen) and _read(id(other) + _VERSION) == seen[1]


def condition_lines(conditions: Sequence[Condition], names: Names, miss: str) -> list[str]:
    """Statements that do `miss` unless all conditions hold.

    Each is asked by its quick test. Where one of a few fails, `same` decides.
    """
    lines: list[str] = []
    for first in range(0, len(conditions), TOGETHER):
        group = conditions[first : first + TOGETHER]
        decide = names.of(functools.partial(_all_same, group))
        lines.append(f"if ({' or '.join(c.quick(names.of) for c in group)}) and not {decide}(): {miss}")
    return [" try:", *indented(indented(lines)), f" except {_GONE}: {miss}"] if lines else []


def lines_by_words(conditions: Sequence[Condition], names: Names, miss: str) -> list[str]:
    """The same, by one look at the words of those that have some."""
    with_words = [c for c in conditions if c.words]
    if len(with_words) < TOGETHER:  # to ask them is quicker
        return condition_lines(conditions, names, miss)
    others = [c for c in conditions if not c.words]
    words, memory = names.of(Words(with_words)), names.of(_MEMORY)
    return [
        f" if {memory}[{words}.order].tobytes() != {words}.known and not {words}.holds(): {miss}",
        f" if {words}.restless is not None and not {words}.restless(): {miss}",
        *condition_lines(others, names, miss),
    ]


class _State(NamedTuple):
    """Of each word: whose it is (numbers of conditions), where it is in the memory, what has to be there (-1: whatever
    is), what was there, and how often that has changed without a meaning."""

    owners: list[list[int]]
    order: np.ndarray
    fixed: np.ndarray
    last: np.ndarray
    changes: np.ndarray


@final
class Words:
    """The words of `conditions`, which all have some.

    order     where they are in the memory
    known     what they were when the conditions held
    restless  asks those whose words change all the time without a meaning: a function, or None
    """

    __slots__ = ("_alive", "_conditions", "_often", "_state", "_walk", "known", "order", "restless")

    def __init__(self, conditions: Sequence[Condition]):
        self._conditions = list(conditions)
        self._walk = _function(conditions)
        owners: dict[tuple[int, int | None], list[int]] = {}
        self._alive: list[Any] = []
        for k, condition in enumerate(conditions):
            for address, expected, alive in condition.words or ():
                owners.setdefault((address, expected), []).append(k)
                self._alive.append(alive)
        fixed = np.array([-1 if expected is None else expected for _, expected in owners], np.int64)
        self.order = np.array([(address - _MEMORY_BEGINS) // 8 for address, _ in owners], np.int64)
        self._state = _State(list(owners.values()), self.order, fixed, fixed, np.zeros(len(owners), np.int64))
        self._often: set[int] = set()
        self.known = b""  # nothing is known before they have been asked
        self.restless: Callable[[], bool] | None = None

    def holds(self) -> bool:
        """Ask the conditions, and remember the words if all hold."""
        owners, order, fixed, last, changes = self._state
        now = _MEMORY[order]  # first: what changes from here on is noticed the next time
        if not self._walk():
            return False
        changes = changes + (now != last) if self.known else changes
        last = np.where(fixed < 0, now, fixed)  # another object than the expected one may lose its place to a third
        quiet = changes < RESTLESS
        if not quiet.all():
            self._often.update(k for word in np.flatnonzero(~quiet) for k in owners[word])
            self.restless = _function([self._conditions[k] for k in sorted(self._often)])
            owners = [owners[word] for word in np.flatnonzero(quiet)]
            order, fixed, last, changes = order[quiet], fixed[quiet], last[quiet], changes[quiet]
        self._state = _State(owners, order, fixed, last, changes)
        self.order, self.known = order, last.tobytes()
        return True


def _function(conditions: Sequence[Condition]) -> Callable[[], bool]:
    names = Names()
    return names.bind("holds", ["def holds():", *condition_lines(conditions, names, "return False"), " return True"])


def _all_same(conditions: Sequence[Condition]) -> bool:
    return all(c.same() for c in conditions)
