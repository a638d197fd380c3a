"""Proxies: values that write down what is done with them, and what they need of a tracer. As `torch.fx.proxy`."""

from __future__ import annotations

import copy
import dataclasses
import dis
import enum
import inspect
import operator
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, cast

import numpy as np

from eager.core.devices import device
from eager.core.dtypes import dtype
from eager.core.layouts import layout, memory_format
from eager.core.overriding import own
from eager.core.tensor import Tensor
from eager.fx import traceback as fx_traceback
from eager.fx.codegen import IN_PLACE, OPERATORS
from eager.fx.graph import Graph
from eager.fx.naming import is_written_in_python, public_of, qualified_name
from eager.fx.node import Argument, Node, Target, map_aggregate
from eager.surface import overriding as asking

__all__ = ["Attribute", "GraphAppendingTracer", "ParameterProxy", "Proxy", "TraceError", "TracerBase"]

base_types = (bool, int, float, str, complex, dtype, Tensor, device, memory_format, layout, np.generic)
PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
NO_CONTROL_FLOW = "symbolically traced variables cannot be used as inputs to control flow"
NO_ITERATION = (
    "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a *args or **kwargs "
    "function argument. See the torch.fx docs on pytorch.org for a more detailed explanation of what types of control "
    "flow can be traced, and check out the Proxy docstring for help troubleshooting Proxy iteration errors"
)
NO_LEN = (
    "'len' is not supported in symbolic tracing by default. If you want this call to be recorded, please call "
    "torch.fx.wrap('len') at module scope"
)
NODE_AS_KEY = "Keys for dictionaries used as an argument cannot contain a Node. Got key: {}"
SEVERAL_TRACERS = "Found multiple different tracers {} while trying to trace operations {}"


class TraceError(ValueError):
    """What cannot be traced."""


class TracerBase:
    """Makes the nodes of `graph`, and proxies for them.

    record_stack_traces: whether nodes note the user's lines; proxy_buffer_attributes: whether buffers that are read
    are proxies, as parameters are; traced_func_name: which method of a module is traced. `check_mutable_operations` and
    `trace_asserts` have no effect.
    """

    graph: Graph
    record_stack_traces = False
    check_mutable_operations = False
    trace_asserts = False
    proxy_buffer_attributes = False
    traced_func_name = "forward"

    module_stack: dict[str, Any]
    node_name_to_scope: dict[str, Any]

    def create_node(self, kind: str, target: Target, args: tuple[Argument, ...], kwargs: dict[str, Argument],
                    name: str | None = None, type_expr: Any = None) -> Node:  # fmt: skip
        """A new node of the graph, with what there is to note of where it comes from."""
        node = self.graph.create_node(kind, target, args, kwargs, name, type_expr)
        noted = fx_traceback.get_current_meta()
        if noted and fx_traceback.has_preserved_node_meta():
            node.meta.update(copy.copy(noted))
        elif "custom" in noted:
            node.meta["custom"] = noted["custom"]
        if getattr(self, "module_stack", None) and kind not in ("placeholder", "output", "get_attr"):
            node.meta["nn_module_stack"] = copy.copy(self.module_stack)
        if self.record_stack_traces and kind not in ("placeholder", "output") and node.stack_trace is None:
            node.stack_trace = _user_lines()
        return node

    def proxy(self, node: Node) -> Proxy:
        """A proxy for a node."""
        return Proxy(node, self)

    def create_proxy(self, kind: str, target: Target, args: tuple[Any, ...], kwargs: dict[str, Any],
                     name: str | None = None, type_expr: Any = None,
                     proxy_factory_fn: Callable[[Node], Proxy] | None = None) -> Any:  # fmt: skip
        """A proxy for a new node, whose arguments may be proxies, tensors, and what else `create_arg` takes."""
        given = self.create_arg(args), self.create_arg(kwargs)
        node = self.create_node(kind, target, *given, name, type_expr)
        return self.proxy(node) if proxy_factory_fn is None else proxy_factory_fn(node)

    def create_arg(self, a: Any) -> Argument:
        """What stands for a value in a graph. NotImplementedError if nothing can."""
        if isinstance(a, Proxy):
            return a.node
        if hasattr(a, "__fx_create_arg__"):
            return a.__fx_create_arg__(self)
        if isinstance(a, tuple) and hasattr(a, "_fields"):
            kind: Any = type(a)
            return kind(*map(self.create_arg, a))
        if isinstance(a, tuple):
            return tuple([self.create_arg(each) for each in a])
        if isinstance(a, list):
            return [self.create_arg(each) for each in a]
        if isinstance(a, dict):
            return {self._key(key): self.create_arg(value) for key, value in a.items()}
        if isinstance(a, slice):
            return slice(*map(self.create_arg, (a.start, a.stop, a.step)))
        if isinstance(a, range):
            return range(*map(self.create_arg, (a.start, a.stop, a.step)))
        if dataclasses.is_dataclass(a) and not isinstance(a, type):
            fields = {each.name: self.create_arg(getattr(a, each.name)) for each in dataclasses.fields(a)}
            return self.create_node("call_function", type(a), (), fields)
        if isinstance(a, (*base_types, enum.Enum)) or a is None or a is ...:
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def _key(self, key: Any) -> Any:
        def refuse(part: Any) -> Any:
            if isinstance(part, Node):
                raise RuntimeError(NODE_AS_KEY.format(key))
            return part

        return map_aggregate(self.create_arg(key), refuse)

    def to_bool(self, obj: Proxy) -> bool:
        """Which way a branch goes that depends on `obj`. TraceError: a graph has no branches."""
        raise TraceError(NO_CONTROL_FLOW)

    def iter(self, obj: Proxy) -> Iterator[Any]:
        """What a loop over `obj` goes through. TraceError, unless it is taken apart into so many names."""
        frame = sys._getframe(2)
        count = _names_unpacked_into(frame)
        if count is None:
            raise TraceError(NO_ITERATION)
        return (self.create_proxy("call_function", operator.getitem, (obj, k), {}) for k in range(count))

    def keys(self, obj: Proxy) -> Any:
        """The keys of `obj`, as a proxy."""
        return Attribute(obj, "keys")()


