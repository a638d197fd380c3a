"""Nests of dicts, lists and tuples as one flat dict, whose names are the keys on the way joined by points, and back."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from eager.distributed.checkpoint.blocks import is_array

DUPLICATED = "duplicated flatten key {name}"  # PyTorch's
CONFLICT = "'{name}' is said to be two things at once"
Path = tuple[tuple[str, Any], ...]  # (kind of the container, key in it), from the outermost on


class Leaf(NamedTuple):
    """A value, and the way to it."""

    path: Path
    value: Any


def kind_of(value: Any) -> str | None:
    """The kind of a container that is taken apart: a dict with entries, a list or tuple with arrays or dicts inside.

    None for all else, which are values.
    """
    if isinstance(value, Mapping) and value:
        return "ordered" if isinstance(value, OrderedDict) else "dict"
    if type(value) is list and any(is_array(member) or kind_of(member) for member in value):
        return "list"
    if type(value) is tuple and any(is_array(member) or kind_of(member) for member in value):
        return "tuple"
    return None


def members(kind: str, value: Any) -> Iterable[tuple[Any, Any]]:
    """The (key, value) pairs of a container."""
    return list(value.items()) if kind in ("dict", "ordered") else enumerate(value)


def flatten(tree: Any) -> dict[str, Leaf]:
    """The leaves by name. ValueError if two have the same name."""
    found: dict[str, Leaf] = {}

    def visit(value: Any, path: Path) -> None:
        kind = kind_of(value)
        if kind is not None:
            for key, member in members(kind, value):
                visit(member, (*path, (kind, key)))
            return
        name = joined(path)
        if name in found:
            raise ValueError(DUPLICATED.format(name=name))
        found[name] = Leaf(path, value)

    visit(tree, ())
    return found


def joined(path: Path) -> str:
    """The name of what lies at the end of `path`."""
    return ".".join(str(key) for _, key in path)


def replaced(tree: Any, values: Mapping[str, Any], path: Path = ()) -> Any:
    """`tree` with the leaves that `values` has by name; dicts and lists are changed in place."""
    kind = kind_of(tree)
    if kind is None:
        return values.get(joined(path), tree)
    new = [(key, replaced(member, values, (*path, (kind, key)))) for key, member in members(kind, tree)]
    if kind == "tuple":
        return tuple(member for _, member in new)
    for key, member in new:
        tree[key] = member
    return tree


def unflatten(leaves: Iterable[Leaf]) -> Any:
    """The nest that `flatten` took apart. ValueError that names the place for leaves that make none."""
    top = _Node("")
    for path, value in leaves:
        holder, slot = top, 0
        for k, (kind, key) in enumerate(path):
            node = holder.setdefault(slot, _Node(kind))
            if not isinstance(node, _Node) or node.kind != kind:
                raise ValueError(CONFLICT.format(name=joined(path[:k])))
            holder, slot = node, key
        if slot in holder:
            raise ValueError(CONFLICT.format(name=joined(path)))
        holder[slot] = value
    return _built(top[0], "") if top else {}


class _Node(dict[Any, Any]):
    """A container that is being filled."""

    def __init__(self, kind: str):
        super().__init__()
        self.kind = kind


def _built(node: Any, name: str) -> Any:
    if not isinstance(node, _Node):
        return node
    if node.kind in ("list", "tuple"):
        if sorted(node, key=str) != sorted(range(len(node)), key=str):
            raise ValueError(CONFLICT.format(name=name))
        row = [_built(node[k], f"{name}.{k}") for k in range(len(node))]
        return row if node.kind == "list" else tuple(row)
    pairs = ((key, _built(value, f"{name}.{key}")) for key, value in node.items())
    return OrderedDict(pairs) if node.kind == "ordered" else dict(pairs)
