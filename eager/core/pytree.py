"""Nests of tuples, lists, dicts and namedtuples, as flat lists of leaves and a `TreeSpec` of what held them."""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque, namedtuple
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, final

DICTS = (dict, OrderedDict, defaultdict)
NOT_A_SPEC = "Expected `treespec` to be an instance of PyTreeSpec but got item of type {}."
WRONG_COUNT = (
    "treespec.unflatten(leaves): `leaves` has length {} but the spec refers to a pytree that holds {} items ({})."
)


class Node(NamedTuple):
    """How containers of one type are taken apart, and made again.

    parts: container -> (children, context), as `build` takes them; keys: context, children -> their keys in a path.
    """

    parts: Callable[[Any], tuple[Sequence[Any], Any]]
    build: Callable[[Any, Any], Any]
    keys: Callable[[Any, Any], Sequence[Any]] | None

    @property
    def flatten_fn(self) -> Callable[[Any], tuple[Sequence[Any], Any]]:
        """PyTorch's name of `parts`."""
        return self.parts


class SequenceKey(NamedTuple):
    """The way to item number `idx`."""

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"

    def get(self, sequence: Any) -> Any:
        """That item of `sequence`."""
        return sequence[self.idx]


class MappingKey(NamedTuple):
    """The way to the value of `key`."""

    key: Any

    def __str__(self) -> str:
        return f"[{self.key!r}]"

    def get(self, mapping: Any) -> Any:
        """That value in `mapping`."""
        return mapping[self.key]


class GetAttrKey(NamedTuple):
    """The way to the attribute `name`."""

    name: str

    def __str__(self) -> str:
        return f".{self.name}"

    def get(self, obj: Any) -> Any:
        """That attribute of `obj`."""
        return getattr(obj, self.name)


def _numbered(context: Any, children: Any) -> list[Any]:
    return [SequenceKey(i) for i in range(len(children))]


def _keyed(context: Any, children: Any) -> list[Any]:
    return [MappingKey(key) for key in context]


NODES: dict[Any, Node] = {
    tuple: Node(lambda t: (list(t), None), lambda children, context: tuple(children), _numbered),
    list: Node(lambda t: (t, None), lambda children, context: list(children), _numbered),
    dict: Node(
        lambda t: (list(t.values()), list(t)),
        lambda children, context: dict(zip(context, children, strict=True)),
        _keyed,
    ),
    OrderedDict: Node(
        lambda t: (list(t.values()), list(t)),
        lambda children, context: OrderedDict(zip(context, children, strict=True)),
        _keyed,
    ),
    defaultdict: Node(
        lambda t: (list(t.values()), [t.default_factory, list(t)]),
        lambda children, context: defaultdict(context[0], zip(context[1], children, strict=True)),
        lambda context, children: _keyed(context[1], children),
    ),
    deque: Node(
        lambda t: (list(t), t.maxlen), lambda children, context: deque(children, maxlen=context), _numbered
    ),
    namedtuple: Node(  # of every class of namedtuples; which one it is, is the context
        lambda t: (list(t), type(t)),
        lambda children, context: context(*children),
        lambda context, children: [GetAttrKey(name) for name in context._fields],
    ),
}  # fmt: skip
BUILT_IN = frozenset(NODES)


def type_of(tree: Any) -> Any:
    """The type in `NODES` that takes `tree` apart; None if it is a leaf."""
    kind = type(tree)
    if kind in NODES:
        return kind
    return namedtuple if isinstance(tree, tuple) and hasattr(kind, "_fields") else None


class _Asterisk(str):
    def __repr__(self) -> str:
        return "*"


