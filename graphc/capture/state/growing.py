"""Containers that a function only adds to, as `losses.append(loss)`: what it adds, whatever they hold by then."""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any, final

from graphc.capture.state.places import Change, Inside
from graphc.capture.state.snapshots import refill
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
    """What is added to a container: `first` before what it holds, `last` behind; pairs, if it is a dict."""

    emptied: bool = False
    first: tuple[Any, ...] = ()
    last: tuple[Any, ...] = ()


_MARK: Any = dataclasses.make_dataclass("Mark", (), frozen=True, eq=False)()  # stands for what a container holds


@final
class Growing:
    """A container while the function is traced. It holds a mark in place of its elements, which nobody asks for."""

    def __init__(self, place: Inside):
        self._place = place
        self._held: list[Any] | None = None

    def start(self) -> None:
        """Put the mark in place of what it holds."""
        self._held = _elements(self._place.owner)
        owner = self._place.owner
        refill(owner, [(_MARK, None) if isinstance(owner, dict) else _MARK])

    def finish(self) -> Change | None:
        """What the function has added; the container holds again what it held."""
        if self._held is None:
            return None
        found = _elements(self._place.owner)
        refill(self._place.owner, self._held)
        self._held = None
        marks = [k for k, item in enumerate(found) if item is _MARK or (type(item) is tuple and item[:1] == (_MARK,))]
        if not marks:
            added = Added(True, (), tuple(found))
        elif isinstance(self._place.owner, set):
            added = Added(False, (), tuple(item for item in found if item is not _MARK))
        else:
            added = Added(False, tuple(found[: marks[0]]), tuple(found[marks[0] + 1 :]))
        return None if added == Added() else Change(self._place.path.shown, Added(), added, self._write)

    def _write(self, added: Added) -> None:
        owner = self._place.owner
        if added.emptied:
            owner.clear()
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


def _elements(container: Any) -> list[Any]:
    return list(container.items() if isinstance(container, dict) else container)
