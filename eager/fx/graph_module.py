"""GraphModule: a module that runs a graph. As `torch.fx.graph_module`."""

from __future__ import annotations

import contextlib
import copy
import itertools
import linecache
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any

from eager import nn
from eager.core.tensor import Tensor
from eager.fx.codegen import RESERVED, PythonCode, PyTreeCodeGen, builtin_globals
from eager.fx.graph import Graph
from eager.fx.tracer import Tracer
from eager.nn.module import Module

__all__ = ["GraphModule", "reduce_graph_module"]

SEE_MORE = "# To see more debug info, please use `graph_module.print_readable()`"
NO_ROOT = "Unsupported type {} passed for root!"
NOT_IN_ROOT = "Node {} referenced target {} but that target was not provided in ``root``!"
WHERE = "Call using an FX-traced Module, line {} of the traced Module's generated forward function:"
_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"  # in `meta`: attributes that copies have, too
# what a copy or a pickle makes anew
NOT_COPIED = ("_graph", "meta", "_replace_hooks", "_create_node_hooks", "_erase_node_hooks")
LAYERS = os.path.dirname(nn.__file__)
_numbers = itertools.count()


def _compiled(source: str, scope: dict[str, Any]) -> Callable[..., Any]:
    """The function `forward` of `source`, whose lines tracebacks show."""
    key = f"<eval_with_key>.{next(_numbers)}"
    linecache.cache[key] = (len(source), None, source.splitlines(keepends=True), key)
    scope = dict(scope)
    exec(compile(source, key, "exec", dont_inherit=True), scope)
    return scope["forward"]


def reduce_graph_module(body: dict[str, Any], scope: dict[str, Any]) -> Module:
    """A GraphModule of what a pickle has: its attributes, and its code, which is traced again.

    scope: what the code names besides what all such code does.
    """
    return _traced_again(_compiled(body["_code"], {**builtin_globals(), **scope}), body)


class _CodeOnlyModule(Module):
    """A module of these attributes."""

    def __init__(self, body: dict[str, Any]):
        super().__init__()
        vars(self).update(body)


def _traced_again(forward: Callable[..., Any], body: dict[str, Any]) -> Module:
    class _Root(_CodeOnlyModule):
        """Has the code as its `forward`."""

    _Root.forward = forward
    cls: Any = body.get("_tracer_cls") or Tracer

    class KeepModules(cls):
        """Each module that the code calls is one node."""

        def is_leaf_module(self, *unused: Any) -> bool:
            return True

    root = _Root(body)
    graph = KeepModules().trace(root)
    graph._tracer_cls = body.get("_tracer_cls")
    made = GraphModule(root, graph)
    for name, value in body.items():
        if name not in vars(made):
            setattr(made, name, value)
    return made


def _copy_attr(from_module: Module, to_module: Module, target: str) -> None:
    """Let `to_module` have what is at the dotted path `target` of another module."""
    *path, name = target.split(".")
    for part in path:
        child = getattr(to_module, part, None)
        if child is getattr(from_module, part):
            return  # it has all of it
        if child is None:
            child = Module()
            setattr(to_module, part, child)
        from_module, to_module = getattr(from_module, part), child
    value = getattr(from_module, name)
    _put(value, to_module, name, persistent=name not in from_module._non_persistent_buffers_set)


def _assign_attr(from_obj: Any, to_module: Module, target: str) -> None:
    """Let `to_module` have `from_obj` at the dotted path `target`."""
    *path, name = target.split(".")
    for part in path:
        if getattr(to_module, part, None) is None:
            setattr(to_module, part, Module())
        to_module = getattr(to_module, part)
    _put(from_obj, to_module, name)


def _put(value: Any, module: Module, name: str, persistent: bool = True) -> None:
    from eager.core.parameter import Parameter

    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        module.register_buffer(name, value, persistent)
    else:
        setattr(module, name, value)


def _get_attr(model: Module, target: str) -> Any:
    """What is at the dotted path `target` of a module."""
    return attrgetter(target)(model)


