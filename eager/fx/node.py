"""Node: one line of a graph. As `torch.fx.node`."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from eager.core import homes
from eager.fx.immutable_collections import immutable_dict, immutable_list
from eager.fx.naming import pretty_target, type_text
from eager.fx.naming import qualified_name as _get_qualified_name  # noqa: F401
from eager.fx.naming import type_text as _type_repr  # noqa: F401
from eager.surface.errors import _assert
from eager.surface.overriding import offered_now

if TYPE_CHECKING:
    from eager.fx.graph import Graph

__all__ = ["Argument", "Node", "Target", "has_side_effect", "map_aggregate", "map_arg"]

Argument = Any  # a Node, a constant, or tuples, lists, dicts and slices of them
Target = Callable[..., Any] | str
OPS = ("placeholder", "get_attr", "call_function", "call_method", "call_module", "output", "root")
ILLEGAL_OP = "op '{}' is not in _legal_ops"
NOT_CALLABLE = "Node [graph = {}, name = '{}'] target {} has type {} but a Callable is expected"
NOT_A_STRING = "Node [graph = {}, name = '{}'] target {} has type {} but a str is expected"
HAS_META = (
    "Called node.replace_all_uses_with(replace_with, propagate_meta=True), but replace_with already has .meta keys"
)
OTHER_GRAPH = "Attempting to move a Node into a different Graph"

# functions that are kept though nobody uses their results; as in PyTorch, writes into tensors are not among them
_side_effects: set[Any] = {operator.setitem, _assert}
_legal_ops = dict.fromkeys(OPS)
_side_effectful_functions = _side_effects


def has_side_effect(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Keep calls of `fn` whose results nobody uses. Returns `fn`, as a decorator does."""
    _side_effects.add(fn)
    return fn


