"""Arguments and results as nests of tuples, lists, dicts, namedtuples and dataclasses, with tensors at the leaves.

A leaf is a strided Tensor (a sparse one is a container of such), a Number that is traced, a Slot, which stands for leaf
number `index` of another tree, or a Kept.
"""

from __future__ import annotations

import copy
import dataclasses
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, final

import numpy as np

from eager.core.sparse import is_sparse, parts_of, with_parts
from eager.core.tensor import Tensor
from eager.functional.casts import shown_as
from graphc.capture.number import Number
from graphc.capture.state.snapshots import refill
from graphc.ops.dims import has_dim, is_dim, substituted


@final
@dataclasses.dataclass(frozen=True)
class Slot:
    """The place of leaf number `index`."""

    index: int


@final
class Kept:
    """Stands in a result for a container that was there before the call: `find`, given (args, kwargs), has it."""

    __slots__ = ("find",)

    def __init__(self, find: Callable[[Any], Any]):
        self.find = find


@final
@dataclasses.dataclass
class OfClass:
    """Stands in a result for a tensor of a class with `__torch_function__`, or with attributes, which it has here."""

    tensor: Any
    cls: Any
    namespace: dict[str, Any]

    def made(self, tensor: Any, namespace: dict[str, Any]) -> Any:
        """The instance, of a tensor that the program has made; what was there before is what it was."""
        if not isinstance(tensor, Tensor):
            return tensor
        made = tensor if isinstance(tensor, self.cls) else shown_as(tensor, self.cls)
        if not vars(made):
            vars(made).update(namespace)
        return made


def is_leaf(x: Any) -> bool:
    """Whether `x` is a leaf."""
    return (isinstance(x, Tensor) and not is_sparse(x)) or type(x) in (Number, Slot, Kept)


def is_immutable(container: Any) -> bool:
    """Whether what a container holds can never change."""
    return isinstance(container, (tuple, frozenset, Tensor))


def children(tree: Any) -> list[tuple[str, Any]] | None:
    """(name, value) of what a container holds; None for anything else."""
    if isinstance(tree, dict):
        return [(_name_of(key), value) for key, value in tree.items()]
    if isinstance(tree, Tensor):
        return parts_of(tree)
    if type(tree) is OfClass:
        return [("", tree.tensor), ("__dict__", tree.namespace)]
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return list(zip(tree._fields, tree, strict=True))  # type: ignore[attr-defined]
    if isinstance(tree, (tuple, list, deque, set, frozenset)):
        return [(str(i), value) for i, value in enumerate(tree)]
    if dataclasses.is_dataclass(tree) and not isinstance(tree, type):
        return [(f.name, getattr(tree, f.name)) for f in dataclasses.fields(tree) if hasattr(tree, f.name)]
    return None


def _name_of(key: Any) -> str:
    """What a path calls a key of a dict: of a tensor, in an optimizer's state, not its text, which reads its values."""
    return type(key).__name__ if isinstance(key, Tensor) else str(key)


def rebuilt(tree: Any, values: Sequence[Any]) -> Any:
    """A container like `tree` that holds `values`."""
    kind = type(tree)
    if isinstance(tree, Tensor):
        return with_parts(tree, values)
    if kind is OfClass:
        return tree.made(*values)
    keys = list(map(_plain_key, tree)) if isinstance(tree, dict) else []
    if kind is dict:
        return dict(zip(keys, values, strict=True))
    if kind in (tuple, list, set, frozenset):
        return kind(values)
    if isinstance(tree, deque) and kind is deque:
        return deque(values, tree.maxlen)
    if isinstance(tree, tuple):
        return kind(*values) if hasattr(tree, "_fields") else kind(values)
    new: Any = copy.copy(tree)  # keeps what a subclass adds
    if isinstance(tree, frozenset):
        return kind(values)
    if isinstance(tree, (dict, list, deque, set)):
        refill(new, zip(keys, values, strict=True) if isinstance(tree, dict) else values)
    else:
        names = [f.name for f in dataclasses.fields(tree) if hasattr(tree, f.name)]
        for name, value in zip(names, values, strict=True):
            object.__setattr__(new, name, value)  # as the dataclass may be frozen
    return new