def _has_attr(model: Module, target: str) -> bool:
    try:
        _get_attr(model, target)
    except AttributeError:
        return False
    return True


def _del_attr(model: Module, target: str) -> None:
    path, _, name = target.rpartition(".")
    delattr(_get_attr(model, path) if path else model, name)


class GraphModule(Module):
    """A module made of a graph: `forward` is its code, `graph` may be changed, and `recompile` then makes new code.

    root: the module that has what the graph names, or a dict of it by dotted path; class_name: what it is called.
    """

    _graph: Graph

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        # each has a class of its own, which has its `forward`
        for base in cls.__mro__:
            if "<locals>" not in base.__qualname__:
                made = type(
                    "GraphModuleImpl",
                    (base,),
                    {"__qualname__": f"{base.__qualname__}.__new__.<locals>.GraphModuleImpl"},
                )
                made.__module__ = base.__module__
                return object.__new__(made)
        raise AssertionError("unreachable: GraphModule is such a class")

    def __init__(self, root: Module | dict[str, Any], graph: Graph, class_name: str = "GraphModule"):
        super().__init__()
        type(self).__name__ = class_name
        targets = [str(node.target) for node in graph.nodes if node.op in ("get_attr", "call_module")]
        if isinstance(root, Module):
            if hasattr(root, "training"):
                self.training = root.training
            for target in targets:
                _copy_attr(root, self, target)
        elif isinstance(root, dict):
            for node in graph.nodes:
                if node.op in ("get_attr", "call_module") and node.target not in root:
                    raise RuntimeError(NOT_IN_ROOT.format(node, node.target))
            for target in sorted(targets, key=lambda path: path.count(".")):
                _assign_attr(root[target], self, target)
        else:
            raise RuntimeError(NO_ROOT.format(root))
        self.meta: dict[str, Any] = dict(getattr(root, "meta", {})) if isinstance(root, GraphModule) else {}
        self._tracer_cls = graph._tracer_cls
        self._tracer_extras = graph._tracer_extras or {}
        self._replace_hooks: list[Any] = []
        self._create_node_hooks: list[Any] = []
        self._erase_node_hooks: list[Any] = []
        self.graph = graph

    @property
    def graph(self) -> Graph:
        """The graph."""
        return self._graph

    @graph.setter
    def graph(self, g: Graph) -> None:
        if not isinstance(g, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(g)}")
        self._graph = copy.deepcopy(g) if g.owning_module is not None and g.owning_module is not self else g
        self._graph.owning_module = self
        self.recompile()

    @property
    def code(self) -> str:
        """The code of `forward`."""
        if not hasattr(self, "_code"):
            raise RuntimeError("Code has not been generated! Please report a bug to PyTorch")
        return self._code

    def recompile(self) -> PythonCode:
        """Make the code of the graph as it is now. To be called after the graph has been changed."""
        codegen = self._graph._codegen
        if isinstance(codegen, PyTreeCodeGen):
            self._in_spec = codegen.pytree_info.in_spec
            self._out_spec = codegen.pytree_info.out_spec
        made = self._graph.python_code(root_module="self")
        self._code = made.src
        type(self).forward = _compiled(made.src, made.globals)
        return made

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return super().__call__(*args, **kwargs)
        except Exception as error:
            _say_where(error)
            raise

    def add_submodule(self, target: str, m: Module) -> bool:
        """Put a module at a dotted path, with modules on the way. False if something else is on the way."""
        *path, name = target.split(".")
        owner: Any = self
        for part in path:
            child = getattr(owner, part, None)
            if child is None:
                child = Module()
                setattr(owner, part, child)
            if not isinstance(child, Module):
                return False
            owner = child
        owner.add_module(name, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Take out the module at a dotted path. False if there is none."""
        path, _, name = target.rpartition(".")
        try:
            owner = self.get_submodule(path)
        except AttributeError:
            return False
        if not isinstance(getattr(owner, name, None), Module):
            return False
        delattr(owner, name)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Take out the modules that no node names."""
        used: set[str] = set()
        for node in self.graph.nodes:
            if node.op in ("call_module", "get_attr"):
                parts = str(node.target).split(".")
                used.update(".".join(parts[:count]) for count in range(1, len(parts) + 1))
                if node.op == "call_module":
                    inner = self.get_submodule(str(node.target)).named_modules()
                    used.update(f"{node.target}.{name}" for name, _ in inner)
        for name in [name for name, _ in self.named_modules() if name and name not in used]:
            self.delete_submodule(name)

    def __reduce__(self) -> Any:
        fields = {name: value for name, value in vars(self).items() if name not in NOT_COPIED}
        made = self._graph.python_code(root_module="self")
        named = {name: value for name, value in made.globals.items() if name not in RESERVED}
        return reduce_graph_module, (fields, named)

    def __copy__(self) -> GraphModule:
        made = GraphModule(self, self.graph, type(self).__name__)
        made.meta = copy.copy(self.meta)
        return made

    def __deepcopy__(self, memo: dict[int, Any]) -> GraphModule:
        root = _CodeOnlyModule(copy.deepcopy({k: v for k, v in vars(self).items() if k not in NOT_COPIED}, memo))
        memo[id(self)] = made = type(self).__new__(type(self))
        GraphModule.__init__(made, root, copy.deepcopy(self._graph, memo), type(self).__name__)
        for name, value in vars(root).items():
            if name in ("_parameters", "_buffers", "_modules"):
                for key, member in value.items():
                    vars(made)[name].setdefault(key, member)
            elif name not in vars(made) or name.endswith("_hooks"):
                vars(made)[name] = value
        made.meta = copy.copy(self.meta)
        for name, value in self.meta.get(_USER_PRESERVED_ATTRIBUTES_KEY, {}).items():
            setattr(made, name, value)
        return made

    def print_readable(self, print_output: bool = True, include_stride: bool = False, include_device: bool = False,
                       colored: bool = False, **unused_settings: Any) -> str:  # fmt: skip
        """The code with comments that say where each part comes from, and that of inner graph modules; also printed.

        The other settings have no effect: they are about tensors that nodes of PyTorch's `make_fx` note, and colors.
        """
        text = _readable(self, self._get_name())
        if print_output:
            print(text)
        return text

    def __str__(self) -> str:
        return "\n".join([super().__repr__(), self._code, SEE_MORE])

    @contextlib.contextmanager
    def _set_replace_hook(self, f: Callable[..., Any]) -> Iterator[None]:
        """A block in which `f(old, new, user)` is told of each replaced use of a node."""
        self._replace_hooks.append(f)
        try:
            yield
        finally:
            self._replace_hooks.remove(f)


def _readable(module: GraphModule, name: str) -> str:
    code = module._graph.python_code(root_module="self", verbose=True).src.lstrip("\n")
    inner = [_readable(child, key) for key, child in module.named_children() if isinstance(child, GraphModule)]
    lines = [line for part in (code, *inner) for line in part.split("\n")]
    return "\n".join([f"class {name}(torch.nn.Module):", *(f"    {line}" if line.strip() else "" for line in lines)])


def _say_where(error: BaseException) -> None:
    """Print which line of generated code has raised an error, unless a layer that it calls has. As PyTorch does."""
    frames = traceback.extract_tb(error.__traceback__)
    numbers = [k for k, frame in enumerate(frames) if frame.filename.startswith("<eval_with_key>")]
    if not numbers or getattr(error, "_said_where", False):
        return
    inside, *later = frames[numbers[-1] :]
    if any(frame.filename.startswith(LAYERS) for frame in later):
        return
    lines, at = linecache.getlines(inside.filename), inside.lineno or 1
    shown = "".join(lines[max(at - 3, 0) : at]).rstrip("\n")
    print(f"{WHERE.format(at)}\n{shown}\n~~~ <--- HERE\n{''.join(lines[at : at + 2])}", file=sys.stderr)
    with contextlib.suppress(AttributeError, TypeError):
        error._said_where = True  # type: ignore[attr-defined]
