"""Graph: the nodes of a program in order. As `torch.fx.graph`."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from eager.fx import codegen
from eager.fx.codegen import CodeGen, PythonCode
from eager.fx.codegen import PyTreeCodeGen as _PyTreeCodeGen  # noqa: F401 (libraries take these from PyTorch's module)
from eager.fx.codegen import PyTreeInfo as _PyTreeInfo  # noqa: F401
from eager.fx.naming import Namespace, is_magic, snake_case
from eager.fx.naming import Namespace as _Namespace  # noqa: F401
from eager.fx.naming import snake_case as _snake_case  # noqa: F401
from eager.fx.node import Argument, Node, Target, _get_qualified_name, map_arg

__all__ = ["CodeGen", "Graph", "PythonCode"]

STILL_USED = "Tried to erase Node {} but it still had {} users in the graph: {}!"
BEFORE_DEFINED = (
    "Argument '{}' of Node '{}' was used before it has been defined! Please check that Nodes in the graph are "
    "topologically ordered\n{}"
)
FOREIGN = "Argument '{}' of Node '{}' does not belong to this Graph, but was used as an argument! If you are copying "
FOREIGN += "nodes from another graph, make sure to use ``arg_transform`` on node_copy() to remap values\n{}"
NONEXISTENT = "Node {} target {} references nonexistent attribute {} of {}"
NO_TABULATE = (
    "`print_tabular` relies on the library `tabulate`, which could not be found on this machine. Run `pip install "
    "tabulate` to install the library."
)
_origin_type_map: dict[Any, Any] = {}  # as in PyTorch since Python 3.9; libraries ask it


class _NodeList:
    """The nodes of a graph, in order, as they are when they are looked at."""

    def __init__(self, graph: Graph, backwards: bool = False):
        self.graph = graph
        self.backwards = backwards

    def __len__(self) -> int:
        return self.graph._len

    def __iter__(self) -> Iterator[Node]:
        root, way = self.graph._root, "_prev" if self.backwards else "_next"
        node = getattr(root, way)
        while node is not root:
            if not node._erased:
                yield node
            node = getattr(node, way)

    def __reversed__(self) -> _NodeList:
        return _NodeList(self.graph, not self.backwards)


class _InsertPoint:
    """Where nodes go that are made; as a context manager, until its block ends."""

    def __init__(self, graph: Graph, insert: Callable[[Node], None]):
        self.graph = graph
        self.before, graph._insert = graph._insert, insert

    def __enter__(self) -> None: ...

    def __exit__(self, *error: object) -> None:
        self.graph._insert = self.before


class Graph:
    """A program: arguments, calls, and an output. Nodes are made in order, where `inserting_before` says.

    owning_module: the module whose attributes it names. `python_code` is the program as text.
    """

    def __init__(self, owning_module: Any = None, tracer_cls: Any = None, tracer_extras: dict[str, Any] | None = None):
        self._len = 0
        self._graph_namespace = Namespace(codegen.RESERVED)
        self._owning_module = owning_module
        self._tracer_cls = tracer_cls
        self._tracer_extras = tracer_extras
        self._codegen = CodeGen()
        self._co_fields: dict[str, Any] = {}
        self._root = Node(self, "", "root", "", (), {})  # before the first node, and after the last
        self._insert: Callable[[Node], None] = self._root.prepend

    @property
    def owning_module(self) -> Any:
        """The module whose attributes the nodes name."""
        return self._owning_module

    @owning_module.setter
    def owning_module(self, mod: Any) -> None:
        self._owning_module = mod

    @property
    def nodes(self) -> Any:
        """The nodes, in order."""
        return _NodeList(self)

    def output_node(self) -> Node:
        """The output; the last node, as a rule."""
        return next(node for node in reversed(self.nodes) if node.op == "output")

    def find_nodes(self, *, op: str, target: Target | None = None, sort: bool = True) -> list[Node]:
        """The nodes of that op and target, in order."""
        if op == "call_function" and target is None:
            raise AssertionError("target must not be None for call_function op")
        return [node for node in self.nodes if node.op == op and (target is None or node.target == target)]

    def create_node(self, op: str, target: Target, args: tuple[Argument, ...] | None = None,
                    kwargs: dict[str, Argument] | None = None, name: str | None = None,
                    type_expr: Any = None) -> Node:  # fmt: skip
        """A new node where nodes go now. name: what it would like to be called; type_expr: the type of its result."""
        args, kwargs = () if args is None else args, {} if kwargs is None else kwargs
        if not isinstance(args, tuple):
            raise AssertionError(f"args must be a tuple, got {type(args)}")
        if not isinstance(kwargs, dict):
            raise AssertionError(f"kwargs must be a dict, got {type(kwargs)}")
        candidate = self._target_to_str(target) if name is None else name
        node = Node(self, self._graph_namespace.create_name(candidate, None), op, target, args, kwargs, type_expr)
        self._graph_namespace.associate_name_with_obj(node.name, node)
        self._insert(node)
        self._len += 1
        for hook in getattr(self.owning_module, "_create_node_hooks", ()):
            hook(node)
        return node

    def process_inputs(self, *args: Any) -> Any:
        """The values of the placeholders, of the arguments of a call."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        """The result of a call, of that of the output node."""
        return self._codegen.process_outputs(out)

    def erase_node(self, to_erase: Node) -> None:
        """Take out a node that has no users. RuntimeError if it has some."""
        if to_erase.users:
            raise RuntimeError(STILL_USED.format(to_erase, len(to_erase.users), to_erase.users))
        if to_erase.graph is not self:
            raise RuntimeError(f"Attempting to remove {to_erase} from wrong graph!")
        if to_erase._erased:
            return
        for hook in getattr(self.owning_module, "_erase_node_hooks", ()):
            hook(to_erase)
        to_erase._remove_from_list()
        to_erase._erased = True
        self._len -= 1
        to_erase._set((), {})

    def inserting_before(self, n: Node | None = None) -> _InsertPoint:
        """Let new nodes go before `n`, or to the beginning; with `with`, until its block ends."""
        if n is None:
            return self.inserting_after(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert before is not in graph.")
        return _InsertPoint(self, n.prepend)

    def inserting_after(self, n: Node | None = None) -> _InsertPoint:
        """Let new nodes go behind `n`, or to the end; with `with`, until its block ends."""
        if n is None:
            return self.inserting_before(self._root)
        if n.graph is not self:
            raise AssertionError("Node to insert after is not in graph.")
        return _InsertPoint(self, n.append)

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = ...) -> Node:
        """A new argument. default_value: what it is unless it is given; an Ellipsis is none."""
        args = () if default_value is ... else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """A new node for the attribute of the module at that dotted path."""
        return self.create_node("get_attr", qualified_name, type_expr=type_expr)

    def call_module(self, module_name: str, args: tuple[Argument, ...] | None = None,
                    kwargs: dict[str, Argument] | None = None, type_expr: Any = None) -> Node:  # fmt: skip
        """A new call of the submodule at that dotted path. AttributeError if the module has none."""
        if self.owning_module is not None:
            self.owning_module.get_submodule(module_name)
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def call_method(self, method_name: str, args: tuple[Argument, ...] | None = None,
                    kwargs: dict[str, Argument] | None = None, type_expr: Any = None) -> Node:  # fmt: skip
        """A new call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_function(self, the_function: Callable[..., Any], args: tuple[Argument, ...] | None = None,
                      kwargs: dict[str, Argument] | None = None, type_expr: Any = None,
                      name: str | None = None) -> Node:  # fmt: skip
        """A new call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def output(self, result: Argument, type_expr: Any = None) -> Node:
        """The output, which is `result`."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Argument] = lambda x: x) -> Node:
        """A copy of a node of another graph, in this one. arg_transform: nodes there -> what they are here."""
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        made = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        made.meta = copy.copy(node.meta)
        return made

    def graph_copy(self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False) -> Any:
        """Copies of the nodes of `g`. Returns what its output is here; None without one.

        val_map: nodes of `g` -> nodes here, to which it adds; return_output_node: whether to return that output, too.
        """
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                result = map_arg(node.args[0], lambda n: val_map[n])
                return (result, node) if return_output_node else result
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Graph:
        memo = {} if memo is None else memo
        made = Graph(tracer_cls=self._tracer_cls)
        val_map: dict[Node, Node] = {}
        found = made.graph_copy(self, val_map, return_output_node=True)
        made._codegen = copy.deepcopy(self._codegen)
        if found is not None:
            result, old = found
            val_map[old] = made.create_node("output", "output", (result,), type_expr=old.type)
            val_map[old].meta = copy.copy(old.meta)
        memo.update((id(old), new) for old, new in val_map.items())
        return made

    def _target_to_str(self, target: Target | None) -> str:
        if callable(target):
            name = getattr(target, "__name__", type(target).__name__)
        else:
            name = str(target)
            name = name.strip("_") if is_magic(name) else name
        return snake_case(name)

    def python_code(self, root_module: str, *, verbose: bool = False, **unused_settings: Any) -> PythonCode:
        """The program as Python. root_module: what it calls the module; verbose: with comments that say where from.

        Other settings of PyTorch's, about tensors that nodes of its `make_fx` note, have no effect.
        """
        namespace = Namespace(codegen.RESERVED)

        def free_name(node: Node) -> str:
            return namespace.create_name(node.name, node)

        before = [node._repr_fn for node in self.nodes]
        for node in self.nodes:
            node._repr_fn = free_name
        try:
            return self._codegen._gen_python_code(self.nodes, root_module, namespace, verbose)
        finally:
            for node, function in zip(self.nodes, before, strict=True):
                node._repr_fn = function

    def __str__(self) -> str:
        return "\n    ".join(["graph():", *(str(node.format_node()) for node in self.nodes)])

    def print_tabular(self) -> None:
        """Print a table of the nodes, which needs the library `tabulate`."""
        try:
            from tabulate import tabulate  # type: ignore[import-not-found]
        except ImportError:
            print(NO_TABULATE)
            raise
        rows = [[n.op, n.name, n.target, n.args, n.kwargs] for n in self.nodes]
        print(tabulate(rows, headers=["opcode", "name", "target", "args", "kwargs"]))

    def lint(self) -> None:
        """RuntimeError if a node is of another graph, or comes before its arguments, or names what is not there."""
        seen: dict[str, Node] = {}
        for node in self.nodes:
            if node.graph is not self:
                raise RuntimeError(f"Node '{node}' does not belong to this Graph!")
            for argument in node.all_input_nodes:
                if argument.graph is not self:
                    raise RuntimeError(FOREIGN.format(argument, node, self))
                if seen.get(argument.name) is not argument:
                    raise RuntimeError(BEFORE_DEFINED.format(argument, node, self))
            if node.name in seen:
                raise RuntimeError(f"Node redefined name {node.name}!")
            seen[node.name] = node
            if self.owning_module is not None and node.op in ("get_attr", "call_module"):
                self._check_path(node)

    def _check_path(self, node: Node) -> None:
        found, path = self.owning_module, ""
        for part in str(node.target).split("."):
            if not hasattr(found, part):
                raise RuntimeError(NONEXISTENT.format(node, node.target, part, path))
            found, path = getattr(found, part), f"{path}.{part}" if path else part

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Take out the nodes that nobody uses, unless `Node.is_impure`. Returns whether there were any."""
        self.lint()
        impure = is_impure_node or Node.is_impure
        before = self._len
        for node in reversed(self.nodes):
            if not node.users and not impure(node):
                self.erase_node(node)
        return self._len < before

    def set_codegen(self, codegen: CodeGen) -> None:
        """Let `codegen` write the code."""
        self._codegen = codegen

    def on_generate_code(self, make_transformer: Callable[[Any], Callable[[list[str]], list[str]]]) -> Any:
        """Let a function change the lines of generated code.

        make_transformer: takes the function that does so now, or None, and gives the one that is to do it. As a context
        manager, until its block ends.
        """
        before = self._codegen._body_transformer
        self._codegen._body_transformer = make_transformer(before)

        @contextmanager
        def until() -> Iterator[None]:
            try:
                yield
            finally:
                self._codegen._body_transformer = before

        return until()


def _is_from_torch(obj: Any) -> bool:
    return _get_qualified_name(obj).startswith("torch.")
