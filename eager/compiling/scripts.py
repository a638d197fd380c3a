"""What `torch.jit` has: the names of TorchScript, by `torch.compile`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Final, NamedTuple, NoReturn

from eager.compiling.compiled import compile
from eager.compiling.typed import is_a
from eager.nn.module import Module
from eager.processes.futures import Future

__all__ = [
    "Attribute", "Error", "Final", "Future", "ScriptFunction", "ScriptModule", "TracerWarning", "annotate", "export",
    "fork", "freeze", "ignore", "interface", "is_scripting", "is_tracing", "isinstance", "load",
    "onednn_fusion_enabled", "optimize_for_inference", "save", "script", "script_if_tracing", "trace", "trace_module",
    "unused", "wait",
]  # fmt: skip

TABLES = ("_parameters", "_buffers", "_modules", "_non_persistent_buffers_set")
DEPRECATED = "`torch.jit.{}` is deprecated. Please switch to `torch.compile` or `torch.export`."
NO_FILES = (
    "torch.jit.{}: there is no TorchScript here. Save the parameters with torch.save(model.state_dict(), path), or a "
    "program with graphc.export."
)


class ScriptModule(Module):
    """Modules that `script` and `trace` return."""


class RecursiveScriptModule(ScriptModule):
    """A module that `script` has compiled: its parameters, buffers and submodules are those of the original, by name.

    compiled: the result of `torch.compile` for the original, of which it has the attributes, too.
    """

    def __init__(self, original: Module, compiled: Any):
        fields = self.__dict__
        fields.update({name: original.__dict__[name] for name in TABLES})
        fields["_original"], fields["_compiled"] = original, compiled

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._compiled(*args, **kwargs)

    forward = __call__

    @property
    def original_name(self) -> str:
        """The name of the original's class."""
        return type(self._original).__name__

    def __getattr__(self, name: str) -> Any:
        for place in ("_original", "_compiled"):
            found = self.__dict__.get(place)
            if hasattr(found, name):
                return getattr(found, name)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._original, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._original, name)

    def extra_repr(self) -> str:
        return f"original_name={self.original_name}"


class TopLevelTracedModule(RecursiveScriptModule):
    """A module that `trace` has compiled."""

    def _get_name(self) -> str:
        return self.original_name


class ScriptFunction:
    """Functions in TorchScript. There are none: for `isinstance`."""


def _compiled(obj: Any, kind: type[RecursiveScriptModule]) -> Any:
    """`obj` under `torch.compile`; a module as one of a kind."""
    compiled = compile(obj, fullgraph=True)
    return kind(obj, compiled) if isinstance(obj, Module) else compiled


def script(obj: Any, *unused: Any, **unused_settings: Any) -> Any:
    """`torch.compile(obj)` with `fullgraph`; warns. A class is left as it is."""
    warnings.warn(DEPRECATED.format("script"), DeprecationWarning, stacklevel=2)
    return obj if isinstance(obj, type) else _compiled(obj, RecursiveScriptModule)


def trace(func: Any, example_inputs: Any = None, *unused: Any, example_kwarg_inputs: Any = None,
          **unused_settings: Any) -> Any:  # fmt: skip
    """`torch.compile(func)` with `fullgraph`, compiled for the example; warns.

    Other inputs than the example's are compiled when they come: nothing of the example stays in the program.
    """
    warnings.warn(DEPRECATED.format("trace"), DeprecationWarning, stacklevel=2)
    compiled = _compiled(func, TopLevelTracedModule)
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


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Future:
    """Call `func` at once."""
    future: Future = Future()
    future.set_result(func(*args, **kwargs))
    return future


def wait(future: Future) -> Any:
    """The result of `fork`."""
    return future.wait()


def save(m: Any, f: Any, _extra_files: Any = None) -> NoReturn:
    """Raises NotImplementedError: save the `state_dict`, or a program with `graphc.export`."""
    raise NotImplementedError(NO_FILES.format("save"))


def load(f: Any, map_location: Any = None, _extra_files: Any = None) -> NoReturn:
    """Raises NotImplementedError: load a `state_dict` with `torch.load`."""
    raise NotImplementedError(NO_FILES.format("load"))
