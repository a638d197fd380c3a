"""What `torch.jit` has: the names of TorchScript, by `torch.compile`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Final, NamedTuple, NoReturn

from eager.compiling.compiled import compile
from eager.compiling.typed import is_a
from eager.core.futures import Future
from eager.nn.module import Module

__all__ = [
    "Attribute", "Error", "Final", "Future", "ScriptFunction", "ScriptModule", "TracerWarning", "annotate", "export",
    "fork", "freeze", "ignore", "interface", "is_scripting", "is_tracing", "isinstance", "load",
    "onednn_fusion_enabled", "optimize_for_inference", "save", "script", "script_if_tracing", "trace", "trace_module",
    "unused", "wait",
]  # fmt: skip

DEPRECATED = "`torch.jit.{}` is deprecated. Please switch to `torch.compile` or `torch.export`."
NO_FILES = (
    "torch.jit.{}: there is no TorchScript here. Save the parameters with torch.save(model.state_dict(), path), or a "
    "program with graphc.export."
)


class ScriptModule(Module):
    """Modules in TorchScript. There are none: for `isinstance`."""


class ScriptFunction:
    """Functions in TorchScript. There are none: for `isinstance`."""


def script(obj: Any, *unused: Any, **unused_settings: Any) -> Any:
    """`torch.compile(obj)` with `fullgraph`; warns. A class is left as it is."""
    warnings.warn(DEPRECATED.format("script"), DeprecationWarning, stacklevel=2)
    return obj if isinstance(obj, type) else compile(obj, fullgraph=True)


def trace(func: Any, example_inputs: Any = None, *unused: Any, example_kwarg_inputs: Any = None,
          **unused_settings: Any) -> Any:  # fmt: skip
    """`torch.compile(func)` with `fullgraph`, compiled for the example; warns.

    Other inputs than the example's are compiled when they come: nothing of the example stays in the program.
    """
    warnings.warn(DEPRECATED.format("trace"), DeprecationWarning, stacklevel=2)
    compiled = compile(func, fullgraph=True)
    given = example_inputs if isinstance(example_inputs, (tuple, list)) else (example_inputs,)
    compiled(*(() if example_inputs is None else given), **(example_kwarg_inputs or {}))
    return compiled


def trace_module(mod: Module, inputs: dict[str, Any], *unused: Any, **unused_settings: Any) -> Any:
    """The module, with the methods that `inputs` has inputs of as `trace` gives them; warns."""
    for name, given in inputs.items():
        setattr(mod, name, trace(getattr(mod, name), given))
    return mod


class TracerWarning(Warning):
    """PyTorch's tracer warns of what it leaves constant. Nothing is left so here."""


class Error(Exception):
    """What PyTorch raises while a program in TorchScript runs."""


class Attribute(NamedTuple):
    """A value and its type, for TorchScript."""

    value: Any
    type: Any


def isinstance(obj: Any, target_type: Any) -> bool:
    """Whether `obj` is of a type, with the types of what it holds: `List[int]`, `Dict[str, torch.Tensor]`."""
    return is_a(obj, target_type)


def unused(fn: Callable[..., Any]) -> Callable[..., Any]:
    """`fn`: only what is called is captured."""
    return fn


export = interface = script_if_tracing = unused


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Decorator, also with arguments: the function as it is, since only what is called is captured."""
    return drop if callable(drop) else unused


def is_scripting() -> bool:
    """False: there is no TorchScript; `torch.compiler.is_compiling()` asks about capture."""
    return False


is_tracing = onednn_fusion_enabled = is_scripting


def annotate(the_type: Any, the_value: Any) -> Any:
    """`the_value`: types are Python's."""
    return the_value


def freeze(mod: Any, *unused: Any, **unused_settings: Any) -> Any:
    """`mod`: what a program has captured is read anew at each call."""
    return mod


optimize_for_inference = freeze


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Future[Any]:
    """Call `func` at once."""
    future: Future[Any] = Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future: Future[Any]) -> Any:
    """The result of `fork`."""
    return future.wait()


def save(m: Any, f: Any, _extra_files: Any = None) -> NoReturn:
    """Raises NotImplementedError: save the `state_dict`, or a program with `graphc.export`."""
    raise NotImplementedError(NO_FILES.format("save"))


def load(f: Any, map_location: Any = None, _extra_files: Any = None) -> NoReturn:
    """Raises NotImplementedError: load a `state_dict` with `torch.load`."""
    raise NotImplementedError(NO_FILES.format("load"))
