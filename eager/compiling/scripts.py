"""What `torch.jit` has: the names of TorchScript, by `torch.compile`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Final, NoReturn

from eager.compiling.compiled import compile
from eager.nn.module import Module

__all__ = [
    "Final", "ScriptFunction", "ScriptModule", "annotate", "export", "fork", "freeze", "ignore", "interface",
    "is_scripting", "is_tracing", "load", "onednn_fusion_enabled", "optimize_for_inference", "save", "script",
    "script_if_tracing", "trace", "unused", "wait",
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


class Future:
    """The result of `fork`, which is there already."""

    def __init__(self, result: Any):
        self._result = result

    def wait(self) -> Any:
        """The result."""
        return self._result


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Future:
    """Call `func` at once."""
    return Future(func(*args, **kwargs))


def wait(future: Future) -> Any:
    """The result of `fork`."""
    return future.wait()


def save(m: Any, f: Any, _extra_files: Any = None) -> NoReturn:
    """Raises NotImplementedError: save the `state_dict`, or a program with `graphc.export`."""
    raise NotImplementedError(NO_FILES.format("save"))


def load(f: Any, map_location: Any = None, _extra_files: Any = None) -> NoReturn:
    """Raises NotImplementedError: load a `state_dict` with `torch.load`."""
    raise NotImplementedError(NO_FILES.format("load"))
