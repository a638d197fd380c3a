"""`torch.compile`: functions and modules that are compiled when they are called, and what else asks about that."""

from __future__ import annotations

import functools
import warnings
import weakref
from collections.abc import Callable, Mapping
from typing import Any

from eager.core.interpreter import current_interpreter
from eager.nn.module import Module
from graphc.errors import CaptureError, RetraceError

__all__ = [
    "allow_in_graph", "assume_constant_result", "compile", "cudagraph_mark_step_begin", "disable", "is_compiling",
    "is_dynamo_compiling", "is_exporting", "list_backends", "reset",
]  # fmt: skip

# PyTorch's backend -> that of graphc.compile; None runs the function as it is
BACKENDS: dict[str, str | None] = {
    "inductor": "jax", "jax": "jax", "openxla": "jax", "numpy": "numpy", "auto": "auto", "aot_eager": "numpy",
    "eager": None,
}  # fmt: skip
MODES = ("default", "lite", "reduce-overhead", "max-autotune-no-cudagraphs", "max-autotune")
OPTIONS = (  # of graphc.compile
    "device", "level", "strict", "without", "mesh", "in_shardings", "out_shardings", "state_shardings",
)  # fmt: skip
BOTH = "Either mode or options can be specified, but both can't be specified at the same time."
NO_FX = (
    "torch.compile(backend=...) takes the name of a backend here, got {}: there is no FX graph to give to a function. "
    "Remedy: graphc.trace gives the graph of a function, graphc.optimize and graphc.lower compile it."
)
FELL_BACK = (
    "torch.compile runs {name} eagerly from now on: it cannot be captured as one program. Use fullgraph=True for an "
    "error in its place. {error}"
)
DECOMPOSED = "make_fx(decomposition_table=...): the ops are those of docs/ops.md. Remedy: change nodes of the module"
DISABLED = "{} is under torch.compiler.disable, and is called by a function that is being compiled{}"

_compiled: weakref.WeakSet[Optimized] = weakref.WeakSet()


class InvalidBackend(RuntimeError):
    """A backend that does not exist. As `torch._dynamo.exc.InvalidBackend`."""


class Optimized:
    """A function under `torch.compile`; attributes are those of `graphc.compile`'s result."""

    def __init__(self, fn: Callable[..., Any], options: Mapping[str, Any], fullgraph: bool):
        self._fn, self._options, self._fullgraph = fn, options, fullgraph
        self.reset()
        functools.update_wrapper(self, fn, updated=())
        _compiled.add(self)

    def reset(self) -> None:
        """Forget all programs."""
        from graphc import compile

        # of a method that is bound already: a module is not wrapped twice
        self._program = compile(self._fn.__call__ if isinstance(self._fn, Module) else self._fn, **self._options)
        self._falls_back = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._falls_back:
            return self._fn(*args, **kwargs)
        try:
            return self._program(*args, **kwargs)
        except (CaptureError, RetraceError) as error:
            if self._fullgraph or is_compiling():
                raise
            warnings.warn(FELL_BACK.format(name=self.__name__, error=error), UserWarning, stacklevel=2)
            self._falls_back = True
        return self._fn(*args, **kwargs)

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    def __getattr__(self, name: str) -> Any:
        if name == "_program":
            raise AttributeError(name)
        return getattr(self._program, name)

    def __deepcopy__(self, memo: dict[int, Any]) -> Optimized:
        from copy import deepcopy

        return Optimized(deepcopy(self._fn, memo), self._options, self._fullgraph)

    def __reduce__(self) -> Any:
        return Optimized, (self._fn, self._options, self._fullgraph)

    def __repr__(self) -> str:
        return repr(self._fn)