class Node:
    """A value of a graph, and how it comes about.

    op: "placeholder" (an argument), "get_attr" (an attribute of the module), "call_function", "call_method",
    "call_module", or "output"; "root" stands between the last and the first. target: which function, or the name of
    what. args, kwargs: what it is called with; users: the nodes that take it; meta: what passes note of it.
    """

    _prev: Node
    _next: Node

    def __init__(self, graph: Graph, name: str, op: str, target: Target, args: tuple[Argument, ...],
                 kwargs: Mapping[str, Argument], return_type: Any = None) -> None:  # fmt: skip
        if op not in OPS:
            raise AssertionError(ILLEGAL_OP.format(op))
        wrong = not callable(target) if op == "call_function" else not isinstance(target, str)
        if wrong:
            text = NOT_CALLABLE if op == "call_function" else NOT_A_STRING
            raise ValueError(text.format(graph, name, target, type(target)))
        self.graph = graph
        self.name = name
        self.op = op
        self.target = target
        self.type = return_type
        self.users: dict[Node, None] = {}
        self.meta: dict[str, Any] = {}
        self._input_nodes: dict[Node, None] = {}
        self._erased = False
        self._prev = self._next = self
        self._repr_fn: Callable[[Node], str] | None = None
        self._set(tuple(args), dict(kwargs))

    @property
    def target(self) -> Target:
        """Which function, or the name of which method, module, attribute or argument."""
        return offered_now(self._target)

    @target.setter
    def target(self, target: Target) -> None:
        self._target = target

    def __repr__(self) -> str:
        return self.name if self._repr_fn is None else self._repr_fn(self)

    def __lt__(self, other: Node) -> bool:
        return any(node is other for node in self._later())

    def __gt__(self, other: Node) -> bool:
        return other < self

    def __le__(self, other: Node) -> bool:
        return self is other or self < other

    def __ge__(self, other: Node) -> bool:
        return other <= self

    def _later(self) -> Iterator[Node]:
        node = self._next
        while node is not self.graph._root:
            yield node
            node = node._next

    @property
    def next(self) -> Node:
        """The node after it."""
        return self._next

    @property
    def prev(self) -> Node:
        """The node before it."""
        return self._prev

    @property
    def args(self) -> tuple[Argument, ...]:
        """The arguments by position. They are replaced, never changed."""
        return self._args

    @args.setter
    def args(self, args: tuple[Argument, ...]) -> None:
        self._set(args, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Argument]:
        """The arguments by name. They are replaced, never changed."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, kwargs: dict[str, Argument]) -> None:
        self._set(self._args, kwargs)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes among its arguments, each once, in order."""
        return list(self._input_nodes)

    @property
    def stack_trace(self) -> str | None:
        """Where in the user's program it was made, if the tracer wrote it down."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def _set(self, args: Any, kwargs: Any) -> None:
        """Take these arguments, in containers that refuse to be changed, and be a user of the nodes in them."""
        for old in self._input_nodes:
            old.users.pop(self)
        self._input_nodes = {}
        self._args: Any = map_arg(args, self._use)
        self._kwargs: Any = map_arg(kwargs, self._use)

    def _use(self, node: Node) -> Node:
        self._input_nodes.setdefault(node)
        node.users.setdefault(self)
        return node

    def update_arg(self, idx: int, arg: Argument) -> None:
        """Take `arg` as argument number `idx`."""
        self.args = (*self._args[:idx], arg, *self._args[idx + 1 :])

    def insert_arg(self, idx: int, arg: Argument) -> None:
        """Take `arg` before argument number `idx`."""
        if not 0 <= idx <= len(self._args):
            raise AssertionError("insert_args index must be between 0 and len(self.args)")
        self.args = (*self._args[:idx], arg, *self._args[idx:])

    def update_kwarg(self, key: str, arg: Argument) -> None:
        """Take `arg` as the argument `key`."""
        self.kwargs = {**self._kwargs, key: arg}

    def prepend(self, x: Node) -> None:
        """Move `x` before this node. AssertionError if it is of another graph."""
        if self.graph is not x.graph:
            raise AssertionError(OTHER_GRAPH)
        if self is x:
            return
        x._remove_from_list()
        before = self._prev
        before._next, x._prev = x, before
        x._next, self._prev = self, x

    def append(self, x: Node) -> None:
        """Move `x` behind this node. AssertionError if it is of another graph."""
        if x is not self:
            self._next.prepend(x)

    def _remove_from_list(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev

    def _rename(self, candidate: str) -> None:
        if candidate != self.name:
            self.name = self.graph._graph_namespace.create_name(candidate, None)
            self.graph._graph_namespace.rename_object(self, self.name)

    def _pretty_print_target(self, target: object) -> str:
        return pretty_target(target)

    def format_node(self, placeholder_names: list[str] | None = None, maybe_return_typename: list[str] | None = None,
                    *, include_tensor_metadata: bool = False) -> str | None:  # fmt: skip
        """The node as a printed graph shows it.

        placeholder_names: takes the name of a placeholder, which then has no line (None); maybe_return_typename: takes
        " -> type" of an output.
        """
        kind = f"{type_text(self.type)} " if self.type else ""
        head = f"%{self.name} : {kind}[num_users={len(self.users)}] = {self.op}"
        if self.op == "placeholder":
            if placeholder_names is not None:
                placeholder_names.append(f"{self.target} : {kind}" if kind else str(self.target))
                return None
            return f"{head}[target={self.target}]{f'(default={self._args[0]})' if self._args else ''}"
        if self.op == "get_attr":
            return f"{head}[target={pretty_target(self.target)}]"
        if self.op == "output":
            if self.type and maybe_return_typename:
                maybe_return_typename[0] = f" -> {type_text(self.type)}"
            return f"return {self._args[0]}"
        args, kwargs = _shown(self._args), _shown(self._kwargs)
        return f"{head}[target={pretty_target(self.target)}](args = {args}, kwargs = {kwargs})"

    def replace_all_uses_with(
        self, replace_with: Node, delete_user_cb: Callable[[Node], bool] | None = None, *, propagate_meta: bool = False
    ) -> list[Node]:
        """Let all users take `replace_with` instead, except those of which `delete_user_cb` is False.

        propagate_meta: whether that node, which must have no `meta` of its own, is given this one's. Returns the users.
        """
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError(HAS_META)
            replace_with.meta.update(self.meta)
        changed = [user for user in self.users if delete_user_cb is None or delete_user_cb(user)]
        for user in changed:
            for hook in _replace_hooks(self.graph):
                hook(old=self, new=replace_with.name, user=user)
            user.replace_input_with(self, replace_with)
        return changed

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Take `new_input` wherever its arguments have `old_input`."""

        def other(node: Node) -> Node:
            return new_input if node is old_input else node

        self._set(map_arg(self._args, other), map_arg(self._kwargs, other))

    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether it must stay though nobody uses it: arguments, outputs, and calls that have effects."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            return self.target in _side_effects or (impure_random and draws(self.target))
        if self.op == "call_module":
            owner = self.graph.owning_module
            if owner is None:
                raise AssertionError("self.graph.owning_module not set for purity check")
            return getattr(owner.get_submodule(str(self.target)), "_is_impure", False)
        return False

    def normalized_arguments(self, root: Any, arg_types: tuple[Any, ...] | None = None,
                             kwarg_types: dict[str, Any] | None = None, normalize_to_only_use_kwargs: bool = False,
                             ) -> Any:  # fmt: skip
        """Its arguments as the signature of what is called orders them; None if that has none that can be read.

        root: the module that has what "call_module" calls.
        """
        from eager.fx.operator_schemas import normalize_function, normalize_module

        options = (self._args, self._kwargs)
        if self.op == "call_function":
            target: Any = self.target
            return normalize_function(target, *options, arg_types, kwarg_types, normalize_to_only_use_kwargs)
        if self.op == "call_module":
            return normalize_module(root, str(self.target), *options, normalize_to_only_use_kwargs)
        return None


