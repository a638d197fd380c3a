"""Tracer: calls a function with proxies, and writes down what happens."""

from __future__ import annotations

import collections
import copy
import functools
import inspect
import math
import types
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from eager.core import homes, pytree
from eager.core.parameter import Parameter
from eager.core.tensor import Tensor
from eager.fx.codegen import PyTreeCodeGen, PyTreeInfo
from eager.fx.graph import Graph
from eager.fx.node import Argument, has_side_effect
from eager.fx.patching import Patcher
from eager.fx.proxy import ParameterProxy, Proxy, TracerBase, base_types
from eager.nn.module import Module
from eager.nn.modules.container import Sequential
from eager.surface import overriding as asking
from eager.surface.errors import _assert

WRONG_COUNT = "Tracing expected {} arguments but got {} concrete arguments"
NO_ASSERTION = (
    "Was not able to add assertion to guarantee correct input {} to specialized function. It is up to the user to make "
    "sure that your inputs match the inputs you specialized the function with."
)
NOT_A_SUBMODULE = "module is not installed as a submodule"
NOT_A_PARAMETER = "parameter is not a member of this module"
SPECIALIZED = "{} has been specialized to have value {} but got another value"
VARIOUS = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS

_tracing: list[Any] = []  # the tracers at work
_proxyable_classes: dict[type, None] = {}


def is_fx_tracing() -> bool:
    """Whether a function is being traced."""
    return bool(_tracing)


is_fx_symbolic_tracing = is_fx_tracing


class ProxyableClassMeta(type):
    """The type of classes whose constructor is written down if it is called with proxies."""

    def __init__(cls, name: str, bases: Any, attrs: Any) -> None:
        _proxyable_classes.setdefault(cls)
        super().__init__(name, bases, attrs)

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        made: Any = object.__new__(cls)
        if not is_fx_tracing():
            made.__init__(*args, **kwargs)
            return made
        found: list[Proxy] = [each for each in pytree.flatten((args, kwargs))[0] if isinstance(each, Proxy)]
        if found:
            return found[0].tracer.create_proxy("call_function", cls, args, kwargs)
        made.__init__(*args, **kwargs)
        return made


class PHBase:
    """A place in `concrete_args` that stays an argument."""

    def __repr__(self) -> str:
        return "PH"


PH = PHBase()


class PHWithMeta(PHBase):
    """A place that stays an argument, whose node is given `ph_key`."""

    def __init__(self, ph_key: str | None = None):
        self.ph_key = ph_key


@has_side_effect
def _assert_is_none(value: Any, msg: str) -> None:
    """AssertionError with `msg` unless `value` is None."""
    if value is not None:
        raise AssertionError(msg)