def _names_unpacked_into(frame: FrameType) -> int | None:
    """How many names the line that runs in `frame` takes a value apart into."""
    code, at = frame.f_code.co_code, frame.f_lasti
    if code[at] != dis.opmap["UNPACK_SEQUENCE"]:
        return None
    return next(each.argval for each in dis.get_instructions(frame.f_code) if each.offset == at)


def _user_lines() -> str:
    """The lines of the user's program that led here, as a traceback has them."""
    lines = [frame for frame in traceback.extract_stack() if not frame.filename.startswith(PACKAGE)]
    return "".join(traceback.format_list(lines)).strip()


class GraphAppendingTracer(TracerBase):
    """A tracer for more nodes of a graph that there is."""

    def __init__(self, graph: Graph):
        super().__init__()
        self.graph = graph
        self.module_stack = {}
        self.node_name_to_scope = {}


class Proxy:
    """Stands for the value of a node while a function is traced: what is done with it becomes nodes.

    Operators, attributes, methods, and functions of torch are written down. A branch or a loop that depends on it is a
    TraceError. `torch.fx.wrap` lets calls of other functions be written down.
    """

    node: Node
    tracer: TracerBase

    def __init__(self, node: Node, tracer: TracerBase | None = None):
        asking.take_part()  # it may have been made by hand, to be used outside of a trace
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Attribute:
        return Attribute(self, k)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self)

    def __setstate__(self, d: dict[str, Any]) -> None:
        vars(self).update(d)

    def __deepcopy__(self, memo: dict[int, Any]) -> Proxy:
        made = type(self).__new__(type(self))
        vars(made).update(vars(self))
        return made

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        return self.tracer.iter(self)

    def __abs__(self) -> Any:
        return self.tracer.create_proxy("call_function", operator.abs, (self,), {})

    def __bool__(self) -> bool:
        return self.tracer.to_bool(self)

    def keys(self) -> Any:
        """The keys, as a proxy."""
        return self.tracer.keys(self)

    def __len__(self) -> int:
        raise RuntimeError(NO_LEN)

    @classmethod
    def __torch_function__(cls, orig_method: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """The node of a call of a function of torch, or of a method of a tensor with a proxy among its arguments."""
        kwargs = {} if kwargs is None else kwargs
        tracer = _tracer_of(args, kwargs)
        if (asking.name_of(orig_method) or "").startswith("torch.Tensor."):
            return tracer.create_proxy("call_method", orig_method.__name__, args, kwargs)
        if public_of(orig_method) in DECOMPOSED:
            return getattr(args[0] if args else kwargs["input"], orig_method.__name__)()
        if is_written_in_python(orig_method):
            args, kwargs = told(orig_method, args, kwargs)
        name = qualified_name(orig_method).rpartition(".")[2]
        return tracer.create_proxy("call_function", orig_method, args, kwargs, tracer.graph._target_to_str(name))


# functions that PyTorch writes as a method of their argument, and of which it tells nobody
DECOMPOSED = {("nn.functional", "sigmoid"), ("nn.functional", "tanh")}


def told(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call as a function that PyTorch writes in Python tells them to `__torch_function__`.

    Those that it needs are told by position, those with a default by name, given or not.
    """
    bound = inspect.signature(own(function)).bind(*args, **kwargs)
    bound.apply_defaults()
    by_position: list[Any] = []
    by_name: dict[str, Any] = {}
    for name, parameter in bound.signature.parameters.items():
        value = bound.arguments[name]
        if parameter.kind is parameter.VAR_POSITIONAL:
            *first, last = value or ((),)  # operands in a list are told one by one
            several = isinstance(last, (list, tuple)) and all(isinstance(each, (Proxy, Tensor)) for each in last)
            by_position += [*first, *last] if several else value
        elif parameter.kind is parameter.VAR_KEYWORD:
            by_name.update(value)
        elif parameter.default is parameter.empty:
            by_position.append(value)
        else:
            by_name[name] = value
    return tuple(by_position), by_name


def _tracer_of(args: Any, kwargs: Any) -> TracerBase:
    """The tracer of the proxies among the arguments. RuntimeError if they have several."""
    found: dict[int, TracerBase] = {}

    def note(value: Any) -> Any:
        if isinstance(value, Proxy):
            found[id(value.tracer)] = value.tracer
        return value

    map_aggregate(args, note)
    map_aggregate(kwargs, note)
    if len(found) > 1:
        raise RuntimeError(SEVERAL_TRACERS.format([*found.values()], args))
    return next(iter(found.values()))


class Attribute(Proxy):
    """The attribute of a proxy: a node if it is used, or no node of its own if it is only called."""

    def __init__(self, root: Proxy, attr: str):
        self.root = root
        self.attr = attr
        self.tracer = root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        """The node that reads the attribute."""
        if self._node is None:
            proxy = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {})
            self._node = proxy.node
        return cast("Node", self._node)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """A proxy of a parameter that knows its shape, which then is a constant of the graph."""

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Any):
        super().__init__(node, tracer)
        self.param = param
        self.name = name

    def __repr__(self) -> str:
        return f"ParameterProxy({self.name})"

    @property
    def shape(self) -> Any:
        """The shape of the parameter."""
        return self.param.shape

    def size(self, *dim: int) -> Any:
        """The size of the parameter."""
        return self.param.size(*dim)

    def dim(self) -> int:
        """The rank of the parameter."""
        return self.param.dim()

    @property
    def ndim(self) -> int:
        """The rank of the parameter."""
        return self.param.ndim

    def numel(self) -> int:
        """How many elements the parameter has."""
        return self.param.numel()

    def nelement(self) -> int:
        """How many elements the parameter has."""
        return self.param.numel()


def _operator(name: str, reflected: bool = False) -> Callable[..., Any]:
    target: Any = operator.truediv if name == "div" else getattr(operator, name)

    def made(*args: Any, **kwargs: Any) -> Any:
        operands = args[::-1] if reflected else args
        return _tracer_of(args, kwargs).create_proxy("call_function", target, operands, kwargs)

    made.__name__ = made.__qualname__ = f"__{'r' if reflected else ''}{name.strip('_')}__"
    made.__doc__ = f"The node of `operator.{name}`."
    return made


magic_methods, inplace_methods = OPERATORS, IN_PLACE  # PyTorch's names of the tables
reflectable_magic_methods = {name: text for name, text in OPERATORS.items() if text.count("{}") == 2}
for _name in OPERATORS:  # after the class, which therefore can be hashed
    setattr(Proxy, f"__{_name.strip('_')}__", _operator(_name))
for _name in "add sub mul floordiv truediv div mod pow lshift rshift and_ or_ xor matmul".split():
    setattr(Proxy, f"__r{_name.strip('_')}__", _operator(_name, reflected=True))
