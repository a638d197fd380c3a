"""Nests of tuples, lists, dicts and namedtuples, as flat lists of leaves and a `Spec` of what held them."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Sequence
from typing import Any


class Spec:
    """The containers of a nest. `children` is None for a leaf; `context` is the keys of a dict, or its like."""

    __slots__ = ("children", "context", "kind", "num_leaves")

    def __init__(self, kind: Any, context: Any, children: list[Spec] | None):
        self.kind = kind
        self.context = context
        self.children = children
        self.num_leaves = 1 if children is None else sum(child.num_leaves for child in children)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Spec) and (self.kind, self.context, self.children) == (
            other.kind, other.context, other.children
        )  # fmt: skip

    __hash__ = None  # type: ignore[assignment]

    def text(self, indent: int = 0) -> str:
        """As PyTorch writes it."""
        if self.children is None:
            return "*"
        separator = ",\n" + " " * (indent + 2)
        inside = separator.join(child.text(indent + 2) for child in self.children)
        return f"TreeSpec({_names.get(self.kind, self.kind.__name__)}, {self.context!r}, [{inside}])"

    def __repr__(self) -> str:
        return self.text()


class _Named:
    """The kind of every namedtuple; which one it is, is its context."""


_names = {_Named: "namedtuple"}
LEAF = Spec(None, None, None)


def _kind_of(tree: Any) -> Any:
    if isinstance(tree, tuple) and hasattr(type(tree), "_fields"):
        return _Named
    return type(tree) if type(tree) in _PARTS else None


# kind -> (context, children) of a container
_PARTS: dict[Any, Callable[[Any], tuple[Any, Sequence[Any]]]] = {
    tuple: lambda t: (None, t),
    list: lambda t: (None, t),
    dict: lambda t: (list(t), list(t.values())),
    OrderedDict: lambda t: (list(t), list(t.values())),
    defaultdict: lambda t: ([t.default_factory, list(t)], list(t.values())),
    deque: lambda t: (t.maxlen, list(t)),
    _Named: lambda t: (type(t), t),
}
_BUILD: dict[Any, Callable[[Any, list[Any]], Any]] = {
    tuple: lambda context, children: tuple(children),
    list: lambda context, children: children,
    dict: lambda context, children: dict(zip(context, children, strict=True)),
    OrderedDict: lambda context, children: OrderedDict(zip(context, children, strict=True)),
    defaultdict: lambda context, children: defaultdict(context[0], zip(context[1], children, strict=True)),
    deque: lambda context, children: deque(children, maxlen=context),
    _Named: lambda context, children: context(*children),
}


def flatten(tree: Any) -> tuple[list[Any], Spec]:
    """The leaves of `tree`, in order, and its Spec."""
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves)


def _flatten(tree: Any, leaves: list[Any]) -> Spec:
    kind = _kind_of(tree)
    if kind is None:
        leaves.append(tree)
        return LEAF
    context, children = _PARTS[kind](tree)
    return Spec(kind, context, [_flatten(child, leaves) for child in children])


def unflatten(leaves: Sequence[Any], spec: Spec) -> Any:
    """The nest that `flatten` took apart, with other leaves."""
    return _unflatten(iter(leaves), spec)


def _unflatten(leaves: Any, spec: Spec) -> Any:
    if spec.children is None:
        return next(leaves)
    return _BUILD[spec.kind](spec.context, [_unflatten(leaves, child) for child in spec.children])


def tree_map(fn: Callable[[Any], Any], tree: Any) -> Any:
    """`tree` with `fn` applied to each leaf."""
    leaves, spec = flatten(tree)
    return unflatten([fn(leaf) for leaf in leaves], spec)


def broadcast_leaves(tree: Any, spec: Spec) -> list[Any] | None:
    """The leaves of `tree`, a leaf of which may stand for a whole nest of `spec`; None if it does not fit."""
    kind = _kind_of(tree)
    if kind is None:
        return [tree] * spec.num_leaves
    if kind is not spec.kind or spec.children is None:
        return None
    context, children = _PARTS[kind](tree)
    if context != spec.context or len(children) != len(spec.children):
        return None
    found: list[Any] = []
    for child, child_spec in zip(children, spec.children, strict=True):
        leaves = broadcast_leaves(child, child_spec)
        if leaves is None:
            return None
        found += leaves
    return found
