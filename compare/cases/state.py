"""The Python state that a call can change besides tensors: attributes, globals, entries and contents of containers."""

from __future__ import annotations

import contextlib
import dataclasses
import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, final

import numpy as np

from compare.cases.outcome import flatten, is_number
from eager.core.sparse import is_sparse
from eager.core.tensor import Tensor
from graphc.capture.state.places import Attribute, Inside, Path, Place, Table
from graphc.capture.state.reachability import Reachability
from graphc.capture.state.snapshots import SCALARS, is_flat
from graphc.capture.tree import Slot, children
from graphc.capture.user_objects import attributes


class Held(NamedTuple):
    """What a place holds: the structure with `Leaf` in place of tensors, arrays and numbers; and those, by path."""

    structure: Any
    leaves: Mapping[str, Any]


@final
class State:
    """The places that `fn(*args, **kwargs)` can write, as they are now.

    Found in the code of the function, as `graphc.compile` finds what it has to guard, and in the containers among the
    arguments.
    """

    def __init__(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]):
        reachable = Reachability()
        reachable.start(fn, dict(kwargs), args)
        reachable.run()
        places = [*reachable.places, *_places_in_arguments(fn, args, kwargs)]
        # contents first: an element that is put back into its container may be a place of its own
        self.places = sorted((p for p in places if not isinstance(p, Table)), key=lambda p: not isinstance(p, Inside))

    def changed(self) -> list[Place]:
        """The places that differ from how they were."""
        return [place for place in self.places if not place.same()]

    def held(self, names: frozenset[str] = frozenset()) -> dict[str, Held]:
        """What the changed places hold now, by label: "self.count after the call".

        names  of tensors; a variable of the same name is called so, as both can change
        """
        found: dict[str, Held] = {}
        for place in self.changed():
            shown = place.path.shown
            label = f"{'variable ' if shown in names else ''}{shown} after the call"
            found[label] = Held(*flatten(_opened(place.now(), set()), _is_leaf, label))
        return found

    @contextlib.contextmanager
    def restored(self) -> Iterator[None]:
        """Context: at its end every place is again as it was when this object was made."""
        try:
            yield
        finally:
            for place in self.changed():
                place.write(place.original())


def array_of(leaf: Any) -> np.ndarray:
    """The values of a tensor, an array or a number."""
    if isinstance(leaf, Tensor):
        return (leaf.to_dense() if is_sparse(leaf) else leaf)._read()
    return np.asarray(leaf)


def arrays_in(held: Mapping[str, Held]) -> dict[str, np.ndarray]:
    """Copies of the tensors, arrays and numbers in what places hold, by label."""
    return {label: np.array(array_of(leaf)) for h in held.values() for label, leaf in h.leaves.items()}


def structures_in(held: Mapping[str, Held]) -> dict[str, Any]:
    """Everything else in what places hold."""
    return {label: h.structure for label, h in held.items()}


def _is_leaf(value: Any) -> bool:
    return isinstance(value, (Tensor, np.ndarray, Slot)) or is_number(value)


def _places_in_arguments(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Iterator[Place]:
    """The contents of the containers among the arguments, and the attributes that users have given to tensors."""
    seen: set[int] = set()

    def visit(value: Any, path: Path) -> Iterator[Place]:
        if id(value) in seen:
            return
        seen.add(id(value))
        if isinstance(value, Tensor):
            yield Inside(vars(value), "", path.attribute("__dict__"))
            return
        inside = children(value)
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            yield from (Attribute(value, name, path.attribute(name)) for name, _ in inside or ())
        elif (inside is not None and not isinstance(value, (tuple, frozenset))) or isinstance(value, np.ndarray):
            yield Inside(value, "", path)
        for name, item in inside or ():
            yield from visit(item, path.item(int(name) if name.isdecimal() else name))

    for name, value in _bound(fn, args, kwargs).items():
        yield from visit(value, Path(name, name))


def _bound(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments by the names of the parameters."""
    try:
        return dict(inspect.signature(getattr(fn, "forward", fn)).bind(*args, **kwargs).arguments)
    except (TypeError, ValueError):  # a builtin has no signature; a call that does not fit has an error of its own
        return {**{f"argument {k}": value for k, value in enumerate(args)}, **kwargs}


@final
@dataclasses.dataclass(frozen=True)
class _Opaque:
    """Stands for an object whose state is not looked into."""

    kind: str

    def __repr__(self) -> str:
        return f"a {self.kind}"


@final
@dataclasses.dataclass(frozen=True, eq=False)
class _Key:
    """A tensor as a key of a dict: the same tensor is the same key."""

    tensor: Tensor

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Key) and self.tensor is other.tensor

    def __hash__(self) -> int:
        return id(self.tensor)

    def __repr__(self) -> str:
        return f"<tensor {list(self.tensor.shape)}>"


def _opened(value: Any, above: set[int]) -> Any:
    """`value` as a nest of dicts and lists, to be compared with that of another run by what it holds."""
    if _is_leaf(value) or isinstance(value, SCALARS):
        return value
    if id(value) in above:
        return "..."
    above = above | {id(value)}
    if isinstance(value, dict):
        return {_Key(k) if isinstance(k, Tensor) else k: _opened(item, above) for k, item in value.items()}
    if isinstance(value, (set, frozenset)):
        return frozenset(value) if is_flat(list(value)) else len(value)  # objects are in no order that two runs share
    inside = children(value)
    if inside is not None and not dataclasses.is_dataclass(value):
        return [_opened(item, above) for _, item in inside]
    found = inside or attributes(value)
    if found is not None:
        return {"class": type(value).__qualname__, **{name: _opened(item, above) for name, item in found}}
    return _Opaque(getattr(value, "__qualname__", type(value).__qualname__))
