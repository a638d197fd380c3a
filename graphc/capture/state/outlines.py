"""Outlines: what stays of a value whose tensors and numbers change: types, lengths, keys, and everything else in it."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from eager.core.tensor import Tensor
from graphc.capture.number import Number
from graphc.capture.state.snapshots import Contents, keep, same

_WIDEST = 1 << 62  # of an integer that can be added to in int64
MOST = 256  # elements, at all depths, of a value that an outline goes into: each may become an input of a program
_BRANCHES = (tuple, list, deque, dict, OrderedDict, defaultdict)
Way = tuple[Any, ...]  # the keys that lead to an element of a nest


class TensorKind(NamedTuple):
    """A tensor that may change into another of this kind."""

    shape: tuple[int, ...]
    dtype: Any
    constant: bool

    @classmethod
    def of(cls, tensor: Tensor) -> TensorKind:
        """The kind of `tensor`."""
        return cls(tuple(tensor._d.shape), tensor._dtype(), tensor._n is None)


class NumberKind(NamedTuple):
    """A number that may change into another of this type."""

    type: type


class Fixed(NamedTuple):
    """A value that does not change; a copy, see `snapshots`."""

    kept: Any


class Branch(NamedTuple):
    """A container of this type, with these keys."""

    type: type
    keys: tuple[Any, ...]
    children: tuple[Outline, ...]


Outline = TensorKind | NumberKind | Fixed | Branch


def is_number(value: Any) -> bool:
    """Whether `value` is a number that a program can have as an input."""
    return type(value) is float or (type(value) is int and abs(value) < _WIDEST)


def is_branch(value: Any) -> bool:
    """Whether an outline goes into `value`."""
    kind = type(value)
    return kind in _BRANCHES or (isinstance(value, tuple) and hasattr(kind, "_fields"))


def keys_of(container: Any) -> Any:
    """What the elements of a container are taken by."""
    return list(container) if isinstance(container, dict) else range(len(container))


def _is_wide(value: Any) -> bool:
    """Whether a value holds more elements than an outline goes into."""
    left, stack = MOST, [value]
    while stack:
        v = stack.pop()
        items = v.kept if isinstance(v, Contents) else v if is_branch(v) else ()
        left -= len(items)
        if left < 0:
            return True
        stack.extend(items.values() if isinstance(items, dict) else items)
    return False


def outline(value: Any, ways: Collection[Way] | None = None) -> Outline:
    """The outline of a value, or of what `snapshots.keep` has kept of one. A wide one is fixed as a whole.

    ways    to what may change; None: all tensors and numbers may
    """
    return _fixed(value) if _is_wide(value) else _outline(value, set(), (), ways)


def _fixed(value: Any) -> Fixed:
    return Fixed(value if isinstance(value, Contents) else keep(value))


def _outline(value: Any, above: set[int], way: Way, ways: Collection[Way] | None) -> Outline:
    if ways is not None and not any(w[: len(way)] == way for w in ways):
        return _fixed(value)
    if isinstance(value, Tensor):
        return TensorKind.of(value)
    if is_number(value):
        return NumberKind(type(value))
    container = value.container if isinstance(value, Contents) else value
    if not is_branch(container) or id(container) in above:
        return _fixed(value)
    if isinstance(value, Contents):
        items, keys = value.kept, value.keys
    else:
        items, keys = (list(value.values()) if isinstance(value, dict) else list(value)), keys_of(value)
    keys = tuple(range(len(items)) if keys is None else keys)
    pairs = zip(keys, items, strict=True)
    inside = tuple([_outline(item, above | {id(container)}, (*way, key), ways) for key, item in pairs])
    return Branch(type(container), keys, inside)


def fits(value: Any, to: Outline) -> bool:
    """Whether `value` has this outline; a traced number may be of any type."""
    if isinstance(to, TensorKind):
        return isinstance(value, Tensor) and TensorKind.of(value) == to
    if isinstance(to, NumberKind):
        return type(value) is Number or (type(value) is to.type and is_number(value))
    if isinstance(to, Fixed):
        return same(value, to.kept)
    if type(value) is not to.type or len(value) != len(to.keys):
        return False
    if isinstance(value, dict):
        return all(a is b or a == b for a, b in zip(value, to.keys, strict=True)) and all(
            map(fits, value.values(), to.children)
        )
    return all(map(fits, value, to.children))


def changing(of: Outline, way: Way = ()) -> Iterator[tuple[Way, TensorKind | NumberKind]]:
    """The tensors and numbers of an outline, and the way to each."""
    if isinstance(of, Branch):
        for key, child in zip(of.keys, of.children, strict=True):
            yield from changing(child, (*way, key))
    elif not isinstance(of, Fixed):
        yield way, of


def can_change(of: Outline) -> bool:
    """Whether there are tensors or numbers in an outline."""
    return next(changing(of), None) is not None


def element(value: Any, way: Way) -> Any:
    """What `way` leads to in `value`, or in what was kept of one; None if it leads nowhere."""
    try:
        for key in way:
            kept = isinstance(value, Contents)
            value = value.kept[key if value.keys is None else value.keys.index(key)] if kept else value[key]
    except (LookupError, TypeError, ValueError):
        return None
    return value


def shown(way: Way) -> str:
    """A way as Python writes it: "[0]['a']"."""
    return "".join(f"[{key!r}]" for key in way)