def compile(
    model: Any = None, *, fullgraph: bool = False, dynamic: bool | None = None, backend: Any = None,
    mode: str | None = None, options: dict[str, Any] | None = None, name: str | None = None, disable: bool = False,
    recompile_limit: int | None = None, isolate_recompiles: bool = False, shapes_spec: Any = None,
) -> Any:  # fmt: skip
    """A function or module that does what `model` does, by compiled programs. As `torch.compile`; also a decorator.

    fullgraph  True: what cannot be captured as one program raises CaptureError; else it warns, and runs eagerly
    dynamic    whether sizes are symbols; see `graphc.compile`, also for what is guarded
    backend    "inductor" (XLA), "aot_eager" or "numpy" (NumPy without XLA), "auto", "eager" (nothing is compiled)
    mode       any of PyTorch's; XLA has no such choice
    options    those of `graphc.compile`: device, level, strict, without, mesh and shardings

    `recompile_limit` bounds how often a function is traced. InvalidBackend, RuntimeError for unknown names.
    """
    if model is None:
        return functools.partial(
            compile, fullgraph=fullgraph, dynamic=dynamic, backend=backend, mode=mode, options=options, name=name,
            disable=disable, recompile_limit=recompile_limit,
        )  # fmt: skip
    if mode is not None and options is not None:
        raise RuntimeError(BOTH)
    if mode is not None and mode not in MODES:
        raise RuntimeError(f"Unrecognized mode={mode}, should be one of: {', '.join(MODES)}")
    for option in options or ():
        if option not in OPTIONS:
            raise RuntimeError(f"Unexpected optimization option {option}, known options are {list(OPTIONS)}")
    if backend is not None and not isinstance(backend, str):
        raise TypeError(NO_FX.format(backend))
    wanted = "inductor" if backend is None else backend
    if wanted not in BACKENDS:
        raise InvalidBackend(
            f"Invalid backend: {wanted!r}, see `torch._dynamo.list_backends()` for available backends."
        )
    if not callable(model):
        raise AssertionError(f"A callable function is expected, but {type(model)} is provided.")
    if disable or BACKENDS[wanted] is None:
        return model
    settings = {"dynamic": dynamic, "max_retraces": recompile_limit, "backend": BACKENDS[wanted], **(options or {})}
    made = Optimized(model, settings, fullgraph)
    if not isinstance(model, Module):
        return made
    from graphc.compiling.module import CompiledModule

    return CompiledModule(model, made)


def is_compiling() -> bool:
    """Whether a function is being captured, by `torch.compile` or `graphc`: code that must not be, can ask."""
    return current_interpreter().capturing


is_dynamo_compiling = is_compiling


def is_exporting() -> bool:
    """False: `graphc.export` exports what has been captured."""
    return False


def disable(fn: Any = None, recursive: bool = True, *, reason: str | None = None) -> Any:
    """Keep `fn` out of compiled programs: a function that calls it runs eagerly, or is an error with `fullgraph`."""
    if fn is None:
        return functools.partial(disable, recursive=recursive, reason=reason)

    @functools.wraps(fn)
    def disabled(*args: Any, **kwargs: Any) -> Any:
        if is_compiling():
            raise CaptureError(DISABLED.format(getattr(fn, "__qualname__", fn), f": {reason}" if reason else "."))
        return fn(*args, **kwargs)

    return disabled


def allow_in_graph(fn: Any) -> Any:
    """`fn`: whatever runs on tensors can be part of a program. AssertionError unless it is callable."""
    if isinstance(fn, (list, tuple)):
        return [allow_in_graph(each) for each in fn]
    if not callable(fn):
        raise AssertionError("allow_in_graph expects a callable")
    return fn


def assume_constant_result(fn: Any) -> Any:
    """`fn`: what it returns besides tensors is guarded, and so a constant of the program."""
    return fn


def cudagraph_mark_step_begin() -> None:
    """Does nothing: there are no CUDA graphs."""


def list_backends(exclude_tags: Any = ("debug", "experimental")) -> list[str]:
    """The names that `torch.compile(backend=...)` takes."""
    return sorted(BACKENDS)


def reset() -> None:
    """Forget all programs that `torch.compile` has made; functions are traced anew when they are called next."""
    for each in list(_compiled):
        each.reset()


def make_fx(
    f: Callable[..., Any], decomposition_table: Any = None, tracing_mode: str = "real", **settings: Any
) -> Callable[..., Any]:
    """A function that gives, for example arguments, the `GraphModule` of the ops that `f` does with them.

    It traces by `graphc.trace`: gradients and `vmap` are ops of the graph, sizes are numbers, and what a graph cannot
    express is a CaptureError. `tracing_mode` and other settings of PyTorch's have no effect. NotImplementedError for a
    `decomposition_table`: ops are those of docs/ops.md, which are not PyTorch's.

    >>> import eager as torch
    >>> make_fx(torch.func.grad(lambda x: x.sin().sum()))(torch.ones(2))(torch.zeros(2))
    tensor([1., 1.])
    """
    if decomposition_table:
        raise NotImplementedError(DECOMPOSED)

    def written(*args: Any) -> Any:
        from graphc.capture.as_fx import graph_module

        return graph_module(f, args)

    return written
