"""`graphc.compile`: a function that is traced at its first call with each signature, and runs as one XLA program."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable
from typing import Any, final

import numpy as np

from eager.state import current_interpreter, grad_enabled
from eager.storage import is_plain
from eager.tensor import Parameter, Tensor
from graphc.capture import Guard, Program, capture
from graphc.capture.environment import guards_of
from graphc.run import Runner

LARGEST = 64  # signatures kept for one function; the oldest goes first


@final
class Compiled:
    """What `graphc.compile` returns. Call it like the function.

    `graph` is the graph of the latest call's program, `explain()` says what was compiled and why.
    """

    def __init__(self, fn: Callable[..., Any], device: str | None, strict: bool):
        self._fn = fn
        self.__name__: str = getattr(fn, "__name__", type(fn).__name__)
        self._device = device
        self._strict = strict
        self._entries: dict[Any, list[_Entry]] = {}
        self._lock = threading.RLock()
        self._latest: _Entry | None = None
        self._kept: list[Any] = []  # objects that keys name by id
        functools.update_wrapper(self, fn, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if current_interpreter() is not None:
            return self._fn(*args, **kwargs)  # inside another trace: part of that graph
        key: list[Any] = [grad_enabled()]
        tensors: list[Tensor] = []
        for a in args:
            c = a.__class__
            if c is Tensor or c is Parameter:
                d = a._d
                key += (d.shape, d.dtype if d.__class__ is np.ndarray else d.numpy_dtype, a._n is None)
                tensors.append(a)
            else:
                self._add_key(a, key, tensors)
        if kwargs:
            for name in kwargs:
                key.append(name)
                self._add_key(kwargs[name], key, tensors)
        signature = tuple(key)
        entries = self._entries.get(signature)
        if entries is not None:
            for entry in entries:
                if entry.holds(tensors):
                    self._latest = entry
                    return entry.runner(tensors)
        return self._compile(signature, tensors, args, kwargs).runner(tensors)

    def _add_key(self, value: Any, key: list[Any], tensors: list[Tensor]) -> None:
        """Append to `key` what tells apart arguments that need different programs."""
        if isinstance(value, Tensor):
            key += (value._d.shape, value._dtype(), value._n is None)
            tensors.append(value)
        elif isinstance(value, (tuple, list)):
            key += (type(value), len(value))
            for item in value:
                self._add_key(item, key, tensors)
        elif isinstance(value, dict):
            key += (dict, len(value))
            for name, item in value.items():
                key.append(name)
                self._add_key(item, key, tensors)
        elif isinstance(value, (bool, int, float, complex, str, bytes, type(None))):
            key += (type(value), value)
        else:
            key += (type(value), id(value))
            if not any(value is kept for kept in self._kept):
                self._kept.append(value)

    def _compile(self, signature: Any, tensors: list[Tensor], args: Any, kwargs: Any) -> _Entry:
        with self._lock:
            start = time.perf_counter()
            program = capture(self._fn, args, kwargs)
            guards = (*program.guards, *guards_of(self._fn))
            entry = _Entry(program, guards, Runner(program, tensors, self._device, self._strict))
            entry.seconds = time.perf_counter() - start
            entry.reason = self._reason(signature)
            self._entries.setdefault(signature, []).insert(0, entry)
            while len(self._entries) > LARGEST:
                del self._entries[next(iter(self._entries))]
            del self._entries[signature][LARGEST:]
            self._latest = entry
            return entry

    def _reason(self, signature: Any) -> str:
        if not self._entries:
            return "first call"
        known = self._entries.get(signature)
        if not known:
            return "new shapes, dtypes or values of arguments"
        return "; ".join(known[0].broken()) or "a guard changed"

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else functools.partial(self, instance)

    @property
    def graph(self) -> Any:
        """The optimized graph of the latest call. Raises RuntimeError before the first."""
        if self._latest is None:
            raise RuntimeError(f"{self.__name__} has not been called yet: it is traced at its first call")
        return self._latest.runner.forward.graph

    @property
    def source(self) -> str:
        """The JAX program of the latest call."""
        self.graph  # noqa: B018  (raises before the first call)
        assert self._latest is not None
        return self._latest.runner.forward.source

    def explain(self) -> str:
        """Every program: its signature, why it was made, its size, and the time that tracing and passes took."""
        lines = [f"{self.__name__}: {_plural(sum(map(len, self._entries.values())), 'program')}"]
        for entries in self._entries.values():
            for entry in entries:
                graph = entry.runner.forward.graph
                inputs = ", ".join(f"{n}: {a}" for n, a in zip(graph.input_names, graph.input_avals(), strict=True))
                lines.append(f"  ({inputs})")
                lines.append(f"    because: {entry.reason}")
                nodes = f"{len(entry.program.graph)} -> {len(graph)} nodes"
                lines.append(f"    {nodes}, traced and optimized in {entry.seconds * 1e3:.1f} ms")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<graphc.compile({getattr(self._fn, '__qualname__', self._fn)!s})>"


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" + ("" if count == 1 else "s")


@final
class _Entry:
    """A program and the conditions under which it may run."""

    def __init__(self, program: Program, guards: tuple[Guard, ...], runner: Runner):
        self.program = program
        self.guards = guards
        self.plain = program.plain
        self.runner = runner
        self.reason = ""
        self.seconds = 0.0

    def holds(self, tensors: list[Tensor]) -> bool:
        for getter, value in self.guards:  # a generator would double the cost of a call
            if getter() != value:
                return False
        for position in self.plain:  # noqa: SIM110
            if not is_plain(tensors[position]):
                return False
        return True

    def broken(self) -> list[str]:
        return [f"a guarded value changed from {v!r} to {g()!r}" for g, v in self.guards if g() != v]


def compile(fn: Callable[..., Any] | None = None, *, device: str | None = None, strict: bool = False) -> Any:
    """A function that does what `fn` does, as one XLA program for each signature of its arguments.

    At the first call with new shapes, dtypes or Python values `fn` is traced (see `graphc.trace`), optimized and
    compiled; later calls run the program. Tensors that `fn` reaches by itself are read anew at each call and receive
    gradients; in-place writes, `.grad` and random draws happen as in eager mode. Gradients flow through the results.
    Usable as a decorator, on functions, methods and modules.

    device   "cpu", "gpu" or None for JAX's default
    strict   only rewrites that keep every bit, and an XLA that keeps values; slower

    >>> import eager as torch, graphc
    >>> @graphc.compile
    ... def f(x):
    ...     return (x * x).sum()
    >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> f(x).backward()
    >>> x.grad
    tensor([2., 4.])
    """
    if fn is None:
        return functools.partial(compile, device=device, strict=strict)
    if not callable(fn):
        raise TypeError(f"graphc.compile expects a callable, got {type(fn).__name__}")
    return Compiled(fn, device, strict)
