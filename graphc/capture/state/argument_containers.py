"""Containers among the arguments: a function is traced with copies; what it does to them is done to the caller's.

The attributes that users give to tensors are such a container, and so is a small ndarray, which a program is for by its
content.
"""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable, Iterable
from functools import reduce
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple, final

import numpy as np

from eager.core.tensor import Tensor
from graphc.capture.state.places import Change
from graphc.capture.state.snapshots import refill
from graphc.capture.tree import Kept, children, is_immutable, is_leaf, map_leaves, rebuilt

LARGEST = (
    1 << 16
)  # bytes of an ndarray that is compared by content at each call; larger ones are told apart by identity
Given = tuple[tuple[Any, ...], dict[str, Any]]  # the arguments of a call: (args, kwargs)


class _Copy(NamedTuple):
    """A container, the copy that the function is given, what that held at first, and how to find the container."""

    container: Any
    copy: Any
    held: list[Any]
    find: Callable[[Given], Any]
    path: str


def is_told_by_content(value: Any) -> bool:
    """Whether `value` is an ndarray whose content is part of the signature."""
    return type(value) is np.ndarray and value.nbytes <= LARGEST and not value.dtype.hasobject


@final
class Containers:
    """The containers of a call. `stand_in(tensor, path)` is what the function gets for a tensor.

    args, kwargs  for the trace: each container is one copy, however often it is given
    """

    def __init__(self, given: Given, names: Iterable[str], stand_in: Callable[[Any, str], Any]):
        self._stand_in = stand_in
        self._copies: dict[int, _Copy] = {}  # by the id of the container
        args, kwargs = given
        first, second = itemgetter(0), itemgetter(1)
        self.args = tuple(
            self._copied(a, name, (first, itemgetter(i))) for i, (a, name) in enumerate(zip(args, names, strict=True))
        )
        self.kwargs = {name: self._copied(a, name, (second, itemgetter(name))) for name, a in kwargs.items()}

    def _copied(self, tree: Any, path: str, steps: tuple[Any, ...]) -> Any:
        inside = None if is_leaf(tree) else [] if is_told_by_content(tree) else children(tree)
        if inside is None:
            stand_in = map_leaves(tree, self._stand_in, path)
            if isinstance(stand_in, Tensor):  # which may be given attributes
                self._copies[id(tree)] = _Copy(tree, stand_in, _contents(stand_in), _finder(steps), path)
            return stand_in
        if id(tree) in self._copies:
            map_leaves(tree, self._stand_in, path)  # each tensor of it is another argument
            return self._copies[id(tree)].copy
        if isinstance(tree, np.ndarray):
            copy = tree.copy("K")
        else:
            accessors = _accessors(tree, inside)
            values = [
                self._copied(value, f"{path}.{name}" if path else name, (*steps, accessor))
                for (name, value), accessor in zip(inside, accessors, strict=True)
            ]
            copy = rebuilt(tree, values)
        if not is_immutable(tree):
            self._copies[id(tree)] = _Copy(tree, copy, _contents(copy), _finder(steps), path)
        return copy

    def existing(self) -> dict[int, Kept]:
        """By the id of each copy: what stands for the caller's container in results."""
        return {id(c.copy): Kept(c.find) for c in self._copies.values() if not isinstance(c.copy, Tensor)}

    def changes(self) -> list[Change]:
        """What the function has done to the containers."""
        found: list[Change] = []
        for c in self._copies.values():
            now = _contents(c.copy)
            if not _same(c.copy, now, c.held):
                found.append(Change(c.path, None, now, _put, c.find))
        return found


def _finder(steps: tuple[Any, ...]) -> Callable[[Given], Any]:
    return lambda given: reduce(lambda value, step: step(value), steps, given)


def _accessors(tree: Any, inside: list[tuple[str, Any]]) -> list[Any]:
    """How to take each child from a container like `tree`."""
    if isinstance(tree, dict):
        return [itemgetter(key) for key in tree]
    if isinstance(tree, (tuple, list, deque)):
        return [itemgetter(i) for i in range(len(inside))]
    return [attrgetter(name) if dataclasses.is_dataclass(tree) else itemgetter(0) for name, _ in inside]


def _contents(container: Any) -> list[Any]:
    """What a container holds, flat: keys and values alternate; the one element of an ndarray is its values."""
    if isinstance(container, np.ndarray):
        return [container.copy()]
    if isinstance(container, dict):
        return [x for pair in container.items() for x in pair]
    if isinstance(container, (list, deque, set)):
        return list(container)
    return [x for pair in _attributes(container).items() for x in pair]


def _same(container: Any, now: list[Any], held: list[Any]) -> bool:
    """Whether `container` holds `now` what it has `held`."""
    if isinstance(container, np.ndarray):
        return now[0].shape == held[0].shape and now[0].tobytes() == held[0].tobytes()
    return len(now) == len(held) and all(a is b for a, b in zip(now, held, strict=True))


def _attributes(instance: Any) -> dict[str, Any]:
    if isinstance(instance, Tensor):
        return vars(instance)
    fields = {f.name: getattr(instance, f.name) for f in dataclasses.fields(instance) if hasattr(instance, f.name)}
    return fields | getattr(instance, "__dict__", {})


def _put(container: Any, contents: list[Any]) -> None:
    """Let `container` hold `contents`."""
    if isinstance(container, np.ndarray):
        container[...] = contents[0]
        return
    if isinstance(container, (list, deque, set)):
        refill(container, contents)
        return
    pairs = dict(zip(contents[::2], contents[1::2], strict=True))
    if isinstance(container, dict):
        refill(container, pairs)
    else:
        for name in _attributes(container).keys() - pairs.keys():
            object.__delattr__(container, name)
        for name, value in pairs.items():
            object.__setattr__(container, name, value)
