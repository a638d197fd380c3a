"""Values as they were: a copy of what a value holds, and whether another value is the same.

Numbers, strings and the like are the same if type and bits are: 1 is not True, 0.0 is not -0.0, nan is nan. Containers
are the same if their elements are, ndarrays by dtype, shape and content, everything else by identity.
"""

from __future__ import annotations

import enum
import itertools
import math
import reprlib
from collections import OrderedDict, deque
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import PurePath
from types import FunctionType, MethodType
from typing import Any, final

import numpy as np

from eager.core.dtypes import dtype
from eager.core.tensor import Tensor

EXACT = (bool, int, str, bytes, type(None), type(...))  # equal values of one type are the same
SCALARS = (*EXACT, float, complex)
UNALTERABLE = (np.dtype, dtype, range, slice, Fraction, Decimal, PurePath)  # values, with nothing inside to be changed
_VALUES = (*UNALTERABLE, enum.Enum)
SEQUENCES = (list, tuple, deque)
_MUTABLE: tuple[Any, ...] = (list, deque, set, OrderedDict, dict)  # OrderedDict keeps its order in a place of its own
CONTAINERS = (*SEQUENCES, set, frozenset, dict)


@final
class _Missing:
    def __repr__(self) -> str:
        return "nothing"


MISSING: Any = _Missing()  # the value of a variable that does not exist

_repr = reprlib.Repr()
_repr.maxstring = _repr.maxother = _repr.maxlong = 60


@final
class Contents:
    """What a container held. `items` are its elements (a dict's values); `keys` is None unless it is a dict."""

    __slots__ = ("container", "items", "kept", "keys")

    def __init__(self, container: Any):
        self.container = container
        self.keys = list(container) if isinstance(container, dict) else None
        self.items = list(container.values()) if isinstance(container, dict) else list(container)
        self.kept: list[Any] = self.items

    def same(self, value: Any, seen: set[tuple[int, int]]) -> bool:
        """Whether `value` is a container of the same type with the same elements in the same order."""
        if type(value) is not type(self.container) or len(value) != len(self.items):
            return False
        if (id(value), id(self)) in seen:
            return True  # a container inside itself
        seen.add((id(value), id(self)))
        if isinstance(value, (set, frozenset)):
            return set(map(_typed, value)) == set(map(_typed, self.items))
        if self.keys is not None:
            return all(_same(a, b, seen) for a, b in zip(value, self.keys, strict=True)) and all(
                _same(a, b, seen) for a, b in zip(value.values(), self.kept, strict=True)
            )
        return all(_same(a, b, seen) for a, b in zip(value, self.kept, strict=True))

    def original(self) -> Any:
        """A container of a builtin type with what it held."""
        if self.keys is not None:
            return dict(zip(self.keys, self.items, strict=True))
        kind = next(kind for kind in CONTAINERS if isinstance(self.container, kind))
        return kind(self.items)

    def __repr__(self) -> str:
        if self.keys is not None:
            return _show_entries(zip(self.keys, self.items, strict=True))
        items: Any = self.items
        for kind in (tuple, set, frozenset):
            if isinstance(self.container, kind):
                items = kind(items)
        return _repr.repr(items)


@final
class Elements:
    """What an ndarray held."""

    __slots__ = ("array", "data", "dtype", "shape")

    def __init__(self, array: np.ndarray):
        self.array = array
        self.dtype = array.dtype
        self.shape = array.shape
        self.data = array.tobytes()

    def same(self, value: Any) -> bool:
        """Whether `value` is an ndarray of this dtype, shape and content."""
        return (
            type(value) is type(self.array)
            and value.dtype == self.dtype
            and value.shape == self.shape
            and value.tobytes() == self.data
        )

    def original(self) -> np.ndarray:
        """A copy of what it held."""
        return np.ndarray(self.shape, self.dtype, self.data).copy()

    def __repr__(self) -> str:
        return _repr.repr(self.original())


def _typed(value: Any) -> tuple[type, Any]:
    return (type(value), value) if isinstance(value, SCALARS) else (object, id(value))


def keep(value: Any, known: dict[int, Any] | None = None) -> Any:
    """A copy of `value` to compare with later: Contents, Elements, or the value itself."""
    if isinstance(value, np.ndarray):
        return Elements(value)
    if not isinstance(value, CONTAINERS):
        return value
    known = {} if known is None else known
    found = known.get(id(value))
    if found is None:
        found = known[id(value)] = Contents(value)
        if not is_flat(found.items):
            found.kept = [keep(item, known) for item in found.items]
    return found


def entries(container: Any) -> list[Any]:
    """The elements of a container; the pairs of a dict."""
    return list(container.items() if isinstance(container, dict) else container)


