"""Interpreter and Transformer: a graph is run node by node, as a subclass wants it. As `torch.fx.interpreter`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from eager.fx import traceback as fx_traceback
from eager.fx.graph import Graph
from eager.fx.graph_module import GraphModule
from eager.fx.node import Argument, Node, Target, map_aggregate, map_arg
from eager.fx.proxy import Proxy
from eager.fx.tracer import Tracer
from eager.nn.module import Module
from eager.surface import overriding as asking

__all__ = ["Interpreter", "Transformer"]

NOT_GIVEN = "Expected positional argument for parameter {}, but one was not passed in!"
NONEXISTENT = "Node referenced nonexistent target {}"
NO_VALUE = "Node {} referenced nonexistent value {}! Run Graph.lint() to diagnose such issues"
WHILE = "While executing {}\nOriginal traceback:\n{}"


class Interpreter:
    """Runs the graph of a module node by node: a subclass changes what an op does, by the method of its name.

    garbage_collect_values: whether values are let go after their last use; graph: another one than the module's.
    """

    def __init__(self, module: Module, garbage_collect_values: bool = True, graph: Graph | None = None):
        self.module: Any = module
        self.submodules = dict(self.module.named_modules())
        self.graph: Graph = self.module.graph if graph is None else graph
        self.env: dict[Node, Any] = {}
        self.args_iter: Iterator[Any] = iter(())
        self.name = "Interpreter"
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True
        self.user_to_last_uses: dict[Node, list[Node]] = {}
        if garbage_collect_values:
            last: dict[Node, Node] = {}
            for node in reversed(self.graph.nodes):
                for used in node.all_input_nodes:
                    if used not in last:
                        last[used] = node
                        self.user_to_last_uses.setdefault(node, []).append(used)

    def run(self, *args: Any, initial_env: dict[Node, Any] | None = None, enable_io_processing: bool = True) -> Any:
        """What the module returns for these arguments.

        initial_env: values of nodes that are not to be run; enable_io_processing: whether nests of arguments are taken
        apart, as in the module's own call.
        """
        self.env = {} if initial_env is None else initial_env
        if enable_io_processing:
            args = self.graph.process_inputs(*args)
        self.args_iter = iter(args)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            try:
                self.env[node] = self.run_node(node)
            except Exception as error:
                if self.extra_traceback:
                    text = WHILE.format(node.format_node(), node.stack_trace)
                    first = f"{error.args[0]}\n\n{text}" if error.args else text
                    error.args = (first, *error.args[1:])
                raise
            for used in self.user_to_last_uses.get(node, ()):
                self.env.pop(used, None)
            if node.op == "output":
                value = self.env[node]
                return self.graph.process_outputs(value) if enable_io_processing else value
        return None

    def boxed_run(self, args_list: list[Any]) -> Any:
        """`run` with the arguments of a list, which is emptied first."""
        args = list(args_list)
        args_list.clear()
        return self.run(*args, enable_io_processing=False)

    @contextmanager
    def _set_current_node(self, node: Node) -> Iterator[None]:
        with fx_traceback.set_current_meta(node, f"Interpreter_{type(self).__name__}"):
            yield

    def run_node(self, n: Node) -> Any:
        """The value of a node: by the method that is called as its op, with the values of its arguments."""
        with self._set_current_node(n):
            args, kwargs = self.fetch_args_kwargs_from_env(n)
            return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """The next argument of `run`, or its default; RuntimeError without one."""
        if isinstance(target, str) and target.startswith("*"):
            return list(self.args_iter)
        try:
            return next(self.args_iter)
        except StopIteration:
            if args:
                return args[0]
        raise RuntimeError(NOT_GIVEN.format(target))

    def get_attr(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """The attribute of the module."""
        return self.fetch_attr(str(target))

    def call_function(self, target: Any, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """What the function returns."""
        return target(*args, **kwargs)

    def call_method(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """What the method of the first argument returns."""
        owner, *rest = args
        return getattr(owner, str(target))(*rest, **kwargs)

    def call_module(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """What the submodule returns."""
        return self.fetch_attr(str(target))(*args, **kwargs)

    def output(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """The result."""
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        """What is at the dotted path `target` of the module. RuntimeError if nothing is."""
        found, parts = self.module, target.split(".")
        for count, part in enumerate(parts, 1):
            if not hasattr(found, part):
                raise RuntimeError(NONEXISTENT.format(".".join(parts[:count])))
            found = getattr(found, part)
        return found

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments of a node, with values in the place of nodes."""
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args: Argument, n: Node) -> Any:
        """`args` with the values of the nodes in it. RuntimeError if one has none yet."""

        def value(used: Node) -> Any:
            if used not in self.env:
                raise RuntimeError(NO_VALUE.format(n, used))
            return self.env[used]

        return map_arg(args, value)


class Transformer(Interpreter):
    """An Interpreter whose values are proxies of a new graph: `transform` gives a module of what its methods make."""

    def __init__(self, module: GraphModule):
        super().__init__(module)
        self.new_graph = Graph(tracer_cls=module.graph._tracer_cls)
        self.new_graph.set_codegen(module.graph._codegen)
        self.tracer = _Appending(self.new_graph)
        self.tracer.root = module

    def placeholder(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Proxy:
        """A new argument."""
        default = args[0] if args else ...
        return Proxy(self.new_graph.placeholder(str(target), default_value=default), self.tracer)

    def get_attr(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Proxy:
        """A new node that reads the attribute."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """A new call of the submodule, or what tracing through it gives."""
        module = self.fetch_attr(str(target))
        return self.tracer.call_module(module, module.forward, args, kwargs)

    def call_function(self, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Any]) -> Any:
        """A new call of the function."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def transform(self) -> GraphModule:
        """The new module."""
        with asking.asked(), fx_traceback.preserve_node_meta():
            result = super().run(enable_io_processing=False)
        if result is not None:

            def node_of(value: Any) -> Any:
                return value.node if isinstance(value, Proxy) else value

            output = self.new_graph.output(map_aggregate(result, node_of))
            output.meta.update(self.graph.output_node().meta)
        return GraphModule(self.module, self.new_graph)


class _Appending(Tracer):
    """Appends to a graph; each module is a leaf."""

    def __init__(self, graph: Graph):
        super().__init__()
        self.graph = graph
        self.tensor_attrs = {}

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        return True
