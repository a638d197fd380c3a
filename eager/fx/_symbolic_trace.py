"""symbolic_trace and wrap: a function becomes a graph. As `torch.fx._symbolic_trace`."""

from __future__ import annotations

import functools as functools
import inspect
from collections.abc import Callable
from types import FunctionType as FunctionType
from typing import Any

from eager.fx.graph import Graph as Graph
from eager.fx.graph_module import GraphModule
from eager.fx.patching import Patcher, wrapped_functions, wrapped_methods
from eager.fx.proxy import Proxy as Proxy
from eager.fx.tracer import (
    PH,
    PHBase,
    PHWithMeta,
    ProxyableClassMeta,
    Tracer,
    _assert_is_none,
    is_fx_symbolic_tracing,
    is_fx_tracing,
)  # fmt: skip
from eager.nn.module import Module

__all__ = [
    "PH", "PHBase", "PHWithMeta", "ProxyableClassMeta", "Tracer", "_assert_is_none", "is_fx_symbolic_tracing",
    "is_fx_tracing", "symbolic_trace", "wrap",
]  # fmt: skip

AT_TOP = "wrap must be called at the top level of a module"
WRONG_WRAP = "Unsupported type for global function! Must be either a callable or string name"


def wrap(fn_or_name: str | Callable[..., Any]) -> Any:
    """Let calls of a global function with proxies be written down as one node, instead of traced through.

    To be called at the top of the module that uses the function, with it or its name; also as a decorator there.
    """
    if not callable(fn_or_name) and not isinstance(fn_or_name, str):
        raise RuntimeError(WRONG_WRAP)
    name = fn_or_name if isinstance(fn_or_name, str) else fn_or_name.__name__
    frame = inspect.currentframe()
    frame = None if frame is None else frame.f_back
    if frame is None or frame.f_code.co_name != "<module>":
        raise NotImplementedError(AT_TOP)
    wrapped_functions[id(frame.f_globals), name] = frame.f_globals
    return fn_or_name


def symbolic_trace(root: Module | Callable[..., Any], concrete_args: Any = None) -> GraphModule:
    """A module that runs the graph of a module, or of a function, and whose `graph` can be changed.

    concrete_args: values of arguments, by name, that are constants of the graph.
    """
    tracer = Tracer()
    graph = tracer.trace(root, concrete_args)
    name = root._get_name() if isinstance(root, Module) else root.__name__
    return GraphModule(tracer.root, graph, name)


# what libraries that trace in their own way take from here, beside what is imported as itself above
_wrapped_fns_to_patch, _wrapped_methods_to_patch = wrapped_functions, wrapped_methods
_orig_module_call, _orig_module_getattr = Module.__call__, Module.__getattr__
_Patcher, _patch_wrapped_functions, _autowrap_check = Patcher, Patcher.patch_wrapped, Patcher.autowrap


class ScriptObject:
    """Objects of TorchScript. There are none: for `isinstance`."""