def refill(container: Any, items: Iterable[Any]) -> None:
    """Let a list, deque, set or dict hold `items`, the entries of another, whatever a subclass does when written to."""
    kind = next(kind for kind in _MUTABLE if isinstance(container, kind))
    items = entries(items)
    kind.clear(container)
    if issubclass(kind, dict):
        for key, value in items:
            kind.__setitem__(container, key, value)
    else:
        (kind.update if kind is set else kind.extend)(container, items)


def is_flat(items: list[Any]) -> bool:
    """Whether `items` are all scalars, so that nothing is to be found inside them."""
    return all(issubclass(kind, SCALARS) for kind in set(map(type, items)))


def same(value: Any, kept: Any) -> bool:
    """Whether `value` is what `keep` has kept."""
    return _same(value, kept, set())


def _same(value: Any, kept: Any, seen: set[tuple[int, int]]) -> bool:
    if value is kept:
        return True
    kind = type(kept)
    if kind is Contents:
        # what a known container holds is compared at its own place
        return value is kept.container or kept.same(value, seen)
    if kind is Elements:
        return value is kept.array or kept.same(value)
    if type(value) is not kind:  # a traced number or size pretends to be one of Python's
        return False
    if kind is float:
        return _same_float(value, kept)
    if kind is complex:
        return _same_float(value.real, kept.real) and _same_float(value.imag, kept.imag)
    if isinstance(kept, EXACT):
        return value == kept
    if isinstance(kept, np.generic):
        return value.dtype == kept.dtype and value.tobytes() == kept.tobytes()
    if isinstance(kept, _VALUES):
        return bool(value == kept)
    if kind is MethodType:
        return value.__self__ is kept.__self__ and value.__func__ is kept.__func__
    return False


def _same_float(a: float, b: float) -> bool:
    return (a == b and math.copysign(1.0, a) == math.copysign(1.0, b)) or (a != a and b != b)


def change(path: str, value: Any, kept: Any) -> str:
    """The sentence that says how what was `kept` at `path` has become `value`."""
    if value is MISSING:
        return f"`{path}` was deleted"
    if kept is MISSING:
        return f"`{path}` was added"
    before = type(kept.container if isinstance(kept, Contents) else kept.array if isinstance(kept, Elements) else kept)
    if isinstance(kept, Contents) and type(value) is before:
        return _inside(path, value, kept)
    shown = (Contents, Elements, *SCALARS, np.generic, *_VALUES)
    if isinstance(kept, shown) or isinstance(value, SCALARS):
        return f"`{path}` changed from {_show(kept)} to {_show(value)}"
    if type(value) is before:
        return f"`{path}` is another {_kind(value)}"
    return f"`{path}` changed from {_show(kept)} to {_show(value)}"


def _inside(path: str, value: Any, kept: Contents) -> str:
    """The sentence that says which element of a container has changed, or that the container has."""
    if kept.keys is not None:
        for key, old in zip(kept.keys, kept.kept, strict=True):
            if key not in value or not same(value[key], old):
                return change(f"{path}[{_key(key)}]", value.get(key, MISSING), old)
        for key in value:
            if key not in kept.container or key not in kept.keys:
                return change(f"{path}[{_key(key)}]", value[key], MISSING)
    elif isinstance(value, SEQUENCES):
        names = getattr(value, "_fields", None)
        for i, (item, old) in enumerate(itertools.zip_longest(value, kept.kept, fillvalue=MISSING)):
            if not same(item, old):
                return change(f"{path}.{names[i]}" if names else f"{path}[{i}]", item, old)
    return f"`{path}` changed from {kept!r} to {_show(value)}"


def _key(key: Any) -> str:
    """A key of a dict as messages show it: of a tensor, in an optimizer's state, what it is and not its values."""
    return f"<{type(key).__name__}{list(key._d.shape)}>" if isinstance(key, Tensor) else repr(key)


def _show_entries(entries: Iterable[tuple[Any, Any]]) -> str:
    """As a dict is shown, in its order; reprlib sorts."""
    shown = [f"{_repr.repr(k)}: {_repr.repr(v)}" for k, v in itertools.islice(entries, _repr.maxdict + 1)]
    if len(shown) > _repr.maxdict:
        shown[-1] = "..."
    return "{" + ", ".join(shown) + "}"


def _kind(value: Any) -> str:
    if isinstance(value, (FunctionType, MethodType, partial)):
        return "function"
    if type(value) is Tensor:
        return "tensor"
    return "class" if isinstance(value, type) else type(value).__name__


def _show(value: Any) -> str:
    if isinstance(value, (Contents, Elements, *SCALARS, *CONTAINERS, np.generic, np.ndarray, *_VALUES)):
        if isinstance(value, (Contents, Elements)):
            return repr(value)
        return _show_entries(value.items()) if isinstance(value, dict) else _repr.repr(value)
    named = getattr(value, "__qualname__", None)
    return f"{_kind(value)} {named}" if isinstance(named, str) else f"a {_kind(value)}"
