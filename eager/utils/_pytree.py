"""Functions on nests of containers ("pytrees"). As `torch.utils._pytree`.

Tuples, lists, dicts, their like in `collections`, namedtuples and registered types are containers; all else is a leaf.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from eager.core import pytree
from eager.core.pytree import (
    DICTS,
    LEAF,
    NODES,
    NOT_A_SPEC,
    GetAttrKey,
    MappingKey,
    Node,
    SequenceKey,
    TreeSpec,
    broadcast_leaves,
    flatten,
    type_of,
)

PyTree = Any
SUPPORTED_NODES, _get_node_type = NODES, type_of  # names that Lightning takes
KeyEntry = SequenceKey | MappingKey | GetAttrKey
KeyPath = tuple[Any, ...]
IsLeaf = Callable[[Any], bool] | None

__all__ = [
    "GetAttrKey", "KeyEntry", "KeyPath", "LeafSpec", "MappingKey", "PyTree", "SequenceKey", "TreeSpec",
    "arg_tree_leaves", "key_get", "keystr", "map_only", "register_constant", "register_dataclass",
    "register_pytree_node", "tree_all", "tree_all_only", "tree_any", "tree_any_only", "tree_flatten",
    "tree_flatten_with_path", "tree_is_leaf",
    "tree_iter", "tree_leaves", "tree_leaves_with_path", "tree_map", "tree_map_", "tree_map_only", "tree_map_only_",
    "tree_map_with_path", "tree_structure", "tree_unflatten", "treespec_leaf", "treespec_pprint",
]  # fmt: skip


# what libraries give `register_pytree_node` for dicts of their own
_dict_flatten, _dict_unflatten = NODES[dict].parts, NODES[dict].build


def _dict_flatten_with_keys(d: dict[Any, Any]) -> tuple[list[tuple[MappingKey, Any]], list[Any]]:
    return [(MappingKey(key), value) for key, value in d.items()], list(d)


def tree_flatten(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[Any], TreeSpec]:
    """The leaves of `tree`, in order, and the TreeSpec of what holds them. What `is_leaf` holds of is a leaf, too."""
    return flatten(tree, is_leaf)


def tree_unflatten(leaves: Iterable[Any], treespec: TreeSpec) -> Any:
    """The nest that `tree_flatten` took apart, with other leaves. TypeError, ValueError if these do not fit."""
    if not isinstance(treespec, TreeSpec):
        raise TypeError(NOT_A_SPEC.format(type(treespec)))
    return treespec.unflatten(leaves)


def tree_leaves(tree: Any, is_leaf: IsLeaf = None) -> list[Any]:
    """The leaves of `tree`, in order."""
    return flatten(tree, is_leaf)[0]


def tree_iter(tree: Any, is_leaf: IsLeaf = None) -> Iterator[Any]:
    """An iterator over the leaves of `tree`."""
    return iter(tree_leaves(tree, is_leaf))


def tree_structure(tree: Any, is_leaf: IsLeaf = None) -> TreeSpec:
    """The TreeSpec of `tree`."""
    return flatten(tree, is_leaf)[1]


def tree_is_leaf(tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Whether `tree` is a leaf."""
    return type_of(tree) is None or (is_leaf is not None and is_leaf(tree))


def arg_tree_leaves(*args: Any, **kwargs: Any) -> list[Any]:
    """The leaves of all arguments of a call, in order."""
    return [leaf for arg in (*args, *kwargs.values()) for leaf in tree_leaves(arg)]


def treespec_leaf() -> TreeSpec:
    """The TreeSpec of a leaf."""
    return LEAF


def LeafSpec() -> TreeSpec:
    """The older spelling of `treespec_leaf`."""
    return LEAF


def treespec_pprint(treespec: TreeSpec) -> str:
    """The containers of `treespec` as Python shows them, with `*` for each leaf."""
    return treespec.pattern()


def _broadcast_to_and_flatten(tree: Any, treespec: TreeSpec, is_leaf: IsLeaf = None) -> list[Any] | None:
    """The leaves of `tree`, a leaf of which may stand for a whole nest of `treespec`; None if it does not fit."""
    return broadcast_leaves(tree, treespec)


def tree_map(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: IsLeaf = None) -> Any:
    """`tree` with `func(leaf, *others)` in place of each leaf; `others` are at its place in `rests`.

    ValueError if one of `rests` has other containers.
    """
    leaves, spec = flatten(tree, is_leaf)
    return spec.unflatten(map(func, leaves, *(spec.flatten_up_to(rest) for rest in rests)))


