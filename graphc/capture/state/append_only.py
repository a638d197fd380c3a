"""Containers that a function only adds to, as `losses.append(loss)`: what it adds, whatever they hold by then."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Collection
from typing import Any, final

from graphc.capture.state.places import Change, DictItem, Inside, Place
from graphc.capture.state.snapshots import MISSING, entries, refill
from graphc.capture.tree import with_sizes

# methods of containers that add to them, or empty them, and tell nothing about what they hold
WRITERS: dict[type, frozenset[str]] = {
    list: frozenset(("append", "extend", "clear")),
    deque: frozenset(("append", "extend", "appendleft", "extendleft", "clear")),
    set: frozenset(("add", "update", "clear")),
    dict: frozenset(("update", "clear")),
    OrderedDict: frozenset(("update", "clear")),
    defaultdict: frozenset(("update", "clear")),
}


@final
@dataclasses.dataclass(frozen=True)
class Added:
    """What is added to a container: `first` before what it holds, `last` behind; pairs, if it is a dict.

    emptied  whether it is emptied before
    written  (number, value) of elements that are replaced before
    """

    emptied: bool = False
    written: tuple[tuple[int, Any], ...] = ()
    first: tuple[Any, ...] = ()
    last: tuple[Any, ...] = ()


_MARK: Any = dataclasses.make_dataclass("Mark", (), frozen=True, eq=False)()  # stands for what a container holds


@final
class AppendOnly:
    """A container while the function is traced. It holds a mark in place of its elements, which nobody asks for.

    keys    of the elements that are asked for, or written, one by one: of a sequence, those before them (if they are
            counted from the end, behind them) stay, too
    """

    def __init__(self, place: Inside, keys: Collection[Any] = ()):
        self.owner, self._shown = place.owner, place.path.shown
        self._keys = keys
        self._held: list[Any] | None = None
        self._head: list[Any] = []  # what stays before the mark
        self._tail: list[Any] = []  # and behind it

    @property
    def has_room(self) -> bool:
        """Whether the mark has a place among the elements that stay, and is not dropped from there."""
        if isinstance(self.owner, (dict, set)) or not self._keys:
            return True
        head, tail = self._ends()
        return head + tail <= len(self.owner) and getattr(self.owner, "maxlen", None) is None

    def _ends(self) -> tuple[int, int]:
        """How many elements of a sequence stay at its beginning, and at its end."""
        return max((k + 1 for k in self._keys if k >= 0), default=0), max((-k for k in self._keys if k < 0), default=0)

    def start(self) -> None:
        """Put the mark in place of what it holds."""
        self._held = entries(self.owner)
        if isinstance(self.owner, dict):
            self._tail = [(key, self.owner[key]) for key in self._keys if key in self.owner]
            refill(self.owner, [(_MARK, None), *self._tail])
        else:
            head, tail = self._ends()
            self._head, self._tail = self._held[:head], self._held[len(self._held) - tail :]
            refill(self.owner, [*self._head, _MARK, *self._tail])

    def counts(self, place: Place) -> bool:
        """Whether what happened at `place` is part of what `finish` gives: all but entries that are removed."""
        mine = place.owner is self.owner and self._held is not None
        return mine and (not isinstance(self.owner, dict) or isinstance(place, Inside) or place.read() is not MISSING)

    def finish(self) -> Change | None:
        """What the function has added; the container holds again what it held."""
        if self._held is None:
            return None
        found = entries(self.owner)
        refill(self.owner, self._held)
        self._held = None
        added = self._added(found)
        return None if added == Added() else Change(self._shown, Added(), added, self._write)

    def _added(self, found: list[Any]) -> Added:
        mark = next((k for k, item in enumerate(found) if _is_mark(item)), None)
        if mark is None:
            return Added(True, (), (), tuple(found))
        before, behind = found[:mark], found[mark + 1 :]
        if isinstance(self.owner, dict):
            kept = dict(self._tail)
            return Added(last=tuple((k, v) for k, v in before + behind if k not in kept or kept[k] is not v))
        if isinstance(self.owner, set):
            return Added(last=tuple(before + behind))
        head, tail = len(self._head), len(self._tail)
        numbered = [
            *enumerate(zip(self._head, before[len(before) - head :], strict=True)),
            *enumerate(zip(self._tail, behind[:tail], strict=True), -tail),
        ]
        written = tuple((k, now) for k, (then, now) in numbered if now is not then)
        return Added(False, written, tuple(before[: len(before) - head]), tuple(behind[tail:]))

    def _write(self, added: Added) -> None:
        owner = self.owner
        if added.emptied:
            owner.clear()
        for k, value in added.written:
            owner[k] = value
        if isinstance(owner, (set, dict)):
            owner.update(added.last)
            return
        owner.extend(added.last)
        if isinstance(owner, deque):
            owner.extendleft(reversed(added.first))


def done_once(changes: list[Change], has_leaves: Callable[[Any], bool]) -> list[Change]:
    """`changes` but for the additions of Python values, as `calls.append(1)`: a side effect, which a trace has once.

    What a function adds of tensors and traced numbers is a result like any other, which each call has.
    """
    left: list[Change] = []
    for change in changes:
        if isinstance(change.after, Added) and not has_leaves(change.after):
            change.write(with_sizes(change.after, None))
        else:
            left.append(change)
    return left


def append_only(places: Collection[Place], known: Collection[Place]) -> list[AppendOnly]:
    """The containers of `places` that the function only adds to, or asks for single elements, which are among `known`.

    Where the mark has no room the program depends on all that the container holds.
    """
    found = list[AppendOnly]()
    for place in places:
        if isinstance(place, Inside) and not place.guarded:
            grown = AppendOnly(place, [p.key for p in known if p.owner is place.owner and isinstance(p, DictItem)])
            place.guarded = not grown.has_room
            found += [grown] if grown.has_room else []
    return found


def _is_mark(item: Any) -> bool:
    return item is _MARK or (type(item) is tuple and item[:1] != () and item[0] is _MARK)