@final
class TreeSpec:
    """The containers of a nest. `type` is None for a leaf; `context` is the keys of a dict, or its like."""

    __slots__ = ("_children", "context", "num_leaves", "num_nodes", "type")

    def __init__(self, type: Any, context: Any, children_specs: list[TreeSpec]):
        self.type = type
        self.context = context
        self._children = children_specs
        self.num_leaves = 1 if type is None else sum(child.num_leaves for child in children_specs)
        self.num_nodes = 1 + sum(child.num_nodes for child in children_specs)

    @property
    def num_children(self) -> int:
        """How many nests it holds."""
        return len(self._children)

    def is_leaf(self) -> bool:
        """Whether it stands for a leaf; as in PyTorch, an empty container is none."""
        return self.type is None

    def children(self) -> list[TreeSpec]:
        """The specs of what it holds."""
        return list(self._children)

    def child(self, index: int) -> TreeSpec:
        """The spec of what it holds at place `index`."""
        return self._children[index]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TreeSpec) and (self.type, self.context, self._children) == (
            other.type, other.context, other._children
        )  # fmt: skip

    def __hash__(self) -> int:
        return hash((self.type, tuple(self._children)))  # a context need not be hashable

    def __repr__(self) -> str:
        return self._text(0)

    def _text(self, indent: int) -> str:
        if self.type is None:
            return "*"
        separator = ",\n" + " " * (indent + 2)
        inside = separator.join(child._text(indent + 2) for child in self._children)
        named = getattr(self.context, "__module__", None) == "torch.return_types"  # which PyTorch takes for types of C
        kind, context = (self.context.__name__, None) if named else (self.type.__name__, self.context)
        return f"TreeSpec({kind}, {context}, [{inside}])"

    def pattern(self) -> str:
        """The containers as Python shows them, with `*` for each leaf."""
        return repr(self.unflatten([_Asterisk()] * self.num_leaves))

    def unflatten(self, leaves: Iterable[Any]) -> Any:
        """The nest that was taken apart, with other leaves. ValueError unless there are `num_leaves`."""
        given = list(leaves)
        if len(given) != self.num_leaves:
            raise ValueError(WRONG_COUNT.format(len(given), self.num_leaves, self))
        return self._built(iter(given))

    def _built(self, leaves: Iterator[Any]) -> Any:
        if self.type is None:
            return next(leaves)
        return NODES[self.type].build([child._built(leaves) for child in self._children], self.context)

    def flatten_up_to(self, tree: Any) -> list[Any]:
        """What `tree` holds at the places of the leaves. ValueError, saying why, if its containers are others."""
        if self.type is None:
            return [tree]
        parts = zip(self._children, self._matching(tree), strict=True)
        return [found for child, part in parts for found in child.flatten_up_to(part)]

    def _matching(self, tree: Any) -> Sequence[Any]:
        kind = type_of(tree)
        as_dicts = self.type in DICTS and kind in DICTS
        if kind is not self.type and not as_dicts:
            what = "Node type" if self.type in BUILT_IN else "Type"
            raise ValueError(f"{what} mismatch; expected {self.type!r}, but got {kind or type(tree)!r}.")
        children, context = NODES[kind].parts(tree)
        if len(children) != self.num_children:
            raise ValueError(f"Node arity mismatch; expected {self.num_children}, but got {len(children)}.")
        if as_dicts:
            wanted = self.context[1] if self.type is defaultdict else self.context
            sets = {"missing": {*wanted} - {*tree}, "extra": {*tree} - {*wanted}}
            if any(sets.values()):
                raise ValueError(
                    "Node keys mismatch" + "".join(f"; {k} key(s): {keys}" for k, keys in sets.items() if keys) + "."
                )
            return [tree[key] for key in wanted]
        if kind is not deque and context != self.context:
            if self.type not in BUILT_IN:
                raise ValueError(f"Node context mismatch for custom node type {self.type!r}.")
            raise ValueError(
                f"Node context mismatch for node type {self.type!r}; expected {self.context!r}, but got {context!r}."
            )
        return children


LEAF = TreeSpec(None, None, [])


def flatten(tree: Any, is_leaf: Callable[[Any], bool] | None = None) -> tuple[list[Any], TreeSpec]:
    """The leaves of `tree`, in order, and its TreeSpec. What `is_leaf` holds of is not looked into."""
    leaves: list[Any] = []
    return leaves, _flatten(tree, leaves, is_leaf)


def _flatten(tree: Any, leaves: list[Any], is_leaf: Callable[[Any], bool] | None) -> TreeSpec:
    kind = type_of(tree)
    if kind is None or (is_leaf is not None and is_leaf(tree)):
        leaves.append(tree)
        return LEAF
    children, context = NODES[kind].parts(tree)
    return TreeSpec(kind, context, [_flatten(child, leaves, is_leaf) for child in children])


def unflatten(leaves: Iterable[Any], spec: TreeSpec) -> Any:
    """The nest that `flatten` took apart, with other leaves."""
    return spec.unflatten(leaves)


def tree_map(fn: Callable[[Any], Any], tree: Any) -> Any:
    """`tree` with `fn` applied to each leaf."""
    leaves, spec = flatten(tree)
    return spec.unflatten(map(fn, leaves))


def broadcast_leaves(tree: Any, spec: TreeSpec) -> list[Any] | None:
    """The leaves of `tree`, a leaf of which may stand for a whole nest of `spec`; None if it does not fit."""
    kind = type_of(tree)
    if kind is None:
        return [tree] * spec.num_leaves
    if kind is not spec.type:
        return None
    children, context = NODES[kind].parts(tree)
    if context != spec.context or len(children) != spec.num_children:
        return None
    found: list[Any] = []
    for child, child_spec in zip(children, spec.children(), strict=True):
        leaves = broadcast_leaves(child, child_spec)
        if leaves is None:
            return None
        found += leaves
    return found