def draws(function: Any) -> bool:
    """Whether it is a function of this package that takes a generator."""
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    code = getattr(function, "__code__", None)
    if code is None or not homes.is_ours(function.__module__):
        return False
    return "generator" in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]


def _replace_hooks(graph: Any) -> Sequence[Any]:
    return getattr(graph.owning_module, "_replace_hooks", ())


def _shown(value: Argument) -> str:
    """Arguments as printed graphs show them: nodes with %, and strings without quotes."""
    if isinstance(value, tuple):
        return f"({', '.join(map(_shown, value))}{',' if len(value) == 1 else ''})"
    if isinstance(value, list):
        return f"[{', '.join(map(_shown, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {_shown(each)}' for key, each in value.items())}}}"
    return f"%{value}" if isinstance(value, Node) else str(value)


def map_arg(a: Argument, fn: Callable[[Node], Argument]) -> Argument:
    """`a` with `fn` of each node in it. Lists and dicts become those that refuse to be changed."""
    if not callable(fn):
        raise AssertionError("torch.fx.map_arg(a, fn): fn must be a callable")
    return map_aggregate(a, lambda value: fn(value) if isinstance(value, Node) else value)


def map_aggregate(a: Argument, fn: Callable[[Argument], Argument]) -> Argument:
    """`a` with `fn` of each part that is no tuple, list, dict or slice."""
    if isinstance(a, tuple):
        parts = (map_aggregate(each, fn) for each in a)
        make: Any = type(a)
        return make(*parts) if hasattr(a, "_fields") else tuple(parts)
    if isinstance(a, list):
        return immutable_list([map_aggregate(each, fn) for each in a])
    if isinstance(a, dict):
        return immutable_dict({key: map_aggregate(each, fn) for key, each in a.items()})
    if isinstance(a, slice):
        return slice(*(map_aggregate(each, fn) for each in (a.start, a.stop, a.step)))
    return fn(a)