def tree_map_(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: IsLeaf = None) -> Any:
    """Call `func` as `tree_map` does, for what it changes. Returns `tree`."""
    leaves, spec = flatten(tree, is_leaf)
    for at in zip(leaves, *(spec.flatten_up_to(rest) for rest in rests), strict=True):
        func(*at)
    return tree


def _predicate(wanted: Any) -> Callable[[Any], bool]:
    if isinstance(wanted, (type, tuple)) or type(wanted).__name__ == "UnionType":
        return lambda leaf: isinstance(leaf, wanted)
    if callable(wanted):
        return lambda leaf: bool(wanted(leaf))
    raise TypeError("Argument must be a type, a tuple of types, or a callable.")


def map_only(type_or_types_or_pred: Any, /) -> Callable[[Callable[[Any], Any]], Callable[[Any], Any]]:
    """Decorator: leave what is not of these types, or what the predicate does not hold of, as it is."""
    chosen = _predicate(type_or_types_or_pred)
    return lambda func: lambda leaf: func(leaf) if chosen(leaf) else leaf


def tree_map_only(type_or_types_or_pred: Any, /, func: Callable[[Any], Any], tree: Any, is_leaf: IsLeaf = None) -> Any:
    """`tree_map` of those leaves only that are of these types, or that the predicate holds of."""
    return tree_map(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_map_only_(type_or_types_or_pred: Any, /, func: Callable[[Any], Any], tree: Any, is_leaf: IsLeaf = None) -> Any:
    """`tree_map_` of those leaves only that are of these types, or that the predicate holds of."""
    return tree_map_(map_only(type_or_types_or_pred)(func), tree, is_leaf=is_leaf)


def tree_all(pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Whether `pred` holds of every leaf."""
    return all(map(pred, tree_iter(tree, is_leaf)))


def tree_any(pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Whether `pred` holds of some leaf."""
    return any(map(pred, tree_iter(tree, is_leaf)))


def tree_all_only(type_or_types: Any, /, pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Whether `pred` holds of every leaf of these types."""
    return all(pred(leaf) for leaf in tree_iter(tree, is_leaf) if isinstance(leaf, type_or_types))


def tree_any_only(type_or_types: Any, /, pred: Callable[[Any], bool], tree: Any, is_leaf: IsLeaf = None) -> bool:
    """Whether `pred` holds of some leaf of these types."""
    return any(pred(leaf) for leaf in tree_iter(tree, is_leaf) if isinstance(leaf, type_or_types))


def _with_paths(tree: Any, is_leaf: IsLeaf, path: KeyPath = ()) -> Iterator[tuple[KeyPath, Any]]:
    if tree_is_leaf(tree, is_leaf):
        yield path, tree
        return
    kind = type_of(tree)
    node = NODES[kind]
    if node.keys is None:
        raise ValueError(
            f"Did not find a flatten_with_keys_fn for type: {kind}. Please pass a flatten_with_keys_fn argument to "
            "register_pytree_node."
        )
    children, context = node.parts(tree)
    for key, child in zip(node.keys(context, tree if kind not in pytree.BUILT_IN else children), children, strict=True):
        yield from _with_paths(child, is_leaf, (*path, key))


def tree_leaves_with_path(tree: Any, is_leaf: IsLeaf = None) -> list[tuple[KeyPath, Any]]:
    """(path, leaf) of each leaf. ValueError for a registered type without keys."""
    return list(_with_paths(tree, is_leaf))


def tree_flatten_with_path(tree: Any, is_leaf: IsLeaf = None) -> tuple[list[tuple[KeyPath, Any]], TreeSpec]:
    """(path, leaf) of each leaf, and the TreeSpec."""
    return tree_leaves_with_path(tree, is_leaf), tree_structure(tree, is_leaf)


def tree_map_with_path(func: Callable[..., Any], tree: Any, *rests: Any, is_leaf: IsLeaf = None) -> Any:
    """`tree_map` of a `func` that is given the path of the leaf first."""
    found, spec = tree_flatten_with_path(tree, is_leaf)
    others = [spec.flatten_up_to(rest) for rest in rests]
    return spec.unflatten(func(*at, *more) for at, *more in zip(found, *others, strict=True))


def keystr(kp: KeyPath) -> str:
    """A path as Python writes it: `['a'][0].b`."""
    return "".join(map(str, kp))


def key_get(obj: Any, kp: KeyPath) -> Any:
    """What is in `obj` at the end of a path."""
    for key in kp:
        obj = key.get(obj)
    return obj


def register_pytree_node(
    cls: type, flatten_fn: Callable[[Any], tuple[Iterable[Any], Any]], unflatten_fn: Callable[[Any, Any], Any], *,
    serialized_type_name: str | None = None, to_dumpable_context: Any = None, from_dumpable_context: Any = None,
    flatten_with_keys_fn: Callable[[Any], tuple[Iterable[Any], Any]] | None = None,
) -> None:  # fmt: skip
    """Take objects of the class `cls` apart by `flatten_fn(x) -> (children, context)`.

    `unflatten_fn(children, context)` makes them again; `flatten_with_keys_fn` gives (key, child) pairs in place of
    children. ValueError if `cls` is registered already.
    """
    if cls in NODES:
        raise ValueError(f"{cls} is already registered as pytree node.")
    keyed = flatten_with_keys_fn

    def parts(x: Any) -> tuple[list[Any], Any]:
        children, context = flatten_fn(x)
        return list(children), context

    keys = None if keyed is None else lambda context, x: [key for key, _ in keyed(x)[0]]
    NODES[cls] = Node(parts, unflatten_fn, keys)


def register_dataclass(
    cls: type, *, field_names: list[str] | None = None, drop_field_names: list[str] | None = None,
    serialized_type_name: str | None = None,
) -> None:  # fmt: skip
    """Let the fields of a dataclass be the children; those that are None belong to the context.

    field_names: which, if not all; of a class that is no dataclass, they are required. drop_field_names: those that are
    left out, which have to have defaults. ValueError for names that are not the fields'.
    """
    names = _field_names(cls, field_names, {*(drop_field_names or ())})

    def apart(x: Any) -> tuple[list[Any], Any]:
        present = [name for name in names if getattr(x, name) is not None]
        return [getattr(x, name) for name in present], [present, [n for n in names if n not in present]]

    def again(children: Any, context: Any) -> Any:
        return cls(**dict(zip(context[0], children, strict=True)), **dict.fromkeys(context[1]))

    def keyed(x: Any) -> tuple[list[Any], Any]:
        children, context = apart(x)
        return [(GetAttrKey(name), child) for name, child in zip(context[0], children, strict=True)], context

    register_pytree_node(cls, apart, again, flatten_with_keys_fn=keyed)


def _field_names(cls: Any, given: list[str] | None, dropped: set[str]) -> list[str]:
    """The names of the fields that are children."""
    if not dataclasses.is_dataclass(cls):
        if given is None:
            raise ValueError(
                f"field_names must be specified with a list of all fields used to initialize {cls}, as it is not a "
                "dataclass."
            )
        return given
    own = [f.name for f in dataclasses.fields(cls) if f.init]
    if given is None:
        return own
    missing, unexpected = {*own} - dropped - {*given}, {*given} - ({*own} - dropped)
    if not missing and not unexpected:
        return given
    text = "field_names does not include all dataclass fields.\n"
    if missing:
        text += (
            f"Missing fields in `field_names`: {missing}. If you want to include these fields in the pytree, please "
            "add them to `field_names`, otherwise please add them to `drop_field_names`.\n"
        )
    if unexpected:
        text += (
            f"Unexpected fields in `field_names`: {unexpected}. Please remove these fields, or add them to "
            "`drop_field_names`.\n"
        )
    raise ValueError(text)


class ConstantNode(NamedTuple):
    """The context of a registered constant."""

    value: Any


def register_constant(cls: type) -> None:
    """Let objects of the class `cls` have no leaves: they belong to the TreeSpec.

    TypeError unless the class says which of them are equal, and hashes them.
    """
    for name, lacks in (("__eq__", cls.__eq__ is object.__eq__), ("__hash__", cls.__hash__ is None)):
        if lacks:
            raise TypeError(f"register_constant(cls) expects `cls` to have a non-default `{name}` implementation.")
    register_pytree_node(
        cls, lambda x: ([], ConstantNode(x)), lambda _, context: context.value, flatten_with_keys_fn=lambda x: ([], x)
    )


STANDARD_DICT_TYPES = frozenset(DICTS)