def _plain_key(key: Any) -> Any:
    """A key of a dict without traced numbers and symbolic sizes: hashing it has fixed them."""
    if type(key) is Number:
        return key.known()
    if isinstance(key, tuple) and any(type(k) is Number or isinstance(k, tuple) for k in key):
        parts = list(map(_plain_key, key))
        key = type(key)(*parts) if hasattr(key, "_fields") else type(key)(parts)
    return substituted(key, None)


# an object without attributes, and those that are to be set: (of what, name, value)
Opened = tuple[Any, list[tuple[Any, str, Any]]]


def map_leaves(
    tree: Any,
    fn: Callable[[Any, str], Any],
    path: str = "",
    known: dict[int, Any] | None = None,
    opened: Callable[[Any, dict[int, Any]], Opened | None] = lambda value, known: None,
) -> Any:
    """`tree` with `fn(leaf, path)` in place of each leaf; containers are rebuilt, other values kept.

    known   by the id of a container in `tree`: what it has become. With it, a container in two places stays one, and
            ndarrays are copied as containers are
    opened  which other objects are taken apart, and how; called with the object and `known`
    """
    if is_leaf(tree):
        return fn(tree, path)
    if known is not None and id(tree) in known:
        return known[id(tree)]
    inside = children(tree)
    if inside is None:
        if known is not None and isinstance(tree, np.ndarray):
            return known.setdefault(id(tree), tree.copy())
        found = None if known is None else opened(tree, known)
        if known is None or found is None:
            return tree
        known[id(tree)] = new = found[0]  # before its attributes, which may lead back to it
        for holder, name, value in found[1]:
            object.__setattr__(holder, name, map_leaves(value, fn, f"{path}.{name}" if path else name, known, opened))
        return new
    values = [map_leaves(value, fn, f"{path}.{name}" if path else name, known, opened) for name, value in inside]
    new = rebuilt(tree, values)
    if known is not None and not is_immutable(tree):
        known[id(tree)] = new
    return new


def leaves_of(tree: Any) -> Iterator[Any]:
    """The leaves of `tree`, in the order in which `map_leaves` visits them."""
    if is_leaf(tree):
        yield tree
    else:
        for _, value in children(tree) or ():
            yield from leaves_of(value)


def tensors_of(tree: Any) -> Iterator[Tensor]:
    """The leaves of `tree` that are tensors."""
    return (leaf for leaf in leaves_of(tree) if isinstance(leaf, Tensor))


def map_tensors(tree: Any, fn: Callable[[Tensor, str], Any], path: str = "") -> Any:
    """`tree` with `fn(tensor, path)` in place of each tensor."""
    return map_leaves(tree, lambda leaf, at: fn(leaf, at) if isinstance(leaf, Tensor) else leaf, path)


def is_plain(tree: Any) -> bool:
    """Whether a tree is made of tuples, lists, dicts and records only, which a graph's result may be."""
    if is_leaf(tree):
        return type(tree) is not Kept
    inside = children(tree)
    if inside is None:
        return isinstance(tree, (bool, int, float, complex, str, bytes, type(None)))
    record = (isinstance(tree, tuple) and hasattr(tree, "_fields")) or (
        dataclasses.is_dataclass(tree) and len(inside) == len(dataclasses.fields(tree))
    )
    return (record or type(tree) in (tuple, list, dict)) and all(is_plain(value) for _, value in inside)


def with_sizes(tree: Any, sizes: Mapping[str, int] | None) -> Any:
    """A nest with the numbers for `sizes`, or those of the call that is traced, in place of Dims."""
    if is_dim(tree):
        return substituted(tree, sizes)
    inside = None if is_leaf(tree) else children(tree)
    if inside is None:
        return tree
    parts = [with_sizes(value, sizes) for _, value in inside]
    if isinstance(tree, dict) and any(map(has_dim, tree)):
        return rebuilt(tree, parts)
    return tree if all(a is b for a, (_, b) in zip(parts, inside, strict=True)) else rebuilt(tree, parts)