class Tracer(TracerBase):
    """Traces functions and modules: calls them with proxies, and writes down what happens.

    autowrap_modules: calls of whose functions are written down, wherever globals of the function name them;
    autowrap_functions: more such functions; param_shapes_constant: whether shapes of parameters are constants. A
    subclass says by `is_leaf_module` which modules are one node, and by its other methods what nodes there are.
    """

    def __init__(self, autowrap_modules: tuple[types.ModuleType, ...] = (math,),
                 autowrap_functions: tuple[Callable[..., Any], ...] = (),
                 param_shapes_constant: bool = False):  # fmt: skip
        super().__init__()
        self._autowrap_function_ids = {
            id(value) for module in autowrap_modules for name, value in vars(module).items()
            if name[0] != "_" and callable(value)
        } | {id(function) for function in autowrap_functions}  # fmt: skip
        self._autowrap_search: list[types.ModuleType] = list(autowrap_modules)
        self.param_shapes_constant = param_shapes_constant
        self.submodule_paths: dict[Module, str] | None = None
        self.root_module_name = ""
        self.module_stack: Any = collections.OrderedDict()
        self.num_calls: dict[str, int] = {}
        self.node_name_to_scope: dict[str, Any] = {}
        self._fresh: collections.Counter[str] = collections.Counter()

    def get_fresh_qualname(self, prefix: str) -> str:
        """A name, beginning with `prefix`, that the root has not."""
        while hasattr(self.root, name := f"{prefix}{self._fresh[prefix]}"):
            self._fresh[prefix] += 1
        self._fresh[prefix] += 1
        return name

    def create_arg(self, a: Any) -> Argument:
        """What stands for a value in the graph: of parameters and tensors, nodes that read them."""
        if isinstance(a, Parameter):
            for name, parameter in self.root.named_parameters():
                if a is parameter:
                    return self.create_node("get_attr", name, (), {})
            raise NameError(NOT_A_PARAMETER)
        if isinstance(a, Tensor):
            return self.create_node("get_attr", self._path_of_tensor(a), (), {})
        if type(a) in _proxyable_classes:
            name = self.get_fresh_qualname(f"_{type(a).__name__}_constant_")
            setattr(self.root, name, a)
            return self.create_node("get_attr", name, (), {})
        return super().create_arg(a)

    def _path_of_tensor(self, a: Tensor) -> str:
        for name, buffer in self.root.named_buffers():
            if a is buffer:
                return name
        path = self.tensor_attrs.get(a)
        if path is None:
            path = self.get_fresh_qualname("_tensor_constant")
            self.tensor_attrs[a] = path
            setattr(self.root, path, a)
        return path

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        """Whether a call of `m` is one node, as calls of the layers of this package are; else it is traced through."""
        ours = m.__module__.startswith(("eager.nn", "torch.nn", "torch.ao.nn"))
        return ours and not isinstance(m, Sequential)

    def path_of_module(self, mod: Module) -> str:
        """The dotted path of a submodule of the root. NameError if it is none."""
        if self.submodule_paths:
            found = self.submodule_paths.get(mod)
        else:
            found = next((name for name, each in self.root.named_modules() if each is mod), None)
        if found is None:
            raise NameError(NOT_A_SUBMODULE)
        return found

    def call_module(self, m: Module, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What a call of the module `m` gives: a proxy for a leaf, else the result of `forward`."""
        path = self.path_of_module(m)
        with self._inside(path, m):
            if self.is_leaf_module(m, path):
                return self.create_proxy("call_module", path, args, kwargs)
            return forward(*args, **kwargs)

    @contextmanager
    def _inside(self, path: str, m: Module) -> Iterator[None]:
        """A block whose nodes note that they are made in the module `m`."""
        count = self.num_calls.get(path, 0)
        self.num_calls[path] = count + 1
        key = f"{path}@{count}" if count else path
        self.module_stack[key] = (path, type(m))
        try:
            yield
        finally:
            self.module_stack.pop(key, None)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: dict[str, Any]) -> Any:
        """What reading an attribute of a module gives: a proxy for a parameter.

        parameter_proxy_cache: path -> the proxy that there is.
        """
        if isinstance(attr_val, Parameter):
            members = self.root.named_parameters()
        elif self.proxy_buffer_attributes and isinstance(attr_val, Tensor):
            members = self.root.named_buffers()
        else:
            return attr_val
        for name, member in members:
            if member is attr_val:
                if name not in parameter_proxy_cache:
                    settings: dict[str, Any] = {}
                    if self.param_shapes_constant:
                        settings["proxy_factory_fn"] = functools.partial(self._parameter_proxy, name, attr_val)
                    proxy = self.create_proxy("get_attr", name, (), {}, **settings)
                    parameter_proxy_cache[name] = proxy
                return parameter_proxy_cache[name]
        return attr_val

    def _parameter_proxy(self, name: str, value: Any, node: Any) -> Proxy:
        return ParameterProxy(self, node, name, value)

    def trace(self, root: Module | Callable[..., Any], concrete_args: Any = None) -> Graph:
        """The graph of a module, or of a function.

        concrete_args: values of arguments, by name, that are constants of the graph; `PH` in them stays an argument.
        """
        with asking.asked():
            return self._traced(root, concrete_args)

    def _traced(self, root: Module | Callable[..., Any], concrete_args: Any) -> Graph:
        if isinstance(root, Module):
            self.root: Module = root
            if not hasattr(type(root), self.traced_func_name):
                name = type(root).__name__
                raise AssertionError(f"traced_func_name={self.traced_func_name} doesn't exist in {name}")
            function: Any = getattr(type(root), self.traced_func_name)
            self.root_module_name = root._get_name()
            self.submodule_paths = {module: name for name, module in root.named_modules()}
        else:
            self.root, function = Module(), root
        cls = type(self) if "<locals>" not in type(self).__qualname__ else None
        self.graph = Graph(tracer_cls=cls)
        self.tensor_attrs = _tensors_of(self.root)
        if not isinstance(function, (types.FunctionType, asking.Public)):
            raise AssertionError(f"Expected FunctionType, got {type(function)}")
        returns = _annotations(function).get("return")
        scope = inspect.unwrap(function).__globals__ if isinstance(function, types.FunctionType) else {}
        function, args = self.create_args_for_root(function, isinstance(root, Module), concrete_args)
        with Patcher() as patcher:
            self._patch(patcher, scope)
            _tracing.append(self)
            try:
                result = function(*args)
                self.create_node("output", "output", (self.create_arg(result),), {}, type_expr=returns)
            finally:
                _tracing.pop()
                self.submodule_paths = None
        return self.graph

    def _patch(self, patcher: Patcher, scope: dict[str, Any]) -> None:
        proxies: dict[str, Any] = {}
        read, call = Module.__getattr__, Module.__call__

        def module_getattr(mod: Module, attr: str) -> Any:
            return self.getattr(attr, read(mod, attr), proxies)

        def module_call(mod: Module, *args: Any, **kwargs: Any) -> Any:
            def forward(*args: Any, **kwargs: Any) -> Any:
                return call(mod, *args, **kwargs)

            patcher.autowrap(getattr(getattr(mod, "forward", mod), "__globals__", {}), self._autowrap_function_ids)
            return self.call_module(mod, forward, args, kwargs)

        patcher.patch_method(Module, "__getattr__", module_getattr)
        patcher.patch_method(Module, "__call__", module_call)
        patcher.patch_wrapped()
        for each in (scope, *map(vars, self._autowrap_search)):
            patcher.autowrap(each, self._autowrap_function_ids)

    def create_args_for_root(self, root_fn: Callable[..., Any], is_module: bool,
                             concrete_args: Any = None) -> tuple[Any, list[Any]]:  # fmt: skip
        """The function to call, and its arguments: the root, if it is a module, and proxies."""
        function = inspect.unwrap(root_fn)
        code, signature = function.__code__, inspect.signature(function)
        total = code.co_argcount + code.co_kwonlyargcount
        names = list(code.co_varnames)
        if code.co_argcount == 0 and is_module and not code.co_flags & inspect.CO_VARARGS:
            raise RuntimeError("``self`` argument cannot be part of *args expansion!")
        first = 1 if is_module else 0
        args: list[Any] = [self.root] if is_module else []
        if isinstance(concrete_args, tuple):
            if len(names[first:total]) != len(concrete_args):
                raise RuntimeError(WRONG_COUNT.format(len(names[first:total]), len(concrete_args)))
            concrete_args = dict(zip(names[first:total], concrete_args, strict=True))
        at: Any = functools.partial(self._proxy_placeholder, concrete_args=concrete_args or {}, signature=signature,
                                    annotations=_annotations(function))  # fmt: skip
        args += [at(name) for name in names[first:total]]
        if code.co_kwonlyargcount or code.co_flags & VARIOUS:
            various = names[total:]
            if code.co_flags & inspect.CO_VARARGS:
                args.append(at(f"*{various.pop(0)}"))
            if code.co_flags & inspect.CO_VARKEYWORDS:
                args.append(at(f"**{various.pop(0)}"))
            function = _all_by_position(function)
        if concrete_args is None:
            return function, args
        flat, spec = pytree.flatten(tuple(args))
        if all(child.is_leaf() for child in spec.children()):
            return function, args
        info = PyTreeInfo(names[:total], spec, None)
        self.graph._codegen = PyTreeCodeGen(info)

        def flattened(*leaves: Any) -> Any:
            leaves_out, out_spec = pytree.flatten(function(*spec.unflatten(leaves)))
            self.graph._codegen = PyTreeCodeGen(info._replace(out_spec=out_spec))
            return leaves_out

        return flattened, flat

    def _proxy_placeholder(self, name: str, concrete_args: Mapping[str, Any], signature: inspect.Signature,
                           annotations: Mapping[str, Any]) -> Any:  # fmt: skip
        plain = name.lstrip("*")
        default = () if name[0] == "*" else _default(signature, name)
        if name not in concrete_args:
            return self.create_proxy("placeholder", name, default, {}, type_expr=annotations.get(plain))
        count = 0

        def place(value: Any) -> Any:
            nonlocal count
            count += 1
            made = self.create_proxy("placeholder", f"{name}_{count}", default, {})
            if isinstance(value, PHBase):
                if isinstance(value, PHWithMeta):
                    vars(made.node).update(vars(value))
                return made
            text = SPECIALIZED.format(name, value)
            if value is None:
                self.create_proxy("call_function", _assert_is_none, (made, text), {})
            elif isinstance(value, base_types) and not isinstance(value, Tensor):
                _assert(made == value, text)
            else:
                warnings.warn(NO_ASSERTION.format(name), stacklevel=2)
            return value

        return pytree.tree_map(place, concrete_args[name])

    def __deepcopy__(self, memo: dict[int, Any]) -> Tracer:
        made = type(self).__new__(type(self))
        for name, value in vars(self).items():
            setattr(made, name, value if name == "_autowrap_search" else copy.deepcopy(value, memo))
        return made


def _annotations(function: Any) -> Mapping[str, Any]:
    """The types that the user has written; those of this package are texts, and other ones than PyTorch's."""
    return {} if homes.is_ours(function.__module__) else getattr(function, "__annotations__", {})


def _default(signature: inspect.Signature, name: str) -> tuple[Any, ...]:
    default = signature.parameters[name].default
    return () if default is inspect.Parameter.empty else (default,)


def _all_by_position(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, taking each of its arguments by position: also `*args`, and `**kwargs`, as one proxy each."""
    code = function.__code__
    flags = code.co_flags & ~VARIOUS
    total = code.co_argcount + code.co_kwonlyargcount
    various = bool(code.co_flags & inspect.CO_VARARGS) + bool(code.co_flags & inspect.CO_VARKEYWORDS)
    names = code.co_varnames
    changed = code.replace(co_argcount=total + various, co_kwonlyargcount=0, co_flags=flags, co_varnames=names)
    scope = function.__globals__
    return types.FunctionType(changed, scope, function.__name__, function.__defaults__, function.__closure__)


def _tensors_of(root: Module) -> dict[Any, str]:
    """Tensor that is a plain attribute of a module -> its path."""
    return {
        value: f"{path}.{name}" if path else name
        for path, module in root.named_modules()
        for name, value in vars(module).items()
        if isinstance(value, Tensor)
    }
